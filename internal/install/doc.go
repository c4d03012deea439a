// Package install makes, verifies, upgrades and removes what rowfeed needs in a database: its own tables, and the
// triggers, tables, functions and rights of each feed. It decides which tables a feed can follow, how existing rows
// enter a new feed, how keys get another number of data shards, how partitions are followed, and what an upgrade may
// change. It may import packages ulidfeed, publish and read, and the packages that these import.
//
// Begin with Database.Create in create.go for a new feed, and with Upgrader.Upgrade in upgrade.go for an existing one.
// Feed in feed.go lists the tasks for one feed. The interface kind in kind.go has what differs between the modes:
// sequence.go, outbox.go and blocking.go implement it. verify.go compares a feed's triggers with what create.go would
// make. DESIGN.md says why the steps have their order.
//
// For teams that publish a table already: adopt.go takes over positions and cursors, own_shard.go uses a column of the
// table as data shard (package dialect renders how), elsewhere.go lets the former publisher continue, foreign.go finds
// positions that rowfeed did not give, fence.go refuses them, drop.go keeps what a feed of the same name needs to
// continue, readd.go decides whether it does, and handback.go writes sequences and cursors back.
package install

// Package install makes, verifies, mends and removes what rowfeed needs in a database: its own tables, and the triggers,
// tables, functions and rights of each feed. It decides which tables can be followed, what is done for the rows that are
// there before a feed, how keys get other data shards, how partitions are followed, and what an upgrade may change. It uses
// shards, publish, read and what is below them. Begin with Database.Create in create.go for a new feed, and Feed.Upgrade in
// upgrade.go for one that is there; DESIGN.md argues the order of the steps.
package install

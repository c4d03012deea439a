// Package ulidfeed handles feeds whose positions are ULIDs. Each shard of such a feed is a separate feed.
//
// The package decides which ULIDs a writer gets and how writers of a shard take turns (lock.go). It moves the records
// of an outbox to their positions (outbox.go), and tries shards that another transaction holds again (retry.go). It
// removes entries that are older than the feed keeps them (purge.go), and lists and selects shards (shards.go).
//
// It uses packages publish and read, and the packages below them. Begin with Locks.Lock for mode "blocking", and with
// Outbox.Pass for mode "outbox". DESIGN.md gives the reasons for the order of statements and locks.
package ulidfeed

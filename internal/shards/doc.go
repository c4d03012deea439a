// Package shards has the feeds whose positions are ULIDs, each shard of which is a feed by itself. It decides how writers of
// a shard take turns and which ULIDs they get (lock.go), how the records of an outbox get theirs (outbox.go, queue.go), how
// long entries are kept (purge.go), and which shards there are (shards.go). It uses publish, read and what is below them.
// Begin with Locks.Lock for mode blocking and Outbox.Pass for mode outbox; DESIGN.md argues locks and order.
package shards

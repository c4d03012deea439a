// Package consume reads a source for a named consumer and hands its entries over, batch by batch.
//
// It decides what a batch is, in which transaction its cursor is stored, and what happens after a failure: another
// attempt, a dead letter, or a shard that rests. It decides what happens to cursors when the shard count changes or the
// source refuses one. Which instance works on which shard, also after one has died, is decided by the group of package
// lease.
//
// It may use lease, store, dialect and feedtype. It knows of a feed only what a feedtype.Source tells.
//
// Begin reading with instance.go (which shards), then run.go (the loop of one shard), apply.go (how a batch is handled)
// and tx.go (its transaction, in which one of two workers wins the cursor; by a savepoint it notices that the handler
// has ended the transaction). A failing key is set aside in set_aside.go,
// and handled again in release.go. cursor.go stores a failure, and clears it after a success. rebalance.go changes the
// number of shards, and lowest.go computes the new cursors. ULID feeds replace the loop by a worker: ulid_worker.go.
// DESIGN.md explains ordering and locking.
package consume

// Package consume reads a source for a named consumer and hands its entries over, batch by batch. It decides what a
// batch is, which transaction its cursor is stored in, what becomes of a failure (another try, a dead letter, a shard
// that rests), who works on which shard, and what happens to cursors when the number of shards changes or the source
// refuses one. It uses lease, store, dialect and feedtype; of the feed it knows what a feedtype.Source tells.
// Begin with run.go, then apply.go.
package consume

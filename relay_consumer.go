package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
)

// RelayConsumer is a Consumer for a program that delivers entries to another system, under leases of its own, as a
// relay does. Set DeliverShard in place of Handle or Deliver, unless the other system is a database.
type RelayConsumer struct {
	Consumer
	// DeliverShard replaces Deliver if each shard needs a state of its own, or the epoch. It is called when this
	// instance begins with a shard, with the epoch of the shard's lease, or with Epoch if there is only one shard. It
	// returns the Deliver function of that shard. If it returns nil or panics, Run and RunOnce end.
	DeliverShard func(shard int, epoch int64) func(context.Context, []feedtype.Entry) ([]feedtype.Refusal, error)
	// Epoch is the epoch of the lease under which the consumer works (Claim.Epoch), or 0 without a lease. Afterwards
	// no instance with a lower epoch can write the cursor. A consumer that finds a higher epoch in the cursor ends
	// with the code LeaseLost.
	Epoch int64
	// SoleLease is the name of the lease under which an instance works on the only shard of the consumer; it belongs
	// to Epoch. With Deliver, an instance that begins with several shards waits until this lease is free. In any case
	// it waits for leases of another shard count. Otherwise a batch of a former instance could arrive after newer
	// versions of its keys.
	SoleLease string
	// KeepShardCount makes Run and RunOnce end with the code Conflict if the consumer has cursors of another shard
	// count, instead of changing it. It is for an instance that has called Divide and has waited since, or that runs
	// again. Such an instance must not undo the change of a later one.
	KeepShardCount bool
	// Target says where the relay delivers. It is stored with the cursor, for operators, so it must not have a
	// password.
	Target string
}

func (c *RelayConsumer) settings() *consume.Consumer {
	set := c.Consumer.settings()
	set.DeliverShard, set.Epoch = c.DeliverShard, c.Epoch
	set.SoleLease, set.KeepShardCount, set.Target = c.SoleLease, c.KeepShardCount, c.Target
	return set
}

// Run is like Consumer.Run.
func (c *RelayConsumer) Run(ctx context.Context) error { return run(ctx, c.settings()) }

// RunOnce is like Consumer.RunOnce.
func (c *RelayConsumer) RunOnce(ctx context.Context) error { return c.settings().Consume(ctx, true) }

// Divide creates a cursor for each of the ShardCount shards, and changes their number if the consumer has another
// one. Run and RunOnce do the same when they begin. Call Divide before you wait for a lease and then call Run: see
// KeepShardCount. Like RunOnce it does not wait for a database or server that cannot be reached.
func (c *RelayConsumer) Divide(ctx context.Context) error { return c.settings().Divide(ctx) }

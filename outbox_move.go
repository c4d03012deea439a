package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

const (
	// leastMoved is how many records a reader's transaction moves at least, where so many wait:
	// those behind its page cost next to nothing now, and the next page a transaction.
	leastMoved = 500
	// mostMoved bounds one transaction, which keeps other movers of the shard waiting.
	mostMoved = 5000
)

// movement is what one moving transaction did.
type movement struct {
	records int
	last    int64 // the last one's order_sequence
	took    time.Duration
}

// fill moves records of a shard for a reader that has come to its end. That there are any its
// page has told, without a lock; the transaction is one of its own, and has no snapshot of then.
func (m outbox) fill(ctx context.Context, f *Feed, shard, limit int) error {
	_, err := m.move(ctx, f, shard, max(limit, leastMoved))
	return err
}

// move moves up to limit of a shard's records in one transaction: under the lock of the
// shard, so that records stand in the order in which they were written, whoever moves them.
func (m outbox) move(ctx context.Context, f *Feed, shard, limit int) (moved movement, err error) {
	var next dialect.ULIDState
	started := time.Now()
	for fresh := false; ; fresh = true {
		err = f.db.inTx(ctx, dialect.ForPublish, "move records of "+f.name, func(tx dialect.Querier) (err error) {
			moved, next, err = m.moveBatch(ctx, tx, f, shard, min(limit, mostMoved))
			return err
		})
		if fresh || !errors.Is(err, DatabaseChanged) {
			break
		}
		if err := f.reload(ctx); err != nil { // the record in hand may be older than a bump
			return movement{}, err
		}
	}
	if errors.Is(err, errNothing) {
		return movement{}, nil
	}
	if f.db.d.Classify(err) == dialect.ClassPermission {
		return movement{}, &Error{Code: Refused, Object: feedObject(f.name), Cause: "records wait in its outbox, and this login may not move them", Err: err,
			Next: "run `rowfeed publish " + f.name + "` or `rowfeed serve` with another login, and readers like this one with --no-publish"}
	}
	if err != nil {
		return movement{}, f.settle(ctx, "move records of its outbox", err)
	}
	moved.took = time.Since(started)
	generation := f.Generation()
	f.isDurable(shard, place{generation: generation, position: next.Given()})
	f.saw(shard, generation, next.Given())
	f.db.watch.tell(watchKey{feed: f.name, ofShard: true, shard: shard}, standing{generation: generation, head: next.Given()})
	f.db.cfg.Observer.published(PublishEvent{Feed: f.name, Changes: moved.records, Keys: moved.records, Generation: generation, Took: moved.took})
	return moved, nil
}

// moveBatch is the moving transaction.
func (outbox) moveBatch(ctx context.Context, tx dialect.Querier, f *Feed, shard, limit int) (moved movement, next dialect.ULIDState, err error) {
	d, r := f.db.d, f.record.Load()
	feed := r.feed(f.db.names)
	fail := func(err error) (movement, dialect.ULIDState, error) { return movement{}, next, err }
	if err := f.assertDurable(ctx, tx); err != nil {
		return fail(err)
	}
	identity, err := d.Identity(ctx, tx, f.db.names)
	if err != nil {
		return fail(err)
	}
	floor := f.highest(shard)
	state, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})
	if err != nil {
		return fail(err)
	}
	if err := firstError(sameDatabase(r, identity), f.notSetBack(floor, r.Generation, state.Given())); err != nil {
		return fail(err)
	}
	// A statement of its own behind the lock: it sees what the mover before has left.
	records, err := dialect.TakeRecords(ctx, tx, d, feed, shard, limit)
	if err != nil {
		return fail(err)
	}
	if len(records) == 0 {
		return fail(errNothing)
	}
	places, seqs := make([]dialect.Moved, len(records)), make([]int64, len(records))
	now := time.UnixMicro(state.Now).UnixMilli()
	next = state.ULIDState
	for i, record := range records {
		hint := now
		if record.HintMillis != nil {
			hint = min(*record.HintMillis, now) // the writer is gone: nobody could be refused
		}
		var first dialect.ULIDState
		if first, next, err = next.Take(hint, newULIDRandom(), 1); err != nil {
			return fail(err)
		}
		seqs[i], places[i] = record.Seq, dialect.Moved{Seq: record.Seq, Position: first.Position()}
	}
	if err := d.PlaceRecords(ctx, tx, feed, shard, places); err != nil {
		return fail(err)
	}
	n, err := d.DeleteRecords(ctx, tx, feed, seqs)
	if err == nil && n != int64(len(seqs)) {
		err = fmt.Errorf("deleted %d of the %d records read: a ULID is taken already, or somebody else deletes from %s", n, len(seqs), feed.Records())
	}
	if err != nil {
		return fail(err)
	}
	return movement{records: len(seqs), last: seqs[len(seqs)-1]}, next, d.AdvanceShard(ctx, tx, feed, state, next, state.Witness)
}

// pass moves up to limit records of every shard in which some wait. A shard that cannot be
// had keeps none of the others.
func (m outbox) pass(ctx context.Context, f *Feed, limit int, full bool) (PublishEvent, error) {
	e := PublishEvent{Feed: f.name, Generation: f.Generation()}
	if !full {
		waiting, err := f.db.d.HasRecords(ctx, f.db.on(), f.dialectFeed())
		if err != nil || !waiting {
			return e, f.settle(ctx, "look into its outbox", err)
		}
	}
	var shards []int
	// In a transaction, for its settings.
	err := f.db.inTx(ctx, dialect.ForRead, "look into the outbox of "+f.name, func(tx dialect.Querier) (err error) {
		shards, err = dialect.RecordShards(ctx, tx, f.db.d, f.dialectFeed())
		return err
	})
	if err != nil {
		return e, f.settle(ctx, "look into its outbox", err)
	}
	var failed error
	for _, shard := range shards {
		moved, err := m.move(ctx, f, shard, limit)
		if ctx.Err() != nil {
			return e, err
		}
		failed = firstError(failed, err)
		e.Changes, e.Keys, e.Took = e.Changes+moved.records, e.Keys+moved.records, max(e.Took, moved.took)
	}
	if failed != nil && e.Changes > 0 { // what has failed is tried again by the next pass
		f.db.cfg.Observer.trouble(TroubleEvent{Feed: f.name, Err: failed})
		failed = nil
	}
	return e, failed
}

// publishVisible moves the records of a shard that are visible now. Those of a transaction that
// is open now, and commits them below the last of these meanwhile, are taken along; those
// behind it are not waited for, however fast others write.
func (m outbox) publishVisible(ctx context.Context, f *Feed, shard int) error {
	var newest int64
	err := f.db.inTx(ctx, dialect.ForRead, "look into the outbox of "+f.name, func(tx dialect.Querier) (err error) {
		newest, err = dialect.NewestRecord(ctx, tx, f.db.d, f.dialectFeed(), shard)
		return err
	})
	if err != nil {
		return f.settle(ctx, "look into its outbox", err)
	}
	for last := int64(0); last < newest; {
		moved, err := m.move(ctx, f, shard, mostMoved)
		if err != nil || moved.records == 0 {
			return err
		}
		last = moved.last
	}
	return nil
}

package rowfeed

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// moveBatch is how many records one transaction moves.
const moveBatch = 500

// fill moves a batch of a shard's records, in one transaction: under the lock of the shard, so
// that records stand in the order in which they were written, whoever moves them. The cheap question comes
// first and takes no lock.
func (outbox) fill(ctx context.Context, f *Feed, shard int) (moved int, err error) {
	if f.db.cfg.Replica {
		return 0, nil
	}
	d, feed := f.db.d, f.dialectFeed()
	waiting, err := dialect.TakeRecords(ctx, f.db.on(), d, feed, shard, 1)
	if err != nil || len(waiting) == 0 {
		return 0, f.settle(ctx, "look into its outbox", err)
	}
	var next dialect.ULIDState
	started := time.Now()
	err = f.db.inTx(ctx, dialect.ForPublish, "move records of "+f.name, func(tx dialect.Querier) error {
		if err := f.assertDurable(ctx, tx); err != nil {
			return err
		}
		row, err := d.LockShard(ctx, tx, feed, shard)
		if err != nil {
			return err
		}
		// A statement of its own behind the lock: it sees what the one before has left.
		records, err := dialect.TakeRecords(ctx, tx, d, feed, shard, moveBatch)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return errNothing
		}
		placed, seqs := make([]dialect.Moved, len(records)), make([]int64, len(records))
		now := time.UnixMicro(row.Now).UnixMilli()
		next = row.ULIDState
		for i, r := range records {
			hint := now
			if r.HintMillis != nil {
				hint = min(*r.HintMillis, now) // the writer is gone: nobody could be refused
			}
			var random dialect.ULIDRandom
			rand.Read(random[:])
			var first dialect.ULIDState
			if first, next, err = next.Take(hint, random, 1); err != nil {
				return err
			}
			seqs[i], placed[i] = r.Seq, dialect.Moved{Seq: r.Seq, Position: first.Position()}
		}
		if err := d.PlaceRecords(ctx, tx, feed, shard, placed); err != nil {
			return err
		}
		n, err := d.DeleteRecords(ctx, tx, feed, seqs)
		if err == nil && n != int64(len(seqs)) {
			err = errors.New("a ULID is taken already, or somebody else deletes from " + feed.Records().String())
		}
		if err != nil {
			return err
		}
		moved = len(seqs)
		return d.AdvanceShard(ctx, tx, feed, row, next, row.Witness)
	})
	if errors.Is(err, errNothing) {
		return 1, nil // somebody else has moved them: read again
	}
	if err != nil {
		return 0, f.settle(ctx, "move records of its outbox", err)
	}
	f.db.watch.tell(watchKey{f.name, true, shard}, standing{f.Generation(), next.Given()})
	f.db.cfg.Observer.published(PublishEvent{Feed: f.name, Changes: moved, Keys: moved, Generation: f.Generation(), Took: time.Since(started)})
	return moved, nil
}

// pass moves a batch of every shard.
func (m outbox) pass(ctx context.Context, f *Feed, _ int, _ bool) (PublishEvent, error) {
	e := PublishEvent{Feed: f.name, Generation: f.Generation()}
	shards, err := dialect.QueryAll(ctx, f.db.on(), "SELECT DISTINCT shard FROM "+dialect.Qualified(f.db.d, f.dialectFeed().Records()), nil,
		func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
	if err != nil {
		return e, f.settle(ctx, "look into its outbox", err)
	}
	for _, shard := range shards {
		n, err := m.fill(ctx, f, shard)
		if err != nil {
			return e, err
		}
		e.Changes, e.Keys = e.Changes+n, e.Keys+n
	}
	return e, nil
}

func (m outbox) publishVisible(ctx context.Context, f *Feed) error {
	for {
		if e, err := m.pass(ctx, f, 0, false); err != nil || e.Changes == 0 {
			return err
		}
	}
}

package ulidfeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// expiry is the highest position of a shard that need not be kept, and the last position of the previous batch (zero
// before the first).
type expiry struct {
	shard       int
	last, above feedtype.Position
}

// Purge deletes entries that the feed need not keep any longer, in batches, and returns how many. A shard that another
// transaction holds is tried again after the others. If it stays held the error is publish.ErrHeld.
func (f *Outbox) Purge(ctx context.Context) (total int, err error) {
	var due []expiry
	err = f.Read(ctx, "look for expired entries", func(q dialect.Querier) (err error) {
		due, err = f.expiries(ctx, q)
		return err
	})
	if err != nil {
		return 0, f.Explain(ctx, "look for expired entries", err)
	}
	since := time.Now()
	for tries := 1; len(due) > 0; tries++ {
		var left []expiry
		why := publish.ErrHeld
		for _, e := range due {
			n, err := f.purgeShard(ctx, e)
			if total += n; errors.Is(err, publish.ErrHeld) {
				left, why = append(left, e), heldReason(err)
			} else if err != nil {
				return total, f.Explain(ctx, "purge entries", err)
			}
		}
		if len(left) > 0 && time.Since(since) >= publish.HeldPatience {
			return total, f.heldShardsError("its expired entries cannot be purged yet", why, shardsToPurge(left)...)
		}
		if due = left; len(due) > 0 {
			if err := store.Pause(ctx, store.Backoff(tries)); err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

func shardsToPurge(due []expiry) []int {
	shards := make([]int, len(due))
	for i, e := range due {
		shards[i] = e.shard
	}
	return shards
}

// purgeShard purges one shard, batch by batch, until it is done or the shard is held. Each batch begins above the batch
// before. On InnoDB deleted entries stay in the index until they are cleaned up, which an old snapshot delays; a batch
// from the beginning would read all of them. Entries that back-fill places below meanwhile are left to the next purge.
func (f *Outbox) purgeShard(ctx context.Context, e expiry) (total int, err error) {
	for n := publish.PurgeBatch; n == publish.PurgeBatch; {
		var last feedtype.Position
		err := f.Store.InTx(ctx, dialect.ForMove, "purge entries of "+f.Name, func(tx dialect.Querier) (err error) {
			n, last, err = f.purgePlaces(ctx, tx, e)
			return err
		})
		if err != nil {
			return total, err
		}
		total, e.above = total+n, last
	}
	return total, nil
}

// expiries lists the shards that have something to purge, by the database's clock.
func (f *Outbox) expiries(ctx context.Context, q dialect.Querier) ([]expiry, error) {
	d, keep := f.Store.Dialect, f.Record.Load().Retain
	switch {
	case keep.Age > 0:
		now, err := f.Store.Clock(ctx, q)
		if err != nil {
			return nil, err
		}
		last := feedtype.Position{High: uint64(max(time.UnixMicro(now).Add(-keep.Age).UnixMilli(), 1)) << 16}.Before()
		return dialect.All(ctx, q, d.Syntax, f.Statement(statements, "expired_by_age"),
			dialect.Args{"feed": f.Name, "last": f.ulid(last)}, func(rows dialect.Rows) (e expiry, err error) {
				e.last = last
				return e, rows.Scan(&e.shard)
			})
	case keep.Count > 0:
		all, err := dialect.All(ctx, q, d.Syntax, f.Statement(statements, "expired_by_count"),
			dialect.Args{"feed": f.Name, "kept": keep.Count}, func(rows dialect.Rows) (e expiry, err error) {
				var last dialect.ScanULID
				err = rows.Scan(&e.shard, &last)
				e.last = last.Position
				return e, err
			})
		return withEntries(all), err
	}
	return nil, nil
}

// ulid is a position as an argument of a statement.
func (f *Outbox) ulid(p feedtype.Position) dialect.Built {
	return func(b *dialect.Builder) string { return f.DialectFeed().ULIDs.Arg(f.Store.Dialect.Syntax, b, p) }
}

// withEntries drops the shards that have no more entries than are kept.
func withEntries(all []expiry) (due []expiry) {
	for _, e := range all {
		if !e.last.IsZero() {
			due = append(due, e)
		}
	}
	return due
}

// purgePlaces is the purging transaction. The shard's lock keeps movers out, but not writers, readers or back-fill. The
// mark rises in the same transaction, so that no cursor from before it is answered with the remaining entries.
func (f *Outbox) purgePlaces(
	ctx context.Context, tx dialect.Querier, e expiry,
) (n int, last feedtype.Position, err error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	if _, err := d.LockShard(ctx, tx, feed, e.shard, noWait); d.Classify(err) == dialect.ClassLockTimeout {
		return 0, last, fmt.Errorf("%w: %w", publish.ErrHeld, err)
	} else if err != nil {
		return 0, last, err
	}
	var above any = dialect.SQL("")
	if !e.above.IsZero() {
		above = f.Statement(statements, "above").With(dialect.Args{"above": f.ulid(e.above)})
	}
	batch, err := dialect.All(ctx, tx, d.Syntax, f.Statement(statements, "expired_places"),
		dialect.Args{"shard": e.shard,
			"above": above, "last": f.ulid(e.last), "count": publish.PurgeBatch},
		func(rows dialect.Rows) (u dialect.ScanULID, err error) { return u, rows.Scan(&u) })
	if err != nil || len(batch) == 0 {
		return 0, last, err
	}
	last = batch[len(batch)-1].Position
	var high, low int64
	err = f.Store.One(ctx, tx, statements, "mark", dialect.Args{"feed": f.Name, "shard": e.shard}, &high, &low)
	if err != nil {
		return 0, last, err
	}
	// Back-fill may have placed rows below entries that were purged before.
	mark := feedtype.Position{High: uint64(high), Low: uint64(low)}.Max(last)
	_, err = f.Store.Exec(ctx, tx, statements, "raise_mark",
		dialect.Args{"feed": f.Name, "shard": e.shard, "high": int64(mark.High), "low": int64(mark.Low)})
	if err != nil {
		return 0, last, err
	}
	b := dialect.NewBuilder(d.Syntax)
	which := b.Fill(f.Statement(statements, "purged_places"),
		dialect.Args{"shard": e.shard, "first": f.ulid(batch[0].Position), "last": f.ulid(last)})
	return len(batch), last, f.boundedKeyWait(ctx, tx, func() error {
		_, err := tx.Exec(ctx, d.DeletePlaces(feed)+" WHERE "+which, b.Args()...)
		return err
	})
}

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
	d, keep, feed := f.Store.Dialect, f.Record.Load().Retain, f.DialectFeed()
	b := dialect.NewBuilder(d)
	ofFeed := " FROM " + f.Store.Table("shards") + " s WHERE s.feed = "
	placed := " FROM " + dialect.Qualified(d, feed.Placed()) + " g WHERE g.shard = s.shard"
	switch {
	case keep.Age > 0:
		var now int64
		if err := dialect.QueryRow(ctx, q, "SELECT "+d.Now(), nil, &now); err != nil {
			return nil, err
		}
		last := feedtype.Position{High: uint64(max(time.UnixMicro(now).Add(-keep.Age).UnixMilli(), 1)) << 16}.Before()
		query := "SELECT s.shard" + ofFeed + b.Arg(f.Name) + " AND EXISTS (SELECT 1" + placed + " AND g.ulid <= " +
			feed.ULIDs.Arg(d, b, last) + ") ORDER BY s.shard"
		return dialect.QueryAll(ctx, q, query, b.Args(), func(rows dialect.Rows) (e expiry, err error) {
			e.last = last
			return e, rows.Scan(&e.shard)
		})
	case keep.Count > 0:
		query := "SELECT s.shard, (SELECT " + d.Value(feed.ULIDs.Position, dialect.Ref(d, "g", "ulid")) + placed +
			" ORDER BY g.ulid DESC LIMIT 1 OFFSET " + b.Arg(keep.Count) + ")" +
			ofFeed + b.Arg(f.Name) + " ORDER BY s.shard"
		all, err := dialect.QueryAll(ctx, q, query, b.Args(), func(rows dialect.Rows) (e expiry, err error) {
			var last dialect.ScanULID
			err = rows.Scan(&e.shard, &last)
			e.last = last.Position
			return e, err
		})
		return withEntries(all), err
	}
	return nil, nil
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
	b := dialect.NewBuilder(d)
	where := " g WHERE g.shard = " + b.Arg(e.shard)
	if !e.above.IsZero() {
		where += " AND g.ulid > " + feed.ULIDs.Arg(d, b, e.above)
	}
	batch, err := dialect.QueryAll(ctx, tx, "SELECT "+d.Value(feed.ULIDs.Position, dialect.Ref(d, "g", "ulid"))+
		" FROM "+dialect.Qualified(d, feed.Placed())+where+
		" AND g.ulid <= "+feed.ULIDs.Arg(d, b, e.last)+" ORDER BY g.ulid LIMIT "+b.Arg(publish.PurgeBatch), b.Args(),
		func(rows dialect.Rows) (u dialect.ScanULID, err error) { return u, rows.Scan(&u) })
	if err != nil || len(batch) == 0 {
		return 0, last, err
	}
	last = batch[len(batch)-1].Position
	var high, low int64
	b = dialect.NewBuilder(d)
	ofShard := " WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(e.shard)
	err = dialect.QueryRow(ctx, tx, "SELECT below_high, below_low FROM "+f.Store.Table("shards")+ofShard,
		b.Args(), &high, &low)
	if err != nil {
		return 0, last, err
	}
	// Back-fill may have placed rows below entries that were purged before.
	mark := feedtype.Position{High: uint64(high), Low: uint64(low)}.Max(last)
	b = dialect.NewBuilder(d)
	_, err = tx.Exec(ctx, "UPDATE "+f.Store.Table("shards")+" SET below_high = "+b.Arg(int64(mark.High))+
		", below_low = "+b.Arg(int64(mark.Low))+
		" WHERE feed = "+b.Arg(f.Name)+" AND shard = "+b.Arg(e.shard), b.Args()...)
	if err != nil {
		return 0, last, err
	}
	b = dialect.NewBuilder(d)
	return len(batch), last, f.boundedKeyWait(ctx, tx, func() error {
		_, err := tx.Exec(ctx, d.DeletePlaces(feed)+" WHERE g.shard = "+b.Arg(e.shard)+" AND g.ulid >= "+
			feed.ULIDs.Arg(d, b, batch[0].Position)+
			" AND g.ulid <= "+feed.ULIDs.Arg(d, b, last), b.Args()...)
		return err
	})
}

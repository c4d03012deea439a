package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// repairShards gives keys their data shards and has them published anew, so that the
// readers of their parts are told of them, wherever their cursors are. It answers how many.
// Rows that others hold are passed over, and are the error when all else is done.
func (f *Checker) repairShards(ctx context.Context) (total int64, err error) {
	in := func(give func(dialect.Querier) (int64, error)) error {
		var n int64
		err := f.Store.InTx(ctx, dialect.ForPublish, "give keys of "+f.Name+" their shards", func(tx dialect.Querier) (err error) {
			n, err = give(tx)
			return err
		})
		if err == nil {
			total += n
		}
		return err
	}
	left := 0
	err = f.lookAtShards(ctx, func() { left = 0 }, func(p *places) error {
		if !p.rows {
			return in(func(tx dialect.Querier) (int64, error) { return f.giveShardsAgain(ctx, tx, p) })
		}
		for _, w := range p.wrong {
			err := in(func(tx dialect.Querier) (int64, error) { return f.waitAgain(ctx, tx, p.r.Feed(f.Store.Names), w) })
			if errors.Is(err, errRowHeld) {
				left++
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrNoRows) { // dropped meanwhile
		err = cmp.Or(f.Reload(ctx), err)
	}
	if err == nil && left > 0 {
		err = &feedtype.Error{Code: feedtype.Locked, Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("%d rows could not be given their data shards: other transactions hold them", left),
			Next: "`rowfeed status " + f.Name + "` names the transactions; then run `rowfeed repair " + f.Name + "` again"}
	}
	return total, f.Explain(ctx, "give keys their shards", err)
}

// errRowHeld says that somebody holds a row.
var errRowHeld = errors.New("another transaction holds the row")

// waitAgain lets a row wait for a position, with which a publisher gives it its shard. One
// that has had another position meanwhile has got it already. It waits for nobody, and is
// the whole transaction, so that nobody waits behind a row for the next.
func (f *Checker) waitAgain(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, w dialect.Sharded) (int64, error) {
	d, b := f.Store.Dialect, dialect.NewBuilder(f.Store.Dialect)
	stands := "t.feed_sync_id = " + b.Arg(w.Position)
	// The shard is written for the lock that comes with it, which passes over what others
	// hold. If the feed is divided anew meanwhile it is the wrong one, until the publisher.
	n, err := d.SetShards(ctx, tx, feed, true, []dialect.Sharded{w})
	if err == nil && n > 0 {
		return d.ResetRows(ctx, tx, feed, stands, b.Args())
	}
	if err == nil {
		err = dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+dialect.Qualified(d, feed.Source)+" t WHERE "+stands, b.Args(), &n)
	}
	if err == nil && n > 0 {
		err = errRowHeld
	}
	return 0, err
}

// giveShardsAgain writes shards in the table of positions, and records the keys. The
// sequence's lock keeps positions, and the division of the feed, as they are.
func (f *Checker) giveShardsAgain(ctx context.Context, tx dialect.Querier, p *places) (total int64, err error) {
	d, feed := f.Store.Dialect, p.r.Feed(f.Store.Names)
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, err
	}
	if err := p.look(ctx, tx, f.Store); err != nil || len(p.wrong) == 0 {
		return 0, err
	}
	if n, err := d.SetShards(ctx, tx, feed, false, p.wrong); err != nil || n != int64(len(p.wrong)) {
		return 0, cmp.Or(err, fmt.Errorf("%d of %d positions could be given their shards: a position was given twice, which `rowfeed check` names, or somebody else writes %s", n, len(p.wrong), feed.Positions()))
	}
	// Also a key that is hidden is to be told, as a delete, and stays hidden: unless somebody
	// has wished otherwise and a publisher has not come to it yet.
	for part := range slices.Chunk(p.wrong, namedPlaces) {
		b := dialect.NewBuilder(d)
		positions := ""
		for i, w := range part {
			if i > 0 {
				positions += ", "
			}
			positions += b.Arg(w.Position)
		}
		n, err := tx.Exec(ctx, publish.RecordFrom(d, feed, dialect.StoredRefs(d, feed, "p"), dialect.Placed, " FROM "+dialect.Qualified(d, feed.Positions())+
			" p WHERE p.feed_sync_id IN ("+positions+") LIMIT "+b.Arg(int64(math.MaxInt64))), b.Args()...)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

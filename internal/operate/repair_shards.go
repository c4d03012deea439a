package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// repairShards gives keys their data shards and publishes them again, so that the readers of their parts see them. It
// returns how many. It skips rows that other transactions hold; they are the error after all else is done.
func (f *Checker) repairShards(ctx context.Context) (total int64, err error) {
	in := func(give func(dialect.Querier) (int64, error)) error {
		var n int64
		err := f.Store.InTx(ctx, dialect.ForPublish, "give keys of "+f.Name+" their shards",
			func(tx dialect.Querier) (err error) {
				n, err = give(tx)
				return err
			})
		if err == nil {
			total += n
		}
		return err
	}
	left := 0
	err = f.walkShards(ctx, func() { left = 0 }, func(p *keyBatch) error {
		if !p.rows {
			return in(func(tx dialect.Querier) (int64, error) { return f.correctShards(ctx, tx, p) })
		}
		for _, w := range p.wrong {
			err := in(func(tx dialect.Querier) (int64, error) {
				return f.republishRow(ctx, tx, p.r.Feed(f.Store.Names), w)
			})
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
		err = &feedtype.Error{
			Code:   feedtype.Locked,
			Object: feedtype.FeedObject(f.Name),
			Cause:  fmt.Sprintf("%d rows could not get their data shards: other transactions have locked them", left),
			Next: "`rowfeed status " + f.Name + "` names the transactions; then run `rowfeed repair " + f.Name +
				"` again",
		}
	}
	return total, f.Explain(ctx, "give keys their shards", err)
}

// errRowHeld means that another transaction has locked a row.
var errRowHeld = errors.New("another transaction has locked the row")

// republishRow clears the position of a row, so that a publisher gives it a position and its shard. A row that has got
// another position meanwhile has its shard already. The transaction has only this row and waits for no lock, so that no
// writer waits behind it.
func (f *Checker) republishRow(
	ctx context.Context, tx dialect.Querier, feed *dialect.Feed, w dialect.Sharded,
) (int64, error) {
	d := f.Store.Dialect
	// SetShards is called for its lock, which skips locked rows. If the number of data shards changes meanwhile, the
	// shard that it writes is wrong until the row is published.
	n, err := d.SetShards(ctx, tx, feed, true, []dialect.Sharded{w})
	if err == nil && n > 0 {
		b := dialect.NewBuilder(d.Syntax)
		return d.ResetRows(ctx, tx, feed, "t.feed_sync_id = "+b.Arg(w.Position), b.Args())
	}
	if err == nil {
		err = dialect.One(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "count_at_position"),
			dialect.Args{"position": w.Position}, &n)
	}
	if err == nil && n > 0 {
		err = errRowHeld
	}
	return 0, err
}

// correctShards writes shards in the table of positions, and records the keys. The lock on the sequence's row keeps
// positions and the number of data shards as they are.
func (f *Checker) correctShards(ctx context.Context, tx dialect.Querier, p *keyBatch) (total int64, err error) {
	d, feed := f.Store.Dialect, p.r.Feed(f.Store.Names)
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, err
	}
	if err := p.read(ctx, tx, f.Store); err != nil || len(p.wrong) == 0 {
		return 0, err
	}
	if n, err := d.SetShards(ctx, tx, feed, false, p.wrong); err != nil || n != int64(len(p.wrong)) {
		return 0, cmp.Or(err, fmt.Errorf("only %d of %d positions got their shards: two keys have the same position, "+
			"which `rowfeed check` shows, or another program writes %s", n, len(p.wrong), feed.Positions()))
	}
	for part := range slices.Chunk(p.wrong, positionsPerStatement) {
		positions := make([]int64, len(part))
		for i, w := range part {
			positions[i] = w.Position
		}
		n, err := dialect.Exec(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "record_placed"),
			d.Uncut(dialect.Args{"placed": dialect.SQL(strconv.Itoa(int(dialect.Placed))),
				"positions": dialect.List(positions)}))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

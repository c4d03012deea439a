package publish

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// placeRows gives positions to pending rows of a feed with capture "column", and returns their number. After a full
// batch the next batch begins after its last key, and continues from the first key when it has reached the end. So rows
// that are written all the time do not delay the others.
func (f *Sequence) placeRows(
	ctx context.Context, tx dialect.Querier, r *catalog.FeedRecord, base int64, limit int,
) (int, error) {
	feed, generation := r.Feed(f.Store.Names), r.Generation
	if !feed.InRows() {
		return 0, nil
	}
	after := f.takeRowStart(generation)
	shard := r.Sharder()
	n, last, err := f.Store.Dialect.PlaceRows(ctx, tx, feed, after, limit, base, shard)
	if err == nil && after != nil && n < limit {
		var rest int
		var lastOfRest []any
		rest, lastOfRest, err = f.Store.Dialect.PlaceRows(ctx, tx, feed, nil, limit-n, base+int64(n), shard)
		if n += rest; rest > 0 {
			last = lastOfRest
		}
	}
	if err != nil {
		return 0, err
	}
	if n < limit {
		last = nil // The pass has placed all pending rows that no transaction has locked.
		if err := f.reportSkipped(ctx, tx, feed, limit); err != nil {
			return 0, err
		}
	}
	// If this transaction fails, a later batch that reaches the first key again places its rows.
	f.mu.Lock()
	f.rowStart = rowStart{generation, last}
	f.mu.Unlock()
	return n, nil
}

// checkPlaced counts the rows with positions above base. This pass has given the positions above first, up to last, to
// one row each.
func (f *Sequence) checkPlaced(ctx context.Context, tx dialect.Querier, feed *dialect.Feed,
	base, first, last int64) error {
	var found int64
	d, n := f.Store.Dialect, last-first
	err := dialect.One(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "count_placed_rows"),
		dialect.Args{"base": base}, &found)
	if err == nil && found > n {
		var which []string
		which, err = positionsOf(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "foreign_positions"),
			dialect.Args{"base": base, "first": first, "last": last})
		err = cmp.Or(err, error(f.foreign(feed, which, nil)))
	}
	if err == nil && found < n {
		err = &feedtype.Error{
			Code:   feedtype.Refused,
			Object: fmt.Sprintf("table %q", feed.Source.String()),
			Cause: fmt.Sprintf("of %d rows that were given a feed_sync_id only %d kept it: "+
				"a trigger resets it, and the rows would be published again and again", n, found),
			Next: "change the trigger so that it keeps feed_sync_id when no other column changes",
		}
	}
	return err
}

// maxPositions is how many positions an error names.
const maxPositions = 5

// positionsOf runs a query for positions, up to :count, and returns the first of them.
func positionsOf(ctx context.Context, q dialect.Querier, s *dialect.Syntax, st dialect.Statement,
	args dialect.Args) ([]string, error) {
	args["count"] = maxPositions + 1
	all, err := dialect.All(ctx, q, s, st, args, func(rows dialect.Rows) (string, error) {
		var position int64
		err := rows.Scan(&position)
		return strconv.FormatInt(position, 10), err
	})
	if len(all) > maxPositions {
		all[maxPositions] = "…"
	}
	return all, err
}

// foreign is the error of a pass that finds positions which another publisher has given.
func (f *Sequence) foreign(feed *dialect.Feed, which []string, err error) *feedtype.Error {
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: fmt.Sprintf("table %q", feed.Source.String()),
		Cause: "a publisher that is not rowfeed's, or another program, has given positions to rows: feed_sync_id " +
			strings.Join(which, ", "),
		Err:  err,
		Next: "stop it, then run `rowfeed repair " + f.Name + "`, which gives these rows new positions",
	}
}

// explainDuplicate explains the error of a pass that a unique index of feed_sync_id has refused.
func (f *Sequence) explainDuplicate(ctx context.Context, err error) error {
	d, feed := f.Store.Dialect, f.DialectFeed()
	if !feed.InRows() || d.Classify(err) != dialect.ClassDuplicate {
		return err
	}
	which, failed := positionsOf(ctx, f.Store.On(), d.Syntax,
		statements.For(d.Syntax, feed, "positions_above_sequence"), dialect.Args{})
	if failed != nil || len(which) == 0 {
		return err
	}
	return f.foreign(feed, which, err)
}

// reportSkipped reports to the Observer how many rows are still pending because other transactions have locked them.
func (f *Sequence) reportSkipped(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, limit int) error {
	if f.Store.Observer.Skipped == nil {
		return nil
	}
	var rows int
	d := f.Store.Dialect
	err := dialect.One(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "count_waiting_rows"),
		dialect.Args{"count": limit}, &rows)
	if err == nil && rows > 0 {
		f.Store.Observer.Skipped(feedtype.SkipEvent{Feed: f.Name, Rows: rows})
	}
	return err
}

// rowStart is the key after which the next batch of rows begins. It belongs to one generation: a feed that was dropped
// and added again may have another key.
type rowStart struct {
	generation int64
	after      []any
}

// takeRowStart returns the key after which the next batch begins, and forgets it. The key's type may have changed, so
// that the database refuses the value. Then only one pass fails.
func (f *Sequence) takeRowStart(generation int64) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.rowStart
	f.rowStart = rowStart{}
	if s.generation != generation {
		return nil
	}
	return s.after
}

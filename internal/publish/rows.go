package publish

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// placeRows gives positions to rows that wait, with capture "column", and answers how
// many. It goes round: after a full batch the next one begins behind its last key, so
// that rows which are written all the time do not keep others waiting.
func (f *Sequence) placeRows(ctx context.Context, tx dialect.Querier, r *catalog.Record, base int64, limit int) (int, error) {
	feed, generation := r.Feed(f.Store.Names), r.Generation
	if !feed.InRows() {
		return 0, nil
	}
	after := f.takeTurn(generation)
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
		last = nil // whatever nobody holds was taken
		if err := f.tellSkipped(ctx, tx, feed, limit); err != nil {
			return 0, err
		}
	}
	// Should this transaction fail, its rows come when the round is over.
	f.mu.Lock()
	f.turn = turn{generation, last}
	f.mu.Unlock()
	if n == 0 {
		return 0, nil
	}
	var stand int64
	b := dialect.NewBuilder(f.Store.Dialect)
	err = dialect.QueryRow(ctx, tx, "SELECT count(*) FROM "+dialect.Qualified(f.Store.Dialect, feed.Source)+" WHERE feed_sync_id > "+b.Arg(base)+" AND feed_sync_id <= "+b.Arg(base+int64(n)),
		b.Args(), &stand)
	if err == nil && stand > int64(n) {
		return n, &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", feed.Source.String()), Cause: fmt.Sprintf("%d of its rows have a feed_sync_id above the feed's sequence: a former publisher still runs, or another program writes the column", stand-int64(n)),
			Next: "stop it, then run `rowfeed repair " + f.Name + "`, which has such rows published anew"}
	}
	if err == nil && stand < int64(n) {
		err = &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("table %q", feed.Source.String()), Cause: fmt.Sprintf("of %d rows that were given a feed_sync_id only %d kept it: a trigger resets it, and they would be published again and again", n, stand),
			Next: "let the trigger leave feed_sync_id alone when nothing else changes"}
	}
	return n, err
}

// tellSkipped counts, after a round, the rows that wait still: others have them locked.
func (f *Sequence) tellSkipped(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, limit int) error {
	if f.Store.Observer.Skipped == nil {
		return nil
	}
	b := dialect.NewBuilder(f.Store.Dialect)
	var rows int
	err := dialect.QueryRow(ctx, tx, "SELECT count(*) FROM (SELECT 1 FROM "+dialect.Qualified(f.Store.Dialect, feed.Source)+
		" WHERE "+dialect.PositionColumn+" IS NULL LIMIT "+b.Arg(limit)+") x", b.Args(), &rows)
	if err == nil && rows > 0 {
		f.Store.Observer.Skipped(feedtype.SkipEvent{Feed: f.Name, Rows: rows})
	}
	return err
}

// turn is the key behind which the next batch of rows begins, of a feed's generation:
// dropped and added again, it may have another key.
type turn struct {
	generation int64
	after      []any
}

// takeTurn answers the key behind which the next batch begins. It is forgotten at once,
// so that one which the database does not take (the key's type may be another by now)
// fails one pass and no second.
func (f *Sequence) takeTurn(generation int64) []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.turn
	f.turn = turn{}
	if t.generation != generation {
		return nil
	}
	return t.after
}

package read

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// ReadPage reads a page with the columns and data shards that the feed has at the time of the page. If the statement
// was made for others, ReadPage reloads the feed and reads the page again.
func (f *Reader) ReadPage(ctx context.Context, q dialect.PageQuery, shards feedtype.Shards) (
	*dialect.PageRows, *catalog.Layout, error,
) {
	const tries = 5
	for try, reloaded := 0, false; ; {
		asked := q
		asked.AnyDatabase = f.Store.Replica
		l, err := f.CurrentLayout(ctx)
		if err != nil {
			return nil, nil, err
		}
		pager, err := f.Pager()
		if err == nil {
			err = pager.Select(ctx, l, &asked, shards)
		}
		if err != nil {
			// The record in memory may be old: a refusal needs one that was just read.
			if reloaded {
				return nil, nil, err
			}
			if err := f.Reload(ctx); err != nil {
				return nil, nil, err
			}
			reloaded = true
			continue
		}
		try, reloaded = try+1, false
		floor := f.History.Highest(asked.Shard)
		rows, err := f.queryPage(ctx, l, asked)
		switch {
		case err == nil && rows.Generation == l.Generation && rows.Signature == l.Table.Signature:
			if err := f.History.NotSetBack(floor, rows.Generation, rows.Given); err != nil {
				return nil, nil, f.refuseOnPrimary(ctx, err)
			}
			if err := f.History.MakeDurable(ctx, asked.Shard, rows); err != nil {
				return nil, nil, err
			}
			f.History.Saw(asked.Shard, history.Shown(rows)) // not earlier: a crash could have undone it
			return rows, l, nil
		case err != nil && f.Store.Dialect.Classify(err) == dialect.ClassRetry && try < tries:
			if err := store.Pause(ctx, store.Backoff(try)); err != nil {
				return nil, nil, err
			}
			continue
		case err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined || try == tries:
			return nil, nil, f.Fail("read a page", f.explainPage(ctx, l, asked, rows, err))
		}
		// The feed was changed, or its table or a column was.
		if err := f.Reload(ctx); err != nil {
			return nil, nil, err
		}
		if err == nil && rows.Signature == "" && l.Feed.ULIDs != nil {
			if err := f.History.InItsDatabase(ctx); err != nil {
				return nil, nil, f.refuseOnPrimary(ctx, err)
			}
		}
	}
}

// queryPage reads a page within the quota of connections that the feed has.
func (f *Reader) queryPage(ctx context.Context, l *catalog.Layout, q dialect.PageQuery) (*dialect.PageRows, error) {
	var rows *dialect.PageRows
	err := f.Quota.Use(ctx, func() (err error) {
		rows, err = f.Store.Dialect.ReadPage(ctx, f.Store.SQL, l.Feed, q)
		return err
	})
	return rows, err
}

// explainPage returns why the last try of ReadPage failed: with an error of the database, or, if err is nil, with rows
// of another layout.
func (f *Reader) explainPage(ctx context.Context, l *catalog.Layout, q dialect.PageQuery, rows *dialect.PageRows,
	err error,
) error {
	if err == nil {
		if len(q.Unserved) > 0 && rows.Signature == "" && l.Feed.ULIDs == nil {
			return l.RefuseParts() // this server does not serve parts, and the server of the record does
		}
		return f.Explain(ctx, "read a page", errors.New("the table's columns change too fast"))
	}
	if q.To > 0 {
		// If this check fails, the page's own error is answered.
		if missing, _ := f.VerifyParts(ctx); missing != "" {
			return f.MissingIndex(missing)
		}
	}
	switch {
	case f.Store.Dialect.Classify(err) == dialect.ClassUndefined: // such as an index that the statement names
		return f.Explain(ctx, "read a page", err)
	case errors.Is(err, feedtype.ErrNoULID):
		return f.HoldsNoULID(q.Shard, err)
	}
	return err
}

// SelectPart returns the query for a part of the feed, or why the part is refused. A record in memory may be old, so
// SelectPart reloads the feed before it refuses.
func (f *Reader) SelectPart(ctx context.Context, shards feedtype.Shards) (q dialect.PageQuery, err error) {
	for reloaded := false; ; reloaded = true {
		l, err := f.CurrentLayout(ctx)
		if err != nil {
			return q, err
		}
		if err = f.selectPart(ctx, l, &q, shards); err == nil || reloaded {
			return q, err
		}
		if err := f.Reload(ctx); err != nil {
			return q, err
		}
	}
}

func (f *Reader) selectPart(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	pager, err := f.Pager()
	if err != nil {
		return err
	}
	return pager.Select(ctx, l, q, s)
}

// refuseOnPrimary returns a refusal that needs a primary to be certain. A server that is not a primary may lag. There,
// reading the identity fails with the code ReadOnly, and that error is returned.
func (f *Reader) refuseOnPrimary(ctx context.Context, refusal error) error {
	if f.Store.Replica || !errors.Is(refusal, feedtype.CursorAhead) &&
		!errors.Is(refusal, feedtype.HistoryLost) && !errors.Is(refusal, feedtype.DatabaseChanged) &&
		!errors.Is(refusal, feedtype.GenerationChanged) {
		return refusal
	}
	if _, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names); err != nil {
		return f.Fail("read a page", err)
	}
	return refusal
}

// rowBytes is the size of a row, as pages that their bytes cut have shown it; 0 means that it is not known. A page that
// its bytes cut has made the database send rows in vain, so the next page asks for fewer rows.
type rowBytes struct{ size atomic.Int64 }

// limit returns how many of the rows that are asked for are expected to fit.
func (b *rowBytes) limit(asked, maxBytes int) int {
	if size := int(b.size.Load()); size > 0 {
		return min(asked, max(maxBytes/size, 1))
	}
	return asked
}

func (b *rowBytes) learn(page *dialect.PageRows, asked, limit, maxBytes int) {
	switch {
	case page.Truncated:
		b.size.Store(int64(max(maxBytes/len(page.Rows), 1)))
	case limit < asked && len(page.Rows) == limit: // full, and not cut by its bytes
		b.size.Store(b.size.Load() / 2)
	}
}

// unbounded is the room of a page that only MaxPageBytes bounds.
const unbounded = math.MaxInt

// enter waits until there is memory for a page, and returns its bytes.
func enter(ctx context.Context, room feedtype.Room) (bytes int, err error) {
	if room == nil {
		return unbounded, nil
	}
	return room.Enter(ctx)
}

func leave(room feedtype.Room) {
	if room != nil {
		room.Leave()
	}
}

// fit returns how many rows of up to limit, and how many bytes of their values, fit into a room.
func (f *Reader) fit(limit, room int) (rows, bytes int) {
	if room == unbounded {
		return limit, f.MaxPageBytes
	}
	d := f.DialectFeed()
	entry := feedtype.EntryBytes(len(d.Key) + len(d.Columns))
	rows = max(min(limit, room/2/entry), 1)
	return rows, min(f.MaxPageBytes, max(room-rows*entry, 1))
}

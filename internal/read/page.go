package read

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
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
			f.History.Saw(asked.Shard, rows.Generation, rows.Given) // only now: before, a crash could take it back
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
		if err == nil && rows.Signature == "" {
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

// explainPage returns why the last try of ReadPage failed: with an error of the database, or, where err is nil, with
// rows of another layout.
func (f *Reader) explainPage(ctx context.Context, l *catalog.Layout, q dialect.PageQuery, rows *dialect.PageRows,
	err error,
) error {
	if err == nil {
		if q.To > 0 && rows.Signature == "" {
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

// refuseOnPrimary returns a refusal that needs a primary to be certain. A server that is not a primary may lag, so the
// error is then that of asking for its identity, which has the code ReadOnly.
func (f *Reader) refuseOnPrimary(ctx context.Context, refusal error) error {
	if f.Store.Replica || !errors.Is(refusal, feedtype.CursorAhead) &&
		!errors.Is(refusal, feedtype.DatabaseChanged) && !errors.Is(refusal, feedtype.GenerationChanged) {
		return refusal
	}
	if _, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names); err != nil {
		return f.Fail("read a page", err)
	}
	return refusal
}

// pageRows is how many rows of the feed fit into MaxPageBytes; 0 means as many as a page may have. A page that its
// bytes cut has made the database send rows in vain, so the next page asks for fewer rows.
type pageRows struct{ rows atomic.Int64 }

func (p *pageRows) limit(asked int) int {
	if rows := p.rows.Load(); rows > 0 {
		return int(min(int64(asked), rows))
	}
	return asked
}

func (p *pageRows) learn(page *dialect.PageRows, limit int) {
	rows := p.rows.Load()
	switch {
	case page.Truncated:
		p.rows.Store(int64(len(page.Rows)))
	case rows > 0 && int64(limit) == rows && len(page.Rows) == limit: // full, and not cut by its bytes
		if rows *= 2; rows > feedtype.MaxLimit {
			rows = 0
		}
		p.rows.Store(rows)
	}
}

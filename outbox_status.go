package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// status adds to that of the shards what waits in the outbox, and since when.
func (m outbox) status(ctx context.Context, f *Feed, s *Status) (err error) {
	if err := m.blocking.status(ctx, f, s); err != nil {
		return err
	}
	s.Backlog, err = m.backlog(ctx, f, MaxWaiting)
	return err
}

// backlog counts records.
func (outbox) backlog(ctx context.Context, f *Feed, limit int) (b Backlog, err error) {
	var age int64
	err = f.reading(ctx, "count the records", func(q dialect.Querier) (err error) {
		b.Waiting, age, err = f.db.store.Dialect.Backlog(ctx, q, f.catalog.DialectFeed(), limit)
		return err
	})
	if err != nil && f.db.store.Dialect.Classify(err) != dialect.ClassUndefined {
		return b, f.db.store.Fail(feedtype.FeedObject(f.name), "count the records waiting", err)
	}
	b.OldestSeconds = store.Seconds(max(age, 0))
	return b, nil
}

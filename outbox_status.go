package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// status adds to that of the shards what waits in the outbox, and since when.
func (m outbox) status(ctx context.Context, f *Feed, s *Status) error {
	if err := m.blocking.status(ctx, f, s); err != nil {
		return err
	}
	var age int64
	err := f.reading(ctx, "count the records", func(q dialect.Querier) (err error) {
		s.Waiting, age, err = f.db.d.Backlog(ctx, q, f.dialectFeed(), MaxWaiting)
		return err
	})
	if err != nil && f.db.d.Classify(err) != dialect.ClassUndefined {
		return f.db.fail(feedObject(f.name), "count the records waiting", err)
	}
	s.OldestSeconds = seconds(max(age, 0))
	return nil
}

package publish

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// insertSQL caches the INSERT of an outbox record. It depends on the feed's record only.
type insertSQL struct {
	of     *catalog.FeedRecord
	feed   *dialect.Feed
	record string
}

func (f *Recorder) insertSQL() *insertSQL {
	r := f.Record.Load()
	if s := f.inserts.Load(); s != nil && s.of == r {
		return s
	}
	d, feed := f.Store.Dialect, r.Feed(f.Store.Names)
	s := &insertSQL{of: r, feed: feed}
	if feed.Outbox {
		s.record = dialect.AppendRecord(d.Syntax, feed)
	}
	f.inserts.Store(s)
	return s
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that inserts the row. It
// acquires no lock that another transaction waits for.
func (f *Recorder) AppendOutbox(ctx context.Context, tx dialect.Querier, record feedtype.OutboxRecord) error {
	s := f.insertSQL()
	if !s.feed.Outbox {
		next := "write to the table; no record is needed"
		if s.feed.ULIDs != nil {
			next = "get ULIDs from Lock in the transaction that inserts the row"
		}
		return &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "it has no outbox",
			Err:    errors.ErrUnsupported,
			Next:   next,
		}
	}
	if err := f.checkKey(record.Key); err != nil {
		return err
	}
	var hint any
	if !record.Hint.IsZero() {
		hint = record.Hint.UnixMilli()
	}
	_, err := tx.Exec(ctx, s.record, append([]any{record.Shard, hint}, record.Key...)...)
	if err != nil {
		return f.keyError(record.Key, "append a record to its outbox", err)
	}
	return nil
}

package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// insertSQL caches the statements that writers send most often. They depend on the feed's record only.
type insertSQL struct {
	of     *catalog.FeedRecord
	feed   *dialect.Feed
	change string // the INSERT of a change, up to the key's values
	record string // the INSERT of an outbox record
}

func (f *Recorder) insertSQL() *insertSQL {
	r := f.Record.Load()
	if s := f.inserts.Load(); s != nil && s.of == r {
		return s
	}
	d, feed := f.Store.Dialect, r.Feed(f.Store.Names)
	s := &insertSQL{of: r, feed: feed,
		change: "INSERT INTO " + dialect.Qualified(d, feed.Changes()) +
			" (" + strings.Join(dialect.StoredRefs(d, feed, ""), ", ") + ", kind) VALUES ("}
	if feed.Outbox {
		s.record = dialect.AppendRecord(d, feed)
	}
	f.inserts.Store(s)
	return s
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that inserts the row. It
// takes no lock that another transaction waits for.
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

package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// appending is what does not change in the statements that writers send all day, as long as the
// feed has the same record.
type appending struct {
	of     *catalog.Record
	feed   *dialect.Feed
	change string // the INSERT of a change, up to the key's values
	record string // the INSERT into an outbox
}

func (f *Recorder) appending() *appending {
	r := f.Record.Load()
	if a := f.appends.Load(); a != nil && a.of == r {
		return a
	}
	d, feed := f.Store.Dialect, r.Feed(f.Store.Names)
	a := &appending{of: r, feed: feed,
		change: "INSERT INTO " + dialect.Qualified(d, feed.Changes()) + " (" + strings.Join(dialect.StoredRefs(d, feed, ""), ", ") + ", kind) VALUES ("}
	if feed.Outbox {
		a.record = dialect.AppendRecord(d, feed)
	}
	f.appends.Store(a)
	return a
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that
// inserts the row. It waits for nobody.
func (f *Recorder) AppendOutbox(ctx context.Context, tx dialect.Querier, record feedtype.OutboxRecord) error {
	a := f.appending()
	if !a.feed.Outbox {
		next := "write to the table"
		if a.feed.ULIDs != nil {
			next = "take ULIDs with Lock in the transaction that inserts the row"
		}
		return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "it has no outbox", Err: errors.ErrUnsupported, Next: next}
	}
	if err := f.checkKey(record.Key); err != nil {
		return err
	}
	var hint any
	if !record.Hint.IsZero() {
		hint = record.Hint.UnixMilli()
	}
	_, err := tx.Exec(ctx, a.record, append([]any{record.Shard, hint}, record.Key...)...)
	if err != nil {
		return f.keyError(record.Key, "append a record to its outbox", err)
	}
	return nil
}

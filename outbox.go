package rowfeed

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// OutboxRecord says that a row was inserted.
type OutboxRecord struct {
	Shard int // any number
	// Hint is the time that the entry's ULID is to have, where the shard has not come to a
	// later one; it is no later than the time at which the record is moved. Default: that time.
	Hint time.Time
	Key  Key
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that
// inserts the row. It waits for nobody.
func (f *Feed) AppendOutbox(ctx context.Context, tx Tx, record OutboxRecord) error {
	a := f.appending()
	if !a.feed.Outbox {
		next := "write to the table"
		if a.feed.ULIDs != nil {
			next = "take ULIDs with Lock in the transaction that inserts the row"
		}
		return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "it has no outbox", Err: errors.ErrUnsupported, Next: next}
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

func newULIDRandom() (random dialect.ULIDRandom) {
	rand.Read(random[:])
	return random
}

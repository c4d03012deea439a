package read

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// openTimeout is the maximum time that a request waits for an open transaction which may explain its cursor. It equals
// the timeout for locks.
const openTimeout = 2 * time.Second

// errEnded means that the transaction which may explain a cursor is not open any more.
var errEnded = errors.New("a transaction ended while the page was read")

// mayBeShownLater reports whether a refusal says that a cursor is above what the database shows. A replica may have
// shown that state before this database does.
func mayBeShownLater(at feedtype.CursorState, rows *dialect.PageRows, refusal error) bool {
	return errors.Is(refusal, feedtype.CursorAhead) || errors.Is(refusal, feedtype.HistoryLost) ||
		errors.Is(refusal, feedtype.GenerationChanged) && at.Generation > rows.Generation
}

// awaitOpenChange returns nil when every commit that a replica can have shown before the call is visible here. Then a
// page that is read later decides about the cursor. It waits for one transaction at most: only one at a time can change
// the head. If that transaction does not end in time, the error has the code Locked.
func (f *Reader) awaitOpenChange(ctx context.Context, d *dialect.Feed, shard int, refusal error) error {
	replicas := f.Store.Dialect.Replicas
	if replicas == nil {
		return nil
	}
	bounded, end := context.WithTimeout(ctx, openTimeout)
	defer end()
	first := ""
	for try := 1; ; try++ {
		var now string
		err := f.Quota.Use(bounded, func() (err error) {
			now, err = replicas.OpenChange(bounded, f.Store.SQL, d, shard)
			return err
		})
		if err == nil && (now == "" || first != "" && now != first) {
			return nil
		}
		if err == nil {
			first = now
			err = store.Pause(bounded, store.Backoff(try))
		}
		switch {
		case err == nil:
		case bounded.Err() == nil || ctx.Err() != nil:
			return f.Fail("ask for open transactions", err)
		default:
			return f.stillOpen(refusal)
		}
	}
}

// stillOpen does not wrap the refusal: its code would make a consumer start over.
func (f *Reader) stillOpen(refusal error) error {
	cause := refusal.Error()
	var e *feedtype.Error
	if errors.As(refusal, &e) {
		cause = e.Cause
	}
	return &feedtype.Error{Code: feedtype.Locked, Object: feedtype.FeedObject(f.Name),
		Cause: fmt.Sprintf("%s. A replica may already have shown what an open transaction will commit, but "+
			"a transaction at the head of the feed did not end within %s", cause, openTimeout),
		Next: "try again; if this lasts, see which transaction is open (a commit may be waiting for a replica)"}
}

package consume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Errors that end one application of a page without being anybody's fault.
var (
	// errOvertaken: the cursor is no longer what was read. Another instance, or an
	// operator, has moved it, and the effects were rolled back; or the shard is to be handed
	// over before anything was done.
	errOvertaken = errors.New("the cursor has been moved by somebody else")
	// errTxEnded: the handler has ended the transaction that it was handed.
	errTxEnded = errors.New("the handler ended the transaction that it was handed")
)

// errIncomplete marks a failure of OnComplete, which is no entry's fault.
var errIncomplete = errors.New("OnComplete failed")

// handlerError is a failure that counts: of the handler, or of the database because of
// what the handler did.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }

func (e *handlerError) Unwrap() error { return e.err }

func isHandlerError(err error) bool {
	var failed *handlerError
	return errors.As(err, &failed)
}

// entryError is the error of an entry that cannot be handled, where nothing is passed over
// (OnFailure: Stop).
type entryError struct{ err error }

func (e *entryError) Error() string { return e.err.Error() }

func (e *entryError) Unwrap() error { return e.err }

// isRefusal tells whether a source's error is about the cursor.
func isRefusal(err error) bool {
	return errors.Is(err, feedtype.CursorAhead) || errors.Is(err, feedtype.GenerationChanged) || errors.Is(err, feedtype.TombstonesExpired) || errors.Is(err, feedtype.EntriesExpired)
}

// stopsOneShard tells whether an error that ends the work on a shard says nothing of
// the others.
func stopsOneShard(err error) bool {
	var entry *entryError
	return errors.As(err, &entry) || errors.Is(err, feedtype.TombstonesExpired) || errors.Is(err, feedtype.EntriesExpired)
}

// delaysOneShard tells the same of errors that pass: a shard that is a
// feed by itself is tried again while its worker goes on with others.
func delaysOneShard(err error) bool {
	return errors.Is(err, feedtype.ConsumerPaused) || errors.Is(err, feedtype.Locked) || errors.Is(err, feedtype.Filling)
}

// retry counts the failures of a shard's, and pauses between attempts.
type retry struct {
	*assignment
	failedAt feedtype.Cursor // the cursor above which the handler failed
	failures int             // how often in a row
	outages  int             // of the source or the database, in a row
	missed   int             // calls of Deliver without a decision, in a row
	denials  int             // deadlocks, locks and the like in the handler's way, in a row
	// notBefore is when a shard that has its turns is to have the next one.
	notBefore time.Time
}

// survive pauses after an error of the source or the database that will pass, and
// answers those that will not.
func (r *retry) survive(ctx context.Context, err error) error {
	if err == nil {
		r.outages = 0
		return nil
	}
	err = r.db.Store.Fail(r.object(), "consume", err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, fatal := range []feedtype.Code{feedtype.InvalidRequest, feedtype.UnknownFeed, feedtype.NotInitialized, feedtype.SchemaVersion, feedtype.CursorAhead, feedtype.GenerationChanged,
		feedtype.TombstonesExpired, feedtype.EntriesExpired, feedtype.Refused, feedtype.Conflict, feedtype.HandlerFailed, feedtype.ConsumerPaused, feedtype.LeaseLost,
		feedtype.Unauthorized, feedtype.Forbidden} { // who asks again and again with a token that holds no more keeps its address from those of others
		if errors.Is(err, fatal) {
			return r.explain(err)
		}
	}
	if r.outages++; r.once && (!errors.Is(err, feedtype.Locked) || r.outages > store.MaxAttempts) {
		return err
	}
	r.trouble(err)
	return r.pause(ctx, r.backoff(max(r.outages, r.missed)))
}

// explain adds to a refused cursor what a consumer can do about it.
func (r *retry) explain(err error) error {
	var e *feedtype.Error
	if !errors.As(err, &e) || r.feed == "" {
		return err
	}
	switch e.Code {
	case feedtype.EntriesExpired:
		return &feedtype.Error{Code: e.Code, Object: r.object(), Cause: "the source refused its cursor: " + e.Object + ": " + e.Cause, Err: e.Err,
			Next: "run `rowfeed consumer reset " + r.c.Name + " --feed " + r.feed + "` to go on with what is kept, or set OnRefused to have that done; what lies in between is only in the table. `rowfeed feed upgrade --retain` keeps entries for longer"}
	case feedtype.CursorAhead, feedtype.GenerationChanged, feedtype.TombstonesExpired:
		other := ""
		if e.Code != feedtype.TombstonesExpired {
			other = "if another source has a feed of this name, and is read under this consumer's name too, give each of them a name of its own; else "
		}
		return &feedtype.Error{Code: e.Code, Object: r.object(), Cause: "the source refused its cursor: " + e.Object + ": " + e.Cause, Err: e.Err,
			Next: other + "run `rowfeed consumer reset " + r.c.Name + " --feed " + r.feed + "` and remove what the new pass does not bring, or set OnRefused and OnComplete to have that done"}
	}
	return err
}

// backoff is the pause after the n-th failure in a row.
func (r *retry) backoff(n int) time.Duration {
	first, most := r.c.Retry.Backoff, r.c.Retry.MaxBackoff
	shift := min(n-1, 20)
	if first > most>>shift { // so that nothing overflows
		return store.Jitter(most)
	}
	return store.Jitter(first << shift)
}

// pause waits, or answers the context's error; it ends early where there is no use in
// waiting any more. A shard that has its turns only says so: it holds nobody up.
func (r *retry) pause(ctx context.Context, d time.Duration) error {
	if r.ulidShard {
		r.notBefore = time.Now().Add(d)
		return nil
	}
	if err := store.Pause(r.until, d); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// letterText is an error as a dead letter keeps it: valid text of bounded length.
func letterText(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	const most = 4000
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}

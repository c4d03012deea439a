package consume

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Errors that end one attempt to apply a page without counting as a failure of an entry.
var (
	// errOvertaken means that another instance or an operator has changed the cursor, and the effects were
	// rolled back; or that the shard is handed over before anything was done.
	errOvertaken = errors.New("another instance or an operator has moved the cursor")
	// errTxEnded means that the handler has ended the transaction.
	errTxEnded = errors.New("the handler ended the transaction that it was handed")
)

// errIncomplete marks a failure of OnComplete, which is no entry's fault.
var errIncomplete = errors.New("OnComplete failed")

// handlerError is a failure that counts as an attempt: an error of the handler, or of the database because of what the
// handler did.
type handlerError struct {
	err error
	key string // of the entry, as JSON; empty if a batch of several failed
}

func (e *handlerError) Error() string { return e.err.Error() }

func (e *handlerError) Unwrap() error { return e.err }

func isHandlerError(err error) bool {
	var failed *handlerError
	return errors.As(err, &failed)
}

// entryError is the error of an entry that cannot be handled while OnFailure is Stop.
type entryError struct{ err error }

func (e *entryError) Error() string { return e.err.Error() }

func (e *entryError) Unwrap() error { return e.err }

// isRefusal reports whether the source has refused the cursor.
func isRefusal(err error) bool {
	return errors.Is(err, feedtype.CursorAhead) || errors.Is(err, feedtype.HistoryLost) ||
		errors.Is(err, feedtype.GenerationChanged) || errors.Is(err, feedtype.TombstonesExpired) ||
		errors.Is(err, feedtype.EntriesExpired)
}

// stopsOneShard reports whether an error ends the work on one shard and says nothing about the others.
func stopsOneShard(err error) bool {
	var entry *entryError
	return errors.As(err, &entry) || errors.Is(err, feedtype.TombstonesExpired) ||
		errors.Is(err, feedtype.EntriesExpired)
}

// delaysOneShard reports whether an error is temporary and concerns one shard of a ULID feed. The worker continues with
// its other shards.
func delaysOneShard(err error) bool {
	return errors.Is(err, feedtype.ConsumerPaused) || errors.Is(err, feedtype.Locked) ||
		errors.Is(err, feedtype.Filling)
}

// retry counts the failures of one shard, and pauses between attempts.
type retry struct {
	*assignment
	failedAt feedtype.Cursor // the cursor whose page has failed
	failures int             // failed attempts of this page
	outages  int             // of the source or the database, since the last success
	missed   int             // calls of Deliver that returned an error, in a row
	denials  int             // deadlocks and lock timeouts in a row
	// cursor is where failures are stored; nil if there is none. position is that of the first entry of a page
	// that failed.
	cursor   *cursorState
	position string
	// notBefore is the time before which a shard of a ULID feed gets no turn.
	notBefore time.Time
}

// survive pauses after a temporary error of the source or the database. It returns errors that do not pass by
// themselves.
func (r *retry) survive(ctx context.Context, err error) error {
	if err == nil {
		r.outages = 0
		return nil
	}
	err = r.db.Store.Fail(r.object(), "consume", err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, fatal := range []feedtype.Code{feedtype.InvalidRequest, feedtype.UnknownFeed, feedtype.NotInitialized,
		feedtype.SchemaVersion, feedtype.CursorAhead, feedtype.HistoryLost, feedtype.GenerationChanged,
		feedtype.OtherPart, feedtype.TombstonesExpired, feedtype.EntriesExpired, feedtype.Refused, feedtype.Conflict,
		feedtype.HandlerFailed, feedtype.ConsumerPaused, feedtype.LeaseLost, feedtype.Unauthorized,
		feedtype.Forbidden} {
		if errors.Is(err, fatal) { // retries with an invalid token would get the address blocked
			return r.explain(err)
		}
	}
	if r.outages++; r.once && (!errors.Is(err, feedtype.Locked) || r.outages > store.MaxAttempts) {
		return err
	}
	return r.failed(ctx, err, "", r.backoff(max(r.outages, r.missed)))
}

// failed reports and stores a failed attempt, and pauses.
func (r *retry) failed(ctx context.Context, err error, key string, pause time.Duration) error {
	attempt := r.outages
	if r.cursor != nil {
		r.cursor.failed(ctx, err, pause, false)
		attempt = r.cursor.attempts
	}
	r.db.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: r.feed, Consumer: r.c.Name, Shard: max(r.shard, 0),
		ShardCount: r.count, Key: key, Position: r.position, Attempt: attempt, Err: err})
	return r.pause(ctx, pause)
}

// ended stores the error with which a run ends.
func (r *retry) ended(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, feedtype.ConsumerPaused) {
		r.cursor.failed(ctx, err, 0, true)
	}
}

// explain adds to a refused cursor what an operator can do.
func (r *retry) explain(err error) error {
	var e *feedtype.Error
	if !errors.As(err, &e) || r.feed == "" {
		return err
	}
	toRepeat, toEntries := "set OnRefused and OnComplete to have that done", "set OnRefused to have that done"
	if r.c.Target != "" { // a relay
		toRepeat = "run the relay with --restart, which does both at receivers that can remove rows"
		toEntries = "run the relay with --restart"
	}
	switch e.Code {
	case feedtype.EntriesExpired:
		return &feedtype.Error{Code: e.Code, Object: r.object(), Cause: "the source refused its cursor: " + e.Object +
			": " + e.Cause, Err: e.Err, Next: "run `rowfeed consumer reset " + r.c.Name + " --feed " + r.feed +
			"` to continue with the entries that are kept, or " + toEntries + "; the entries before them are " +
			"only in the table. `rowfeed feed upgrade --retain` keeps entries for longer"}
	case feedtype.CursorAhead, feedtype.HistoryLost, feedtype.GenerationChanged, feedtype.TombstonesExpired:
		other := ""
		if e.Code != feedtype.TombstonesExpired {
			other = "if a consumer of this name also reads a feed of this name from another database, give each " +
				"consumer a name of its own; else "
		}
		return &feedtype.Error{Code: e.Code, Object: r.object(), Cause: "the source refused its cursor: " + e.Object +
			": " + e.Cause, Err: e.Err, Next: other + "run `rowfeed consumer reset " + r.c.Name + " --feed " + r.feed +
			"` and remove the rows that the new pass does not deliver, or " + toRepeat}
	}
	return err
}

// backoff returns the pause after the n-th failure in a row.
func (r *retry) backoff(n int) time.Duration {
	first, most := r.c.Retry.Backoff, r.c.Retry.MaxBackoff
	shift := min(n-1, 20)
	if first > most>>shift { // prevents an overflow
		return store.Jitter(most)
	}
	return store.Jitter(first << shift)
}

// pause waits, or returns the error of the context. It ends early when the shard is to be handed over. A shard of a
// ULID feed only notes the time: its worker continues with other shards.
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

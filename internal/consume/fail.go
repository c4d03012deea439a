package consume

import (
	"context"
	"errors"
	"fmt"
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

// handlerError is a failure that counts: of the handler, or of the database because of
// what the handler did.
type handlerError struct{ err error }

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

// settle decides what an error of a page means: go on, pause and go on, or end.
func (r *consuming) settle(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var failed *handlerError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTxEnded):
		return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: "the handler ended the transaction that it was handed: what it did may be committed without the cursor",
			Next: "leave Commit and Rollback to the consumer, run no statement that commits by itself (DDL, on some databases), and answer every error of a statement"}
	case errors.Is(err, errOvertaken):
		return r.pause(ctx, store.Backoff(1))
	case errors.As(err, &failed):
		r.failures++
		r.row = nil // an operator may have paused the consumer, or moved its cursor
		if errors.Is(err, errIncomplete) && r.failures >= r.attempts() {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: fmt.Sprintf("OnComplete failed %d times", r.failures), Err: failed.err,
				Next: "mend it and start again; the pass is complete but for it"}
		}
		if r.failures == r.attempts() {
			r.denials, r.outages = 0, 0 // each entry by itself is shown the same patience
		}
		r.trouble(failed.err)
		return r.pause(ctx, r.backoff(r.failures))
	}
	return r.survive(ctx, err)
}

// survive pauses after an error of the source or the database that will pass, and
// answers those that will not.
func (r *consuming) survive(ctx context.Context, err error) error {
	if err == nil {
		r.outages = 0
		return nil
	}
	err = r.c.DB.Store.Fail(r.object(), "consume", err)
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
func (r *consuming) explain(err error) error {
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

func (r *consuming) object() string {
	if r.feed == "" {
		return fmt.Sprintf("consumer %q", r.c.Name)
	}
	if r.ofShard {
		return fmt.Sprintf("%s, shard %d", consumerObject(r.c.Name, r.feed), r.shard)
	}
	if r.count > 1 && r.shard >= 0 {
		return fmt.Sprintf("%s, shard %d of %d", consumerObject(r.c.Name, r.feed), r.shard, r.count)
	}
	return consumerObject(r.c.Name, r.feed)
}

func (r *consuming) trouble(err error) {
	r.c.DB.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: r.feed, Consumer: r.c.Name, Shard: max(r.shard, 0), ShardCount: r.count, Err: err})
}

// consumed tells of entries that were handed over, and of those that joined letters.
func (r *consuming) consumed(entries, collapsed int, at feedtype.Cursor, started time.Time) {
	r.c.DB.Store.Observer.Consumed(feedtype.ConsumeEvent{Consumer: r.c.Name, Feed: r.feed, Shard: r.shard, ShardCount: r.count,
		Entries: entries, Collapsed: collapsed, Cursor: at, Took: time.Since(started)})
}

func (r *consuming) attempts() int {
	if r.c.Retry.MaxAttempts > 0 {
		return r.c.Retry.MaxAttempts
	}
	return defaultAttempts
}

// backoff is the pause after the n-th failure in a row.
func (r *consuming) backoff(n int) time.Duration {
	first, most := r.backoffs()
	shift := min(n-1, 20)
	if first > most>>shift { // so that nothing overflows
		return store.Jitter(most)
	}
	return store.Jitter(first << shift)
}

// backoffs are the first and the longest of the pauses after failures.
func (r *consuming) backoffs() (first, most time.Duration) {
	first, most = r.c.Retry.Backoff, r.c.Retry.MaxBackoff
	if first == 0 {
		first = defaultBackoff
	}
	if most == 0 {
		most = max(defaultMaxBackoff, first)
	}
	return first, most
}

package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// consuming is one shard of a Consumer at work, in one goroutine.
type consuming struct {
	c            *Consumer
	once         bool
	shard, count int   // it has shard of count
	epoch        int64 // of the lease under which it works, see Consumer.Epoch
	// until ends when run is to end with what it has in hand, and nothing is waited for any
	// more. It is made of the context that run gets.
	until context.Context

	// slots, where there is one, has room for the transactions that this instance's shards
	// may have open at once.
	slots chan struct{}
	// setBack, if once, is where a shard notes that it has set all of them back.
	setBack *bool

	// What open has learnt of the feed; feed is empty before.
	feed       string
	key        []Column // to read dead letters' keys
	generation int64

	// row is the cursor as this run read or wrote it last; nil when the database has to
	// be asked, as after every error: what a failed COMMIT did is known there alone.
	row    *cursorRow
	readAt time.Time // when the database was asked last
	// releases: a dead letter may be there for whose release an operator has asked. What a
	// batch's keys are looked up with tells that as well.
	releases bool

	failedAt Cursor        // the cursor above which the handler failed
	failures int           // how often in a row
	outages  int           // of the source or the database, in a row
	missed   int           // calls of Deliver without a decision, in a row
	denials  int           // deadlocks, locks and the like in the handler's way, in a row
	idle     time.Duration // the next pause, where the source does not wait by itself
	complete bool          // OnComplete has been called for a feed without entries
}

// run works until the head is reached, if once, or until the shard is to be handed over.
func (r *consuming) run(ctx context.Context) error {
	for r.until.Err() == nil {
		done, err := r.step(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case done && r.once:
			return nil
		}
	}
	return nil
}

// step does one thing: opens, releases a dead letter, or handles a page. done says
// that the head was reached and nothing is left to do.
func (r *consuming) step(ctx context.Context) (done bool, err error) {
	if r.feed == "" {
		return false, r.survive(ctx, r.open(ctx, false))
	}
	if r.row == nil {
		row, err := r.loadCursor(ctx)
		if err == nil {
			row, err = r.claim(ctx, row)
		}
		if err != nil {
			return false, r.survive(ctx, err)
		}
		r.row, r.readAt, r.releases = row, time.Now(), true
	}
	if r.row.paused {
		r.row = nil
		if r.once {
			return false, r.isPaused()
		}
		return false, r.pause(ctx, jitter(pausedPoll))
	}
	if r.row.aside > 0 && r.releases && r.row.value.settled() {
		if released, err := r.release(ctx); released || err != nil {
			return false, r.settle(ctx, err)
		}
	}
	return r.turn(ctx)
}

func (r *consuming) isPaused() error {
	return &Error{Code: ConsumerPaused, Object: r.object(), Cause: "it is paused", Next: "run `rowfeed consumer resume " + r.c.Name + " --feed " + r.feed + "`"}
}

// turn fetches a page outside any transaction and applies it.
func (r *consuming) turn(ctx context.Context) (done bool, err error) {
	after, wait := r.row.value, r.wait()
	started := time.Now()
	page, err := r.c.Source.Fetch(r.until, Request{After: after, Limit: r.c.Limit, Shards: r.shards(), Wait: wait})
	if r.until.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		if r.c.OnRefused != nil && isRefusal(err) {
			return false, r.settle(ctx, r.restart(ctx, err))
		}
		r.row = nil // it may be paused by the time that the source is back
		return false, r.survive(ctx, err)
	}
	if g := page.Cursor.Generation(); r.count > 1 && g != 0 && g != r.generation {
		// The keys may be divided in another way: dead letters go first where they belong.
		if err := r.open(ctx, false); err != nil {
			r.row = nil
			return false, r.survive(ctx, err)
		}
		r.row, r.generation = nil, g
		return false, nil
	}
	if len(page.Entries) == 0 {
		r.releases = true // no batch tells
	}
	if len(page.Entries) > 0 || page.Cursor != after || r.ends(page) {
		if after != r.failedAt {
			r.failedAt, r.failures = after, 0
		}
		held := r.row.aside > 0 && !after.settled()
		if r.failures >= r.attempts() && len(page.Entries) > 0 && r.c.Deliver == nil {
			err = r.oneByOne(ctx, after, page)
		} else {
			err = r.apply(ctx, page.Entries, page.Cursor)
		}
		r.idle = firstIdle
		if err != nil {
			return false, r.settle(ctx, err)
		}
		r.outages, r.failures = 0, 0
		return !page.More && !held, nil // a pass that is through lets dead letters be released
	}
	r.outages = 0
	if time.Since(r.readAt) >= cursorPoll {
		r.row = nil // it may have been moved, and the consumer has nothing else to do
	}
	switch {
	case page.More:
		return false, nil // a page without anything to show, and more behind it
	case r.once:
		return true, nil
	case time.Since(started) < wait/2:
		// The source answers an empty page at once: pause in its place.
		idle := r.idle
		r.idle = min(idle+idle/2+firstIdle, maxIdle)
		return true, r.pause(ctx, jitter(idle))
	}
	return true, nil
}

// isRefusal tells whether a source's error is about the cursor.
func isRefusal(err error) bool {
	return errors.Is(err, CursorAhead) || errors.Is(err, GenerationChanged) || errors.Is(err, TombstonesExpired)
}

// ends tells whether a page that brings nothing, and no cursor either, ends a pass: it
// is one of a feed that has no entry.
func (r *consuming) ends(page Page) bool {
	return r.c.OnComplete != nil && !r.complete && !page.More && page.Cursor == Beginning
}

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
		return &Error{Code: HandlerFailed, Object: r.object(), Cause: "the handler ended the transaction that it was handed: what it did may be committed without the cursor",
			Next: "leave Commit and Rollback to the consumer, run no statement that commits by itself (DDL, on some databases), and answer every error of a statement"}
	case errors.Is(err, errOvertaken):
		return r.pause(ctx, backoff(1))
	case errors.As(err, &failed):
		r.failures++
		r.row = nil // an operator may have paused the consumer, or moved its cursor
		if errors.Is(err, errIncomplete) && r.failures >= r.attempts() {
			return &Error{Code: HandlerFailed, Object: r.object(), Cause: fmt.Sprintf("OnComplete failed %d times", r.failures), Err: failed.err,
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
	err = r.c.DB.fail(r.object(), "consume", err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, fatal := range []Code{InvalidRequest, UnknownFeed, NotInitialized, SchemaVersion, CursorAhead, GenerationChanged,
		TombstonesExpired, Refused, Conflict, HandlerFailed, ConsumerPaused, LeaseLost} {
		if errors.Is(err, fatal) {
			return r.explain(err)
		}
	}
	if r.outages++; r.once && (!errors.Is(err, Locked) || r.outages > maxAttempts) {
		return err
	}
	r.trouble(err)
	return r.pause(ctx, r.backoff(max(r.outages, r.missed)))
}

// explain adds to a refused cursor what a consumer can do about it.
func (r *consuming) explain(err error) error {
	var e *Error
	if !errors.As(err, &e) || r.feed == "" {
		return err
	}
	switch e.Code {
	case CursorAhead, GenerationChanged, TombstonesExpired:
		other := ""
		if e.Code != TombstonesExpired {
			other = "if another source has a feed of this name, and is read under this consumer's name too, give each of them a name of its own; else "
		}
		return &Error{Code: e.Code, Object: r.object(), Cause: "the source refused its cursor: " + e.Object + ": " + e.Cause, Err: e.Err,
			Next: other + "run `rowfeed consumer reset " + r.c.Name + " --feed " + r.feed + "` and remove what the new pass does not bring, or set OnRefused and OnComplete to have that done"}
	}
	return err
}

func (r *consuming) object() string {
	if r.feed == "" {
		return fmt.Sprintf("consumer %q", r.c.Name)
	}
	if r.count > 1 && r.shard >= 0 {
		return fmt.Sprintf("%s, shard %d of %d", consumerObject(r.c.Name, r.feed), r.shard, r.count)
	}
	return consumerObject(r.c.Name, r.feed)
}

func (r *consuming) trouble(err error) {
	r.c.DB.cfg.Observer.trouble(TroubleEvent{Feed: r.feed, Consumer: r.c.Name, Shard: max(r.shard, 0), ShardCount: r.count, Err: err})
}

// consumed tells of entries that were handed over, and of those that joined letters.
func (r *consuming) consumed(entries, collapsed int, at Cursor, started time.Time) {
	r.c.DB.cfg.Observer.consumed(ConsumeEvent{Consumer: r.c.Name, Feed: r.feed, Shard: r.shard, ShardCount: r.count,
		Entries: entries, Collapsed: collapsed, Cursor: at, Took: time.Since(started)})
}

func (r *consuming) wait() time.Duration {
	if _, err := r.row.value.parse(); err != nil {
		return 0 // "now" or "at:…": first of all the place that it means is stored
	}
	switch {
	case r.once:
		return 0
	case r.row.aside > 0 && r.c.Wait > 0:
		return min(r.c.Wait, asideWait)
	case r.row.aside > 0:
		return asideWait
	case r.c.Wait > 0:
		return r.c.Wait
	}
	return defaultWait
}

func (r *consuming) attempts() int {
	if r.c.Retry.MaxAttempts > 0 {
		return r.c.Retry.MaxAttempts
	}
	return defaultAttempts
}

// backoff is the pause after the n-th failure in a row.
func (r *consuming) backoff(n int) time.Duration {
	first, most := r.c.Retry.Backoff, r.c.Retry.MaxBackoff
	if first == 0 {
		first = defaultBackoff
	}
	if most == 0 {
		most = max(defaultMaxBackoff, first)
	}
	return jitter(min(first<<min(n-1, 20), most))
}

// inPass tells whether a cursor is on the way of a pass from the beginning: its start
// mark, which a pass carries until it is through, is written in the cursor itself.
func (c Cursor) inPass() bool {
	p, err := c.parse()
	return err == nil && (p.start || p.mark > p.position)
}

// settled tells whether a cursor is a place outside of a pass. Only there is it known
// of every key whether its latest version is above or below.
func (c Cursor) settled() bool {
	_, err := c.parse()
	return err == nil && !c.inPass()
}

// part is the cursor behind one entry in the midst of a page that was fetched above
// after and reaches to. It keeps the page's start mark, or becomes a beginning's.
func (to Cursor) part(after Cursor, e Entry) (Cursor, error) {
	end, err := to.parse()
	if err != nil {
		return "", err
	}
	position, err := parseDecimal(e.Position)
	if err != nil {
		return "", fmt.Errorf("position %q: %w", e.Position, err)
	}
	p := place{generation: end.generation, position: position, mark: end.mark}
	if from, err := after.parse(); err == nil {
		p.mark = max(p.mark, from.mark)
		if from.start {
			// The mark is the head that the page began with; where the page reached it, it
			// is the page's end. A later one would do as well: nothing was handed over above.
			p.mark = max(p.mark, end.position)
		}
	}
	return p.cursor(), nil
}

// oneByOne applies a page's entries each by itself, after the page as a whole has
// failed too often: the key at fault becomes known, and the others get through.
func (r *consuming) oneByOne(ctx context.Context, after Cursor, page Page) error {
	for i, e := range page.Entries {
		to := page.Cursor
		if i < len(page.Entries)-1 {
			var err error
			if to, err = page.Cursor.part(after, e); err != nil {
				return err
			}
		}
		err := r.apply(ctx, []Entry{e}, to)
		var failed *handlerError
		if err == nil {
			continue
		}
		if !errors.As(err, &failed) || errors.Is(err, errIncomplete) {
			return err
		}
		attempts := r.failures + 1
		if r.c.OnFailure == Stop {
			return &Error{Code: HandlerFailed, Object: r.object(), Err: failed.err,
				Cause: fmt.Sprintf("the entry at position %s with key %s failed after %d attempts", e.Position, e.Key.AppendJSON(nil), attempts),
				Next:  "mend the row or the handler and start again, or set OnFailure to SetAside"}
		}
		r.trouble(failed.err)
		if err := r.setAside(ctx, e, to, attempts, failed.err); err != nil {
			return err
		}
	}
	return nil
}

// restart begins again at the beginning, in one transaction with what the receiver
// does about that. Of dead letters nothing is known any more but that the key may be
// gone: see release. A new generation is a beginning for every shard, since it may have
// divided the keys anew; so is a cursor above the head: positions above a restored head are
// others now, and a shard that asks later may not see it any more. Tombstones that are gone
// concern the shard alone: every other one that has missed some is refused by itself.
func (r *consuming) restart(ctx context.Context, refusal error) error {
	var all *division
	if r.count > 1 && !errors.Is(refusal, TombstonesExpired) {
		info, err := r.c.Source.Info(ctx)
		if err == nil {
			all, err = r.division(info, false)
		}
		if err != nil {
			return err
		}
	}
	err := r.inTx(ctx, func(tx *sql.Tx, t *consumerTx) error {
		if err := t.handle(ctx, func() error { return r.c.OnRefused(ctx, tx, refusal) }); err != nil {
			return err
		}
		id := ConsumerID{Consumer: r.c.Name, Feed: r.feed, Shard: &r.shard}
		if all != nil {
			id.Shard = nil
		}
		if all != nil || r.row.aside > 0 {
			if err := r.c.DB.forgetPlaces(ctx, t.q, id); err != nil {
				return err
			}
		}
		if err := t.advance(ctx, Beginning, 0); err != nil || all == nil {
			return err
		}
		return all.restart(ctx, t.q)
	})
	if err == nil && all != nil {
		r.row = nil
		if r.setBack != nil {
			*r.setBack = true
		}
	}
	var failed *handlerError
	if errors.As(err, &failed) {
		return &Error{Code: HandlerFailed, Object: r.object(), Cause: "OnRefused failed", Err: failed.err, Next: "mend it and start again"}
	}
	if err == nil {
		r.complete = false
		r.trouble(refusal)
	}
	return err
}

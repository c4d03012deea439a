package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// shardRun is one shard of a Consumer at work, in one goroutine.
type shardRun struct {
	*assignment
	cursor  cursorState
	retry   retry
	pages   pageReader
	applier applier
	owners  staleOwners

	idle    time.Duration // the next pause, where the source does not wait by itself
	setBack bool          // it has set back the cursors of all shards

	// Of a shard that is a feed by itself, and has its turns:
	watermark string // how far it was when a page came to its end
	parked    bool   // paused: until somebody writes the cursor there is no turn
}

// newShardRun is the work on an assignment. It is for one goroutine.
func newShardRun(a *assignment, slots chan struct{}) *shardRun {
	r := &shardRun{assignment: a, cursor: cursorState{assignment: a}, retry: retry{assignment: a}, pages: pageReader{assignment: a, limit: cmp.Or(a.c.Limit, feedtype.DefaultLimit)}, idle: firstIdle}
	r.applier = applier{assignment: a, cursor: &r.cursor, retry: &r.retry, pages: &r.pages, dead: &deadLetters{a, &r.cursor},
		deliver: a.c.Deliver, slots: slots}
	r.owners = staleOwners{assignment: a, retry: &r.retry, alone: a.c.Handle != nil || a.count == 1 || a.ulidShard}
	return r
}

// run works until the head is reached, if once, or until the shard is to be handed over.
func (r *shardRun) run(ctx context.Context) error {
	defer r.pages.drop()
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
	return ctx.Err()
}

// step does one thing: opens, releases a dead letter, or handles a page. done says
// that the head was reached and nothing is left to do.
func (r *shardRun) step(ctx context.Context) (done bool, err error) {
	if r.feed == "" {
		return false, r.retry.survive(ctx, r.open(ctx, false))
	}
	if r.cursor.row == nil {
		row, err := r.cursor.load(ctx)
		if err == nil && r.epoch != 0 {
			row, err = r.cursor.claim(ctx, row)
		}
		if err == nil && !row.Paused && !r.owners.alone {
			if err = r.owners.waitForStale(ctx); err == nil && !r.owners.alone {
				return false, nil // the cursor is read again meanwhile
			}
		}
		if err != nil {
			return false, r.retry.survive(ctx, err)
		}
		r.cursor.known(row)
	}
	if r.cursor.row.Paused {
		r.cursor.row = nil
		r.pages.drop()
		if r.once {
			return false, r.isPaused()
		}
		r.parked = r.ulidShard
		return false, r.retry.pause(ctx, store.Jitter(pausedPoll))
	}
	if r.cursor.row.Aside > 0 && r.cursor.releases && r.cursor.row.Value.Settled() {
		if released, err := r.applier.release(ctx); released || err != nil {
			return false, r.afterFailure(ctx, err)
		}
	}
	return r.turn(ctx)
}

// turn fetches a page outside any transaction and applies it.
func (r *shardRun) turn(ctx context.Context) (done bool, err error) {
	after, wait := r.cursor.row.Value, r.wait()
	started := time.Now()
	page, err := r.pages.fetch(after, wait)
	if r.until.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	if err == nil && r.count > 1 && !r.ulidShard && after.IsBeginning() {
		err = r.leftBehind(ctx, page)
	}
	if err != nil {
		if r.c.OnRefused != nil && isRefusal(err) {
			return false, r.afterFailure(ctx, r.restart(ctx, err))
		}
		r.cursor.row = nil // it may be paused by the time that the source is back
		return false, r.retry.survive(ctx, err)
	}
	if g := page.Cursor.Generation(); r.count > 1 && !r.ulidShard && g != 0 && g != r.generation {
		// The keys may be divided in another way: dead letters go first where they belong.
		if err := r.open(ctx, false); err != nil {
			r.cursor.row = nil
			return false, r.retry.survive(ctx, err)
		}
		r.cursor.row, r.generation = nil, g
		return false, nil
	}
	if len(page.Entries) == 0 {
		r.cursor.releases = true // no batch tells
	}
	if !page.More {
		r.watermark = page.Standing
	}
	if len(page.Entries) > 0 || page.Cursor != after || r.ends(page) {
		if after != r.retry.failedAt {
			r.retry.failedAt, r.retry.failures = after, 0
		}
		held := r.cursor.row.Aside > 0 && !after.Settled()
		begun := time.Now()
		if r.retry.failures >= r.c.Retry.MaxAttempts && len(page.Entries) > 0 && r.applier.deliver == nil {
			err = r.applier.oneByOne(ctx, after, page)
		} else {
			if r.retry.failures == 0 {
				r.pages.readAhead(page)
			}
			err = r.applier.apply(ctx, page.Entries, page.Cursor)
		}
		r.pages.learn(page, time.Since(begun), err)
		r.idle = firstIdle
		if err != nil {
			return false, r.afterFailure(ctx, err)
		}
		r.retry.outages, r.retry.failures = 0, 0
		return !page.More && !held, nil // a pass that is through lets dead letters be released
	}
	return r.nothingNew(ctx, page, started, wait)
}

// nothingNew is the end of a turn whose page has brought nothing: it pauses where the source
// did not wait by itself.
func (r *shardRun) nothingNew(ctx context.Context, page feedtype.Page, started time.Time, wait time.Duration) (done bool, err error) {
	r.retry.outages = 0
	if time.Since(r.cursor.readAt) >= cursorPoll && !r.ulidShard {
		r.cursor.row = nil // it may have been moved, and the consumer has nothing else to do
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
		return true, r.retry.pause(ctx, store.Jitter(idle))
	}
	return true, nil
}

// ends tells whether a page that brings nothing, and no cursor either, ends a pass: it
// is one of a feed that has no entry.
func (r *shardRun) ends(page feedtype.Page) bool {
	return r.c.OnComplete != nil && !r.applier.complete && !page.More && page.Cursor == feedtype.Beginning
}

func (r *shardRun) wait() time.Duration {
	if _, err := r.cursor.row.Value.State(); err != nil {
		return 0 // "now" or "at:…": first of all the place that it means is stored
	}
	switch {
	case r.once, r.ulidShard:
		return 0
	case r.cursor.row.Aside > 0:
		return min(r.c.Wait, asideWait)
	}
	return r.c.Wait
}

// afterFailure decides what an error of a page means: go on, pause and go on, or end.
func (r *shardRun) afterFailure(ctx context.Context, err error) error {
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
		return r.retry.pause(ctx, store.Backoff(1))
	case errors.As(err, &failed):
		r.retry.failures++
		r.cursor.row = nil // an operator may have paused the consumer, or moved its cursor
		if errors.Is(err, errIncomplete) && r.retry.failures >= r.c.Retry.MaxAttempts {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: fmt.Sprintf("OnComplete failed %d times", r.retry.failures), Err: failed.err,
				Next: "mend it and start again; the pass is complete but for it"}
		}
		if r.retry.failures == r.c.Retry.MaxAttempts {
			r.retry.denials, r.retry.outages = 0, 0 // each entry by itself is shown the same patience
		}
		r.trouble(failed.err)
		return r.retry.pause(ctx, r.retry.backoff(r.retry.failures))
	}
	return r.retry.survive(ctx, err)
}

// rest notes why the shard stands still, and waits until it is to be tried again: after
// Retry.MaxBackoff, or when the database says that it should not rest any more.
func (r *shardRun) rest(ctx context.Context, why error) error {
	noted, err := r.cursor.noteFailure(ctx, why)
	switch {
	case err == nil && !noted:
		return nil // moved since it was tried: it does not rest where it stands now
	case err != nil && ctx.Err() == nil:
		r.trouble(err)
	}
	for left := store.Jitter(r.c.Retry.MaxBackoff); left > 0 && r.until.Err() == nil; {
		step := min(left, store.Jitter(pausedPoll))
		left -= step
		if err := r.retry.pause(ctx, step); err != nil {
			return err
		}
		wanted, err := r.cursor.wasChanged(ctx)
		if wanted {
			return nil
		}
		if err := r.retry.survive(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

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

// shardRun is the work on one shard, in one goroutine.
type shardRun struct {
	*assignment
	cursor  cursorState
	retry   retry
	pages   pageReader
	applier applier
	owners  staleOwners

	idle    time.Duration // the next pause, if the source does not wait by itself
	setBack bool          // this run has set back the cursors of all shards

	// For shards of ULID feeds:
	watermark string // of the last page that reached the head
	parked    bool   // paused: no turn until the cursor is written
}

// newShardRun prepares the work on an assignment.
func newShardRun(a *assignment, slots chan struct{}) *shardRun {
	r := &shardRun{assignment: a, cursor: cursorState{assignment: a}, retry: retry{assignment: a},
		pages: pageReader{assignment: a, limit: cmp.Or(a.c.Limit, feedtype.DefaultLimit)}, idle: firstIdle}
	r.applier = applier{assignment: a, cursor: &r.cursor, retry: &r.retry, pages: &r.pages,
		dead: &deadLetters{a, &r.cursor}, deliver: a.c.Deliver, slots: slots}
	r.retry.cursor = &r.cursor
	r.owners = staleOwners{assignment: a, retry: &r.retry, alone: a.c.Handle != nil || a.count == 1 || a.ulidShard}
	return r
}

// run works until the head is reached (RunOnce), or until the shard is to be handed over.
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

// step does one thing: it opens the feed, releases a dead letter, or handles a page. See turn for done.
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
				return false, nil // the next step reads the cursor again
			}
		}
		if err != nil {
			return false, r.retry.survive(ctx, err)
		}
		r.cursor.known(row)
		if err := r.cursor.tellTarget(ctx); err != nil {
			return false, r.retry.survive(ctx, err)
		}
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
	page, err := r.nextPage(ctx)
	if err != nil || page == nil {
		return false, err
	}
	return r.turn(ctx, *page)
}

// nextPage fetches a page outside any transaction. It returns nil if the shard is to be handed over, or if the cursor
// has to be read again first.
func (r *shardRun) nextPage(ctx context.Context) (*feedtype.Page, error) {
	after := r.cursor.row.Value
	page, err := r.pages.fetch(after, r.wait())
	if r.until.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	ofParts := r.count > 1 && !r.ulidShard
	if err == nil && ofParts {
		err = r.dataShardsChanged(after, page)
	}
	if err == nil && ofParts && after.IsBeginning() {
		err = r.leftBehind(ctx, page)
	}
	if err != nil {
		if ofParts && errors.Is(err, feedtype.OtherPart) {
			return nil, r.afterFailure(ctx, r.rebalanceAll(ctx, err))
		}
		if r.c.OnRefused != nil && isRefusal(err) {
			return nil, r.afterFailure(ctx, r.restart(ctx, err))
		}
		r.cursor.row = nil // an operator may pause the consumer meanwhile
		return nil, r.retry.survive(ctx, err)
	}
	if g := page.Cursor.Generation(); ofParts && g != 0 && g != r.generation {
		// Keys may belong to other data shards in a new generation: first reassign the dead letters.
		err := r.open(ctx, false)
		r.cursor.row = nil
		if err != nil {
			return nil, r.retry.survive(ctx, err)
		}
		r.generation = g
		return nil, nil
	}
	return &page, nil
}

// turn applies a page. done reports that the head is reached and nothing is left to do.
func (r *shardRun) turn(ctx context.Context, page feedtype.Page) (done bool, err error) {
	after := r.cursor.row.Value
	if len(page.Entries) == 0 {
		r.cursor.releases = true // no batch has looked for releases
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
		r.retry.position = ""
		if err != nil && len(page.Entries) > 0 {
			r.retry.position = page.Entries[0].Position
		}
		if err != nil {
			return false, r.afterFailure(ctx, err)
		}
		r.retry.outages, r.retry.failures = 0, 0
		if err := r.cursor.recovered(ctx, true); err != nil {
			return false, r.retry.survive(ctx, err)
		}
		return !page.More && !held, nil // after a pass, releases are possible: not done yet
	}
	return r.nothingNew(ctx, page)
}

// nothingNew ends a turn whose page has brought nothing. It pauses if the source did not wait by itself.
func (r *shardRun) nothingNew(ctx context.Context, page feedtype.Page) (done bool, err error) {
	r.retry.outages = 0
	if err := r.cursor.recovered(ctx, false); err != nil {
		return false, r.retry.survive(ctx, err)
	}
	if time.Since(r.cursor.readAt) >= cursorPoll && !r.ulidShard {
		r.cursor.row = nil // read it again: an operator may have moved it
	}
	switch {
	case page.More:
		return false, nil // an empty page with more behind it
	case r.once:
		return true, nil
	case r.pages.early:
		idle := r.idle
		r.idle = min(idle+idle/2+firstIdle, maxIdle)
		return true, r.retry.pause(ctx, store.Jitter(idle))
	}
	return true, nil
}

// ends reports whether an empty page completes a pass: that of a feed without entries.
func (r *shardRun) ends(page feedtype.Page) bool {
	return r.c.OnComplete != nil && !r.applier.complete && !page.More && page.Cursor == feedtype.Beginning
}

func (r *shardRun) wait() time.Duration {
	if _, err := r.cursor.row.Value.State(); err != nil {
		return 0 // "now" or a time: first store the position that it means
	}
	switch {
	case r.once, r.ulidShard:
		return 0
	case r.cursor.row.Aside > 0:
		return min(r.c.Wait, asideWait)
	}
	return r.c.Wait
}

// afterFailure decides after an error of a page: continue, pause and continue, or end.
func (r *shardRun) afterFailure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var failed *handlerError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTxEnded):
		return r.fail(feedtype.HandlerFailed, "the handler ended the transaction that it was handed: what it did "+
			"may be committed without the cursor",
			"leave Commit and Rollback to the consumer, run no statement that commits by itself (DDL, on some "+
				"databases), and answer every error of a statement")
	case errors.Is(err, errOvertaken):
		return r.retry.pause(ctx, store.Backoff(1))
	case errors.As(err, &failed):
		r.retry.failures++
		r.cursor.row = nil // an operator may have paused the consumer or moved its cursor
		if errors.Is(err, errIncomplete) && r.retry.failures >= r.c.Retry.MaxAttempts {
			return &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(),
				Cause: fmt.Sprintf("the function OnComplete failed %d times", r.retry.failures), Err: failed.err,
				Next: "correct the function and start again: only the end of the pass is missing"}
		}
		if r.retry.failures == r.c.Retry.MaxAttempts {
			r.retry.denials, r.retry.outages = 0, 0 // each single entry gets the full number of attempts
		}
		return r.retry.failed(ctx, failed.err, failed.key, r.retry.backoff(r.retry.failures))
	}
	return r.retry.survive(ctx, err)
}

// rest stores why the shard cannot continue, and waits until it is to be tried again: after Retry.MaxBackoff, or when
// an operator changes the cursor.
func (r *shardRun) rest(ctx context.Context, why error) error {
	pause := store.Jitter(r.c.Retry.MaxBackoff)
	if moved := r.cursor.failed(ctx, why, pause, true); moved {
		return nil // try again at once
	}
	for left := pause; left > 0 && r.until.Err() == nil; {
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

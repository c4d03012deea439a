package consume

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
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
	byShard    bool              // each shard of the feed is one by itself: see worker
	key        []feedtype.Column // to read dead letters' keys
	generation int64

	// Of a shard that is a feed by itself, and has its turns:
	ofShard   bool
	standing  string    // how far it was when a page came to its end
	notBefore time.Time // when it is to have its next turn
	parked    bool      // paused: until somebody writes the cursor there is no turn

	// row is the cursor as this run read or wrote it last; nil when the database has to
	// be asked, as after every error: what a failed COMMIT did is known there alone.
	row    *CursorRow
	readAt time.Time // when the database was asked last
	// version is that of the row as it was read or written last, also where row is nil by now.
	version int64
	// releases: a dead letter may be there for whose release an operator has asked. What a
	// batch's keys are looked up with tells that as well.
	releases bool

	// alone: nobody delivers under a term that is over, see awaitDeposed; told that it has
	// said for whom it waits.
	alone, told bool

	failedAt feedtype.Cursor     // the cursor above which the handler failed
	failures int                 // how often in a row
	outages  int                 // of the source or the database, in a row
	missed   int                 // calls of Deliver without a decision, in a row
	denials  int                 // deadlocks, locks and the like in the handler's way, in a row
	idle     time.Duration       // the next pause, where the source does not wait by itself
	asked    int                 // entries, where Consumer.Limit does not say: see limit
	slow     bool                // the last batch took so long that a page read ahead would be too old
	next     *ahead              // the page behind the one that was handled last
	reading  *feedtype.FirstSpan // of the page that is handled; nil where nobody traces
	complete bool                // OnComplete has been called for a feed without entries
}

// run works until the head is reached, if once, or until the shard is to be handed over.
func (r *consuming) run(ctx context.Context) error {
	defer r.dropAhead()
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
func (r *consuming) step(ctx context.Context) (done bool, err error) {
	if r.feed == "" {
		return false, r.survive(ctx, r.open(ctx, false))
	}
	if r.row == nil {
		row, err := r.loadCursor(ctx)
		if err == nil {
			row, err = r.claim(ctx, row)
		}
		if err == nil && !row.Paused {
			var alone bool
			if alone, err = r.awaitDeposed(ctx); err == nil && !alone {
				return false, nil // the cursor is read again meanwhile
			}
		}
		if err != nil {
			return false, r.survive(ctx, err)
		}
		r.row, r.version, r.readAt, r.releases = row, row.version, time.Now(), true
	}
	if r.row.Paused {
		r.row = nil
		r.dropAhead()
		if r.once {
			return false, r.isPaused()
		}
		r.parked = r.ofShard
		return false, r.pause(ctx, store.Jitter(pausedPoll))
	}
	if r.row.Aside > 0 && r.releases && r.row.Value.Settled() {
		if released, err := r.release(ctx); released || err != nil {
			return false, r.settle(ctx, err)
		}
	}
	return r.turn(ctx)
}

func (r *consuming) isPaused() error {
	return &feedtype.Error{Code: feedtype.ConsumerPaused, Object: r.object(), Cause: "it is paused", Next: "run `rowfeed consumer resume " + r.c.Name + " --feed " + r.feed + "`"}
}

// turn fetches a page outside any transaction and applies it.
func (r *consuming) turn(ctx context.Context) (done bool, err error) {
	after, wait := r.row.Value, r.wait()
	started := time.Now()
	page, err := r.fetch(after, wait)
	if r.until.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	if err == nil {
		err = r.leftBehind(ctx, page)
	}
	if err != nil {
		if r.c.OnRefused != nil && isRefusal(err) {
			return false, r.settle(ctx, r.restart(ctx, err))
		}
		r.row = nil // it may be paused by the time that the source is back
		return false, r.survive(ctx, err)
	}
	if g := page.Cursor.Generation(); r.count > 1 && !r.ofShard && g != 0 && g != r.generation {
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
	if !page.More {
		r.standing = page.Standing
	}
	if len(page.Entries) > 0 || page.Cursor != after || r.ends(page) {
		if after != r.failedAt {
			r.failedAt, r.failures = after, 0
		}
		held := r.row.Aside > 0 && !after.Settled()
		begun := time.Now()
		if r.failures >= r.attempts() && len(page.Entries) > 0 && r.c.Deliver == nil {
			err = r.oneByOne(ctx, after, page)
		} else {
			r.readAhead(page)
			err = r.apply(ctx, page.Entries, page.Cursor)
		}
		r.learn(page, time.Since(begun), err)
		r.idle = firstIdle
		if err != nil {
			return false, r.settle(ctx, err)
		}
		r.outages, r.failures = 0, 0
		return !page.More && !held, nil // a pass that is through lets dead letters be released
	}
	r.outages = 0
	if time.Since(r.readAt) >= cursorPoll && !r.ofShard {
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
		return true, r.pause(ctx, store.Jitter(idle))
	}
	return true, nil
}

// ends tells whether a page that brings nothing, and no cursor either, ends a pass: it
// is one of a feed that has no entry.
func (r *consuming) ends(page feedtype.Page) bool {
	return r.c.OnComplete != nil && !r.complete && !page.More && page.Cursor == feedtype.Beginning
}

func (r *consuming) wait() time.Duration {
	if _, err := r.row.Value.State(); err != nil {
		return 0 // "now" or "at:…": first of all the place that it means is stored
	}
	switch {
	case r.once, r.ofShard:
		return 0
	case r.row.Aside > 0 && r.c.Wait > 0:
		return min(r.c.Wait, asideWait)
	case r.row.Aside > 0:
		return asideWait
	case r.c.Wait > 0:
		return r.c.Wait
	}
	return defaultWait
}

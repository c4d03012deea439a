package consume

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Without Consumer.Limit the number of entries asked for adapts: it doubles while batches are
// quick and more waits, and halves when one was slow, since for so long its transaction is open.
const (
	mostAsked             = 5000
	quickBatch, slowBatch = 100 * time.Millisecond, 500 * time.Millisecond
	// staleAhead is how long a page that was read ahead may lie: who takes longer for a batch
	// gains little by it, and gets rows as they are now.
	staleAhead = time.Second
)

// limit is the number of entries to ask for.
func (r *consuming) limit() int {
	if r.c.Limit > 0 {
		return r.c.Limit
	}
	return max(r.asked, feedtype.DefaultLimit)
}

// learn adapts it to what became of a batch.
func (r *consuming) learn(page feedtype.Page, took time.Duration, err error) {
	r.slow = took >= staleAhead
	switch {
	case err != nil:
		r.asked = 0 // whatever is at fault is found sooner among few
	case took > slowBatch:
		r.asked = max(r.limit()/2, feedtype.DefaultLimit)
	case page.More && took < quickBatch:
		r.asked = min(r.limit()*2, mostAsked)
	}
}

// ahead is the page behind the batch that is being handled, read meanwhile. It is good for
// the cursor that this batch leaves, and for no other: see DESIGN.md.
type ahead struct {
	after feedtype.Cursor
	end   context.CancelFunc
	done  chan struct{}
	span  *feedtype.FirstSpan

	// Once done is closed:
	page feedtype.Page
	err  error
	at   time.Time // when it had been read
}

// readAhead has the next page read while this one is handled, where there is one: a page that
// came to the head has none, after a failure this one may have to be read again, and behind a slow batch
// it would be too old. Shards that take turns do without: each would keep a page until its next turn.
func (r *consuming) readAhead(page feedtype.Page) {
	if !page.More || len(page.Entries) == 0 || r.failures > 0 || r.slow || r.ofShard || r.c.NoReadAhead {
		return
	}
	ctx, end := context.WithCancel(r.until)
	ctx, span := r.traced(ctx)
	a := &ahead{after: page.Cursor, end: end, done: make(chan struct{}), span: span}
	req := feedtype.Request{After: page.Cursor, Limit: r.limit(), Shards: r.shards()}
	go func() {
		defer close(a.done)
		a.page, a.err = r.c.Source.Fetch(ctx, req)
		a.at = time.Now()
	}()
	r.next = a
}

// fetch reads the page above the cursor, unless it was read ahead.
func (r *consuming) fetch(after feedtype.Cursor, wait time.Duration) (feedtype.Page, error) {
	if a := r.next; a != nil && a.after == after {
		<-a.done
		// An error is met again, if it has not passed, and at the head there is waiting.
		if a.err == nil && len(a.page.Entries) > 0 && time.Since(a.at) < staleAhead {
			r.next, r.reading = nil, a.span
			a.end()
			return a.page, nil
		}
	}
	r.dropAhead()
	ctx, span := r.traced(r.until)
	r.reading = span
	return r.c.Source.Fetch(ctx, feedtype.Request{After: after, Limit: r.limit(), Shards: r.shards(), Wait: wait})
}

// traced is ctx for the reading of a page, whose span is told to those that the entries get.
func (r *consuming) traced(ctx context.Context) (context.Context, *feedtype.FirstSpan) {
	if r.c.DB == nil || r.c.DB.Tracer == nil {
		return ctx, nil
	}
	return feedtype.WithFirstSpan(ctx)
}

// dropAhead forgets the page that was read ahead, and waits until nobody reads it any more.
func (r *consuming) dropAhead() {
	if a := r.next; a != nil {
		r.next = nil
		a.end()
		<-a.done
	}
}

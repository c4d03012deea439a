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

// pageReader reads the pages of a shard, and the next one ahead.
type pageReader struct {
	*assignment
	limit   int                 // the number of entries to ask for
	slow    bool                // the last batch took so long that a page read ahead would be too old
	next    *ahead              // the page behind the one that was handled last
	reading *feedtype.FirstSpan // of the page that is handled; nil where nobody traces
}

// learn adapts the number of entries to ask for to what became of a batch.
func (p *pageReader) learn(page feedtype.Page, took time.Duration, err error) {
	p.slow = took >= staleAhead
	switch {
	case p.c.Limit > 0:
	case err != nil:
		p.limit = feedtype.DefaultLimit // whatever is at fault is found sooner among few
	case took > slowBatch:
		p.limit = max(p.limit/2, feedtype.DefaultLimit)
	case page.More && took < quickBatch:
		p.limit = min(p.limit*2, mostAsked)
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
func (p *pageReader) readAhead(page feedtype.Page) {
	if !page.More || len(page.Entries) == 0 || p.slow || p.ulidShard || p.c.NoReadAhead {
		return
	}
	ctx, end := context.WithCancel(p.until)
	a := &ahead{after: page.Cursor, end: end, done: make(chan struct{})}
	req := feedtype.Request{After: page.Cursor, Limit: p.limit, Shards: p.shards()}
	go func() {
		defer close(a.done)
		a.page, a.span, a.err = p.read(ctx, req)
		a.at = time.Now()
	}()
	p.next = a
}

// fetch reads the page above the cursor, unless it was read ahead.
func (p *pageReader) fetch(after feedtype.Cursor, wait time.Duration) (page feedtype.Page, err error) {
	if a := p.next; a != nil && a.after == after {
		<-a.done
		// An error is met again, if it has not passed, and at the head there is waiting.
		if a.err == nil && len(a.page.Entries) > 0 && time.Since(a.at) < staleAhead {
			p.next, p.reading = nil, a.span
			a.end()
			return a.page, nil
		}
	}
	p.drop()
	page, p.reading, err = p.read(p.until, feedtype.Request{After: after, Limit: p.limit, Shards: p.shards(), Wait: wait})
	return page, err
}

// read asks the source for a page. The span in which that is done is told to those that the entries get.
func (p *pageReader) read(ctx context.Context, req feedtype.Request) (feedtype.Page, *feedtype.FirstSpan, error) {
	var span *feedtype.FirstSpan
	if p.db != nil && p.db.Tracer != nil {
		ctx, span = feedtype.WithFirstSpan(ctx)
	}
	page, err := p.c.Source.Fetch(ctx, req)
	return page, span, err
}

// drop forgets the page that was read ahead, and waits until nobody reads it any more.
func (p *pageReader) drop() {
	if a := p.next; a != nil {
		p.next = nil
		a.end()
		<-a.done
	}
}

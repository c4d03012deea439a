package consume

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Without Consumer.Limit the number of entries to ask for adapts. It doubles while batches are quick and more entries
// wait. It halves after a slow batch, whose transaction was open for that long.
const (
	mostAsked             = 5000
	quickBatch, slowBatch = 100 * time.Millisecond, 500 * time.Millisecond
	// staleAhead is the maximum age of a page that was read ahead. A batch that takes longer gains little
	// from reading ahead, and its consumer should get current rows.
	staleAhead = time.Second
)

// pageReader reads the pages of a shard, and the next page ahead.
type pageReader struct {
	*assignment
	limit   int                 // the number of entries to ask for
	slow    bool                // the last batch took at least staleAhead
	next    *ahead              // the page that is read ahead, or nil
	reading *feedtype.FirstSpan // span of the page that is handled; nil without a tracer
	early   bool                // the source answered without waiting as long as it was asked to
}

// learn adapts the number of entries to ask for after a batch.
func (p *pageReader) learn(page feedtype.Page, took time.Duration, err error) {
	p.slow = took >= staleAhead
	switch {
	case p.c.Limit > 0:
	case err != nil:
		p.limit = feedtype.DefaultLimit // the entry at fault is found sooner among few
	case took > slowBatch:
		p.limit = max(p.limit/2, feedtype.DefaultLimit)
	case page.More && took < quickBatch:
		p.limit = min(p.limit*2, mostAsked)
	}
}

// ahead is the next page, read while a batch is handled. It is valid only for the cursor that this batch stores: see
// DESIGN.md.
type ahead struct {
	after feedtype.Cursor
	end   context.CancelFunc
	done  chan struct{}
	span  *feedtype.FirstSpan

	// Valid after done is closed:
	page feedtype.Page
	err  error
	at   time.Time // when the page was complete
}

// readAhead starts reading the next page while this one is handled. It does not do so at the head, after a slow batch
// (the page would be too old), and for shards of ULID feeds (each would keep a page until its next turn).
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

// fetch returns the page above the cursor: the page that was read ahead, if it is valid.
func (p *pageReader) fetch(after feedtype.Cursor, wait time.Duration) (page feedtype.Page, err error) {
	if a := p.next; a != nil && a.after == after {
		<-a.done
		// After an error, and at the head, fetch again: now with a wait.
		if a.err == nil && len(a.page.Entries) > 0 && time.Since(a.at) < staleAhead {
			p.next, p.reading = nil, a.span
			a.end()
			return a.page, nil
		}
	}
	p.drop()
	started := time.Now()
	page, p.reading, err = p.read(p.until, feedtype.Request{After: after, Limit: p.limit, Shards: p.shards(),
		Wait: wait})
	p.early = time.Since(started) < wait/2
	return page, err
}

// read asks the source for a page. The span of the request is linked to the spans of its entries.
func (p *pageReader) read(ctx context.Context, req feedtype.Request) (feedtype.Page, *feedtype.FirstSpan, error) {
	var span *feedtype.FirstSpan
	if p.db != nil && p.db.Tracer != nil {
		ctx, span = feedtype.WithFirstSpan(ctx)
	}
	page, err := p.c.Source.Fetch(ctx, req)
	return page, span, err
}

// drop discards the page that was read ahead, and waits until its goroutine has ended.
func (p *pageReader) drop() {
	if a := p.next; a != nil {
		p.next = nil
		a.end()
		<-a.done
	}
}

package read

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

const (
	// tailRows is how many positions below the head the tail begins, and the maximum rows of a shared reading.
	tailRows = 1000
	// tailTimeout is how long a reader waits for a shared reading. One connection that hangs must not delay readers
	// that could use another connection.
	tailTimeout = 5 * time.Second
	// tailKept is how long the last reading is kept for readers that were woken before it began.
	tailKept = time.Second
)

// tail lets all readers near the head of a feed share statements, whatever their cursors, limits and data shards. While
// one reading is under way, all new readers wait for a single next reading, which covers what each of them wants.
//
// The tail is not a cache: a reading serves only requests that were made before it began. (A reader that waited made
// its request when it was woken.) So the reading shows what the reader's own page would show. A reader that is alone
// reads just its own page.
type tail struct {
	readings store.Sharing[struct{}, *tailReading]

	mu     sync.Mutex
	asks   map[tailAsk]int // how many readers want each page; the next reading serves all of them
	last   *tailReading    // kept until expiry
	expiry *time.Timer
}

// tailAsk is a page that a reader wants of the tail.
type tailAsk struct {
	after  feedtype.Position
	limit  int
	shards feedtype.Shards
	bytes  int  // see dialect.PageQuery.MaxBytes
	sorted bool // see dialect.PageQuery
}

// tailReading is the result of one statement: for a single ask, or for all asks above the lowest cursor.
type tailReading struct {
	began time.Time
	ask   tailAsk // as sent to the database
	asks  int
	parts bool // the statement checked that parts are served
	rows  *dialect.PageRows
	l     *catalog.Layout

	taken sync.Once
}

// fromTail returns the rows above a cursor from a shared reading that began after since. It returns nil rows if the
// cursor is not near the head, or if the shared reading has no page for it. Then the caller has to read the page
// itself. shared is true if another reader got rows of the same reading.
func (f *Reader) fromTail(ctx context.Context, since time.Time, at feedtype.CursorState, q dialect.PageQuery,
	shards feedtype.Shards) (rows *dialect.PageRows, l *catalog.Layout, shared bool, err error) {
	ask := tailAsk{at.Position, q.Limit, shards, q.MaxBytes, q.Sorted}
	if !f.isTail(at, ask) {
		return nil, nil, false, nil
	}
	t := &f.tail
	t.mu.Lock()
	last := t.last
	if last == nil || !last.began.After(since) {
		last = nil
		if t.asks == nil {
			t.asks = make(map[tailAsk]int)
		}
		t.asks[ask]++
		defer t.removeAsk(ask)
	}
	t.mu.Unlock()
	if last != nil {
		rows, shared := last.page(ctx, f, ask)
		return rows, last.l, shared, nil
	}
	bounded, end := context.WithTimeout(ctx, tailTimeout)
	defer end()
	reading, err := t.readings.Do(bounded, struct{}{}, func(ctx context.Context) (*tailReading, error) {
		return f.readTail(ctx, ask)
	})
	switch {
	case ctx.Err() != nil:
		return nil, nil, false, ctx.Err()
	case err != nil:
		return nil, nil, false, nil // the reader's own page returns the error
	}
	rows, shared = reading.page(ctx, f, ask)
	return rows, reading.l, shared, nil
}

// isTail reports whether a cursor is near the known head. A cursor whose start mark hides tombstones is excluded: its
// page differs from other readers' pages.
func (f *Reader) isTail(at feedtype.CursorState, ask tailAsk) bool {
	if f.DialectFeed().ULIDs != nil || f.TailBytes < 0 || f.Store.Replica || at.Start || at.Mark.Above(at.Position) {
		return false
	}
	now, known := f.Watch.At(watch.Key{Feed: f.Name})
	if seen := f.History.Highest(0); seen.Position.Above(now.Head) {
		now.Head, known = seen.Position, true
	}
	return known && ask.after.Number() >= now.Head.Number()-tailRows
}

func (t *tail) removeAsk(ask tailAsk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks[ask]--; t.asks[ask] == 0 {
		delete(t.asks, ask)
	}
}

// errOtherLayout fails a shared reading that was made for another layout. Each reader then reads its own page again.
var errOtherLayout = errors.New("the feed or its table was changed")

// readTail reads a page for own and for all other asks of this moment.
func (f *Reader) readTail(ctx context.Context, own tailAsk) (*tailReading, error) {
	t := &f.tail
	t.mu.Lock()
	asks := slices.Collect(maps.Keys(t.asks))
	t.mu.Unlock()
	r := &tailReading{began: time.Now(), ask: own, asks: 1}
	parts := !own.shards.All()
	for _, ask := range asks {
		if ask == own {
			continue
		}
		r.asks++
		r.ask.shards, r.ask.limit, parts = feedtype.Shards{}, tailRows, parts || !ask.shards.All()
		r.ask.sorted = r.ask.sorted || ask.sorted
		if r.ask.after.Above(ask.after) {
			r.ask.after = ask.after
		}
	}
	l, err := f.CurrentLayout(ctx)
	if err != nil {
		return nil, err
	}
	r.l = l
	q := dialect.PageQuery{After: r.ask.after, Limit: r.ask.limit, MaxBytes: own.bytes, Sorted: r.ask.sorted}
	if r.asks > 1 { // each reader's page is cut from this one
		q.MaxBytes = min(f.MaxPageBytes, f.TailBytes)
	}
	if err := f.selectPart(ctx, l, &q, r.ask.shards); err != nil {
		return nil, err
	}
	if r.parts = r.asks > 1 && parts; r.parts {
		q.Unserved = catalog.Unplaced // some ask is for a part of this page
	}
	if r.rows, err = f.queryPage(ctx, l, q); err != nil {
		return nil, err
	}
	if r.rows.Generation != l.Generation || r.rows.Signature != l.Table.Signature {
		return nil, errOtherLayout
	}
	if err := f.History.MakeDurable(ctx, q.Shard, r.rows); err != nil {
		return nil, err
	}
	f.History.Saw(q.Shard, history.Shown(r.rows))
	if size(r.rows) <= f.TailBytes {
		t.keep(r)
	}
	return r, nil
}

// keep keeps a reading for tailKept, in place of the one before.
func (t *tail) keep(r *tailReading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last = r; t.expiry == nil {
		t.expiry = time.AfterFunc(tailKept, t.expire)
	} else {
		t.expiry.Reset(tailKept)
	}
}

// expire drops the kept reading. If it races with keep it drops the new one early: readers then read their own pages.
func (t *tail) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
}

// page is what the ask's own statement would have answered at the time of the reading. It is nil if the reading does
// not hold all of that. Shared means that another reader was given rows of this reading before.
func (r *tailReading) page(ctx context.Context, f *Reader, ask tailAsk) (_ *dialect.PageRows, shared bool) {
	rows := *r.rows
	if r.asks == 1 && ask == r.ask {
		rows.Rows = copyRows(rows.Rows)
		return &rows, !r.first()
	}
	q := dialect.PageQuery{After: ask.after}
	switch err := f.selectPart(ctx, r.l, &q, ask.shards); {
	case err != nil, r.ask.after.Above(ask.after), ask.shards != r.ask.shards && !r.ask.shards.All():
		return nil, false
	case r.ask.shards.All() && !ask.shards.All() && !r.parts:
		return nil, false // the statement did not check that parts are served
	}
	var some []dialect.PageRow
	bytes, full := 0, false
	for _, row := range r.rows.Rows {
		if !row.Position.Above(q.After) || !r.l.Feed.InPart(row, q) {
			continue
		}
		if full = len(some) == ask.limit || bytes > ask.bytes; full {
			break
		}
		some, bytes = append(some, row), bytes+rowSize(row)
	}
	complete := len(r.rows.Rows) < r.ask.limit && !rows.Truncated && !rows.Cut
	if !complete && !full && len(some) < ask.limit {
		return nil, false
	}
	rows.Rows, rows.Truncated, rows.Cut = copyRows(some), full && len(some) < ask.limit, false
	return &rows, !r.first()
}

// copyRows copies rows with their values, because assemble overwrites the values with their decoded form. Only
// rowsPerAllocation rows share memory, so that an entry that is kept does not keep the whole page.
func copyRows(rows []dialect.PageRow) []dialect.PageRow {
	own := slices.Clone(rows)
	for some := range slices.Chunk(own, rowsPerAllocation) {
		n := 0
		for _, row := range some {
			n += len(row.Key) + len(row.Values)
		}
		values := make([]any, 0, n)
		take := func(of []any) []any {
			begin := len(values)
			values = append(values, of...)
			return values[begin:len(values):len(values)]
		}
		for i, row := range some {
			some[i].Key, some[i].Values = take(row.Key), take(row.Values)
		}
	}
	return own
}

// first reports whether no reader was given rows of the reading before.
func (r *tailReading) first() (first bool) {
	r.taken.Do(func() { first = true })
	return first
}

// size is about how many bytes a page's values occupy.
func size(page *dialect.PageRows) (bytes int) {
	for _, row := range page.Rows {
		bytes += rowSize(row)
	}
	return bytes
}

func rowSize(row dialect.PageRow) (bytes int) {
	for _, values := range [][]any{row.Key, row.Values} {
		for _, v := range values {
			switch v := v.(type) {
			case string:
				bytes += len(v)
			case []byte:
				bytes += len(v)
			default:
				bytes += 8
			}
		}
	}
	return bytes
}

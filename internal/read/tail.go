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
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

const (
	// tailRows is how near to its end a feed's tail begins, and how much is read of it at once.
	tailRows = 1000
	// tailPatience is how long anybody waits for what is read together with others: one
	// connection that hangs must not hold up those who could take another.
	tailPatience = 5 * time.Second
	// tailKept is how long the last reading is kept for those who were woken before it began.
	tailKept = time.Second
)

// tail lets all who read near the end of a feed share what is read of it, whatever their
// cursors, limits and data shards: while one reading is under way all who come ask for one
// more, of everything that any of them wants, and take from it what is theirs.
//
// It is no cache of what was. Nobody is answered with a reading that began before he asked (for
// who waited: before he was woken), so that it shows whatever had happened by then as one of his
// own would: publications, deletes, generations, purges, another database. One who reads
// alone reads just what he asks for.
type tail struct {
	readings store.Sharing[struct{}, *tailReading]

	mu   sync.Mutex
	asks map[tailAsk]int // what is waited for, and by how many: the next reading is to answer it
	last *tailReading
	end  *time.Timer // of its time
}

// tailAsk is what somebody wants of the tail.
type tailAsk struct {
	after  feedtype.Position
	limit  int
	shards feedtype.Shards
	sorted bool // see dialect.PageQuery
}

// tailReading is what was read of the tail: what one ask wants, or everything above the
// lowest of several.
type tailReading struct {
	began time.Time
	ask   tailAsk // its limit is that of the statement
	asks  int
	parts bool // it was read only if parts are served
	rows  *dialect.PageRows
	l     *catalog.Layout

	taken sync.Once
}

// rows reads what is above a place, alone or from the tail. Any reading will do that began after
// since. shared says that another one has been given some of the same reading.
func (f *Reader) rows(ctx context.Context, since time.Time, at feedtype.CursorState, q dialect.PageQuery, shards feedtype.Shards) (rows *dialect.PageRows, l *catalog.Layout, shared bool, err error) {
	if ask := (tailAsk{at.Position, q.Limit, shards, q.Sorted}); f.isTail(at, ask) {
		if rows, l, shared, err = f.fromTail(ctx, since, ask); rows != nil || ctx.Err() != nil {
			return rows, l, shared, err
		}
	}
	rows, l, err = f.ReadPage(ctx, q, shards)
	return rows, l, false, err
}

// isTail tells whether a place is near the end of the feed, as far as that is known. Who is not
// to be shown tombstones below a mark of his own reads by himself.
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

// fromTail answers no rows and no error where the caller has to read by himself.
func (f *Reader) fromTail(ctx context.Context, since time.Time, ask tailAsk) (*dialect.PageRows, *catalog.Layout, bool, error) {
	t := &f.tail
	t.mu.Lock()
	last := t.last
	if last == nil || !last.began.After(since) {
		last = nil
		if t.asks == nil {
			t.asks = make(map[tailAsk]int)
		}
		t.asks[ask]++
		defer t.answered(ask)
	}
	t.mu.Unlock()
	if last != nil {
		if rows, shared := last.part(ctx, f, ask); rows != nil {
			return rows, last.l, shared, nil
		}
		return nil, nil, false, nil
	}
	patient, end := context.WithTimeout(ctx, tailPatience)
	defer end()
	reading, err := t.readings.Do(patient, struct{}{}, func(ctx context.Context) (*tailReading, error) { return f.readTail(ctx, ask) })
	switch {
	case ctx.Err() != nil:
		return nil, nil, false, ctx.Err()
	case err != nil:
		return nil, nil, false, nil // his own reading says what is wrong
	}
	rows, shared := reading.part(ctx, f, ask)
	return rows, reading.l, shared, nil
}

// answered takes an ask back, with an answer or without.
func (t *tail) answered(ask tailAsk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asks[ask]--; t.asks[ask] == 0 {
		delete(t.asks, ask)
	}
}

// errUntold: a page that is not what it was asked for as; reading it again is for who needs it.
var errUntold = errors.New("the feed or its table is another one by now")

// readTail reads for all who have asked by now, own among them.
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
	q := dialect.PageQuery{After: r.ask.after, Limit: r.ask.limit, MaxBytes: f.MaxPageBytes, Sorted: r.ask.sorted}
	if r.asks > 1 {
		q.MaxBytes = min(q.MaxBytes, f.TailBytes)
	}
	if err := f.selectPart(ctx, l, &q, r.ask.shards); err != nil {
		return nil, err
	}
	if r.parts = r.asks > 1 && parts; r.parts {
		q.Unserved = catalog.Unplaced // whoever wants a part of it
	}
	floor := f.History.Highest(q.Shard)
	if r.rows, err = f.Store.Dialect.ReadPage(ctx, f.Store.SQL, l.Feed, q); err != nil {
		return nil, err
	}
	if r.rows.Generation != l.Generation || r.rows.Signature != l.Table.Signature {
		return nil, errUntold
	}
	if err := f.History.NotSetBack(floor, r.rows.Generation, r.rows.Given); err != nil {
		return nil, err
	}
	if err := f.History.MakeDurable(ctx, q.Shard, r.rows); err != nil {
		return nil, err
	}
	f.History.Saw(q.Shard, r.rows.Generation, r.rows.Given)
	if size(r.rows) <= f.TailBytes {
		t.keep(r)
	}
	return r, nil
}

// keep keeps a reading for a while, and nothing of the one before.
func (t *tail) keep(r *tailReading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last = r; t.end == nil {
		t.end = time.AfterFunc(tailKept, t.forget)
	} else {
		t.end.Reset(tailKept)
	}
}

// forget may come just when another reading is kept: then who wants that one reads by himself.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
}

// part is what an ask would have been answered by itself at the time of the reading, as far as
// the reading tells; nil where it does not. shared says that it was not the first to be answered.
func (r *tailReading) part(ctx context.Context, f *Reader, ask tailAsk) (_ *dialect.PageRows, shared bool) {
	rows := *r.rows
	if r.asks == 1 && ask == r.ask {
		rows.Rows = ownRows(rows.Rows)
		return &rows, !r.first()
	}
	q := dialect.PageQuery{After: ask.after}
	switch err := f.selectPart(ctx, r.l, &q, ask.shards); {
	case err != nil, r.ask.after.Above(ask.after), ask.shards != r.ask.shards && !r.ask.shards.All():
		return nil, false
	case r.ask.shards.All() && !ask.shards.All() && !r.parts:
		return nil, false // nobody has looked whether parts are served
	}
	var some []dialect.PageRow
	for _, row := range r.rows.Rows {
		if row.Position.Above(q.After) && (q.To == 0 || row.Shard >= q.From && row.Shard < q.To) {
			if some = append(some, row); len(some) == ask.limit {
				break
			}
		}
	}
	if ended := len(r.rows.Rows) < r.ask.limit && !rows.Truncated && !rows.Cut; !ended && len(some) < ask.limit {
		return nil, false
	}
	rows.Rows, rows.Truncated, rows.Cut = ownRows(some), false, false
	return &rows, !r.first()
}

// ownRows are copies, since whoever makes entries of rows writes their values over with what
// they mean. As on a page that was read for one, some rows share an allocation, and not all.
func ownRows(rows []dialect.PageRow) []dialect.PageRow {
	own := slices.Clone(rows)
	for some := range slices.Chunk(own, labelsTogether) {
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

// first tells whether nobody has taken anything of the reading before.
func (r *tailReading) first() (first bool) {
	r.taken.Do(func() { first = true })
	return first
}

// size is about how many bytes a page's values take.
func size(page *dialect.PageRows) (bytes int) {
	for _, row := range page.Rows {
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
	}
	return bytes
}

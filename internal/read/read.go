package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// emptyPages bounds how many pages without any entry to show one Fetch reads.
const emptyPages = 20

// reader answers the pages of one feed. It is safe for concurrent use.
type Reader struct {
	*catalog.Feed
	History *history.History
	Watch   *watch.Watcher
	Looks   *watch.Looker
	// Pager is that of the feed's mode; the error is that of a record which this version cannot read.
	Pager func() (Pager, error)
	// MaxPageBytes and TailBytes are those of rowfeed.Config.
	MaxPageBytes, TailBytes int

	fit   fit
	pages store.Sharing[pageKey, reading] // of those who wait
	tail  tail
}

// pager is what differs between the kinds of positions when a page is read.
type Pager interface {
	// Select sets a page's query to the part of the feed that is asked for.
	Select(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error
	// Accepts tells whether a position can be one of the feed's.
	Accepts(p feedtype.Position) bool
	// At is just below the lowest position of a part that came at or after a time.
	At(ctx context.Context, t time.Time, s feedtype.Shards) (feedtype.CursorState, error)
	// Fill is told of a reader of so many entries that has come to the end of a shard in which records wait. It gives
	// positions to them, unless others have done so by now. Stuck says that nothing is left but records that cannot be
	// placed.
	Fill(ctx context.Context, shard, limit int) (stuck bool, err error)
}

// Fetch answers the page that a request asks for. It does not publish: of a consistent request that is done before.
func (f *Reader) Fetch(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
	limit, err := req.EffectiveLimit()
	if err != nil {
		return feedtype.Page{}, err
	}
	asked := pageKey{after: req.After, limit: limit, shards: req.Shards}
	if req.Wait > 0 {
		return f.await(ctx, asked, req.Wait)
	}
	got, err := f.read(ctx, time.Now(), asked)
	return got.Page, err
}

// Look reads the entry behind a cursor in one shard, for somebody who does not consume it: no records are moved for
// it, and the Observer is not told.
func (f *Reader) Look(ctx context.Context, after feedtype.Cursor, shard int) (feedtype.Page, error) {
	got, err := f.read(ctx, time.Now(), pageKey{after: after, limit: 1, shards: feedtype.One(shard), still: true})
	return got.Page, err
}

// SelectPart makes the query for a part of the feed, or answers why there is none.
func (f *Reader) SelectPart(ctx context.Context, shards feedtype.Shards) (q dialect.PageQuery, err error) {
	_, err = f.layoutOf(ctx, &q, shards)
	return q, err
}

// reading is a page, and how far the feed, or the shard, was when it was read.
type reading struct {
	feedtype.Page
	key watch.Key
	at  watch.Standing
	// stuck says that nothing but records that cannot be placed waits behind the page.
	stuck bool
}

// read reads a page, which is empty only when nothing is to be shown, or after
// emptyPages tries. It shows whatever had happened by then.
func (f *Reader) read(ctx context.Context, then time.Time, asked pageKey) (reading, error) {
	started := time.Now()
	at, err := f.resolve(ctx, asked.after, asked.shards)
	if err != nil {
		return reading{}, err
	}
	var got reading
	vanished, shared := 0, false
	for range emptyPages {
		limit := f.fit.cap(asked.limit)
		q := dialect.PageQuery{After: at.Position, Mark: at.Mark, Limit: limit, MaxBytes: f.MaxPageBytes, Sorted: limit < asked.limit}
		if at.Start {
			q.Mark = feedtype.LastPosition // the head of this page, whatever it is
		}
		rows, l, together, err := f.rows(ctx, then, at, q, asked.shards)
		if err != nil {
			return reading{}, err
		}
		shared = shared || together
		f.fit.learn(rows, limit)
		got.key, got.at = keyToWatch(l, rows), watch.Standing{Generation: rows.Generation, Head: rows.Given}
		if asked.after == feedtype.Now {
			at = feedtype.CursorState{Generation: rows.Generation, Position: rows.Head.Max(rows.EntriesBelow)}
			if rows.Filling && !rows.LiveFrom.IsZero() { // above all that is being placed
				at.Position = at.Position.Max(rows.LiveFrom.Before())
			}
		}
		if at, err = f.judge(at, rows); err != nil {
			return reading{}, f.unlessReadOnly(ctx, err)
		}
		position, more := next(at.Position, rows, limit)
		if at.Position = position; !rows.EntriesBelow.IsZero() {
			at.Position = position.Max(rows.EntriesBelow)
			rows.Rows = slices.DeleteFunc(rows.Rows, func(r dialect.PageRow) bool { return !r.Position.Above(rows.EntriesBelow) })
		}
		var left int
		if got.Page, left, err = assemble(l, rows); err != nil {
			return reading{}, f.Fail("read a row", err)
		}
		vanished += left
		got.More = more
		if got.key.OfShard {
			got.Standing = got.at.String()
		}
		got.Cursor = at.Cursor()
		if rows.Waiting && asked.after != feedtype.Now && !asked.still && f.Store.Publishes() {
			if len(got.Entries) == 0 && !got.More {
				got.stuck, err = f.fill(ctx, got.key.Shard, asked.limit)
			}
			if err != nil {
				return reading{}, err
			}
			got.More = !got.stuck
		}
		if len(got.Entries) > 0 || !got.More {
			break
		}
		then = time.Now() // for an older reading this place may be one ahead
	}
	if !asked.still { // else nobody fetches: it is asked how far somebody is behind
		f.Store.Observer.Fetched(feedtype.FetchEvent{Feed: f.Name, Entries: len(got.Entries), Deletes: deletes(got.Entries), Vanished: vanished, Shared: shared, Took: time.Since(started)})
	}
	return got, nil
}

func deletes(entries []feedtype.Entry) (n int) {
	for i := range entries {
		if entries[i].Op == feedtype.Delete {
			n++
		}
	}
	return n
}

// resolve turns a request's cursor into a place. "now" reads a page above every
// position, which brings the head alone.
func (f *Reader) resolve(ctx context.Context, after feedtype.Cursor, shards feedtype.Shards) (feedtype.CursorState, error) {
	if after == feedtype.Now {
		return feedtype.CursorState{Generation: f.Generation(), Position: feedtype.LastPosition}, nil
	}
	if t, ok, err := after.Time(); ok {
		if err != nil {
			return feedtype.CursorState{}, err
		}
		pager, err := f.Pager()
		if err != nil {
			return feedtype.CursorState{}, err
		}
		return pager.At(ctx, t, shards)
	}
	at, err := after.State()
	switch {
	case err != nil || at.Start || f.accepts(at.Seen()):
	case at.Generation != f.Generation(): // a feed of another kind had the name
		err = otherGeneration(f.Name, at, f.Generation())
	default:
		err = &feedtype.Error{Code: feedtype.InvalidRequest, Param: "after", Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("after: %q is a cursor of a feed with other positions", after),
			Next: "send back a cursor that this feed gave"}
	}
	return at, err
}

// readPage reads a page with the columns and data shards that the feed has at the time
// of the page: when they are not those the statement was made for, it is made again.
func (f *Reader) ReadPage(ctx context.Context, q dialect.PageQuery, shards feedtype.Shards) (*dialect.PageRows, *catalog.Layout, error) {
	const tries = 5
	for try := 1; ; try++ {
		asked := q
		asked.AnyDatabase = f.Store.Replica
		l, err := f.layoutOf(ctx, &asked, shards)
		if err != nil {
			return nil, nil, err
		}
		floor := f.History.Highest(asked.Shard)
		rows, err := f.Store.Dialect.ReadPage(ctx, f.Store.SQL, l.Feed, asked)
		switch {
		case err == nil && rows.Generation == l.Generation && rows.Signature == l.Table.Signature:
			if err := f.History.NotSetBack(floor, rows.Generation, rows.Given); err != nil {
				return nil, nil, f.unlessReadOnly(ctx, err)
			}
			if err := f.History.MakeDurable(ctx, asked.Shard, rows); err != nil {
				return nil, nil, err
			}
			f.History.Saw(asked.Shard, rows.Generation, rows.Given) // not before: a crash may take it back, and nobody was shown it
			return rows, l, nil
		case err != nil && f.Store.Dialect.Classify(err) == dialect.ClassRetry && try < tries:
			if err := store.Pause(ctx, store.Backoff(try)); err != nil {
				return nil, nil, err
			}
			continue
		case err != nil && f.Store.Dialect.Classify(err) != dialect.ClassUndefined || try == tries:
			unindexed := ""
			if err != nil && asked.To > 0 {
				unindexed, _ = f.VerifyParts(ctx) // where that fails the page's own error tells
			}
			switch {
			case err == nil && asked.To > 0 && rows.Signature == "":
				err = l.RefuseParts() // one server says so, and another does not
			case err == nil: // or the name is another thing's now
				err = f.Explain(ctx, "read a page", errors.New("the table's columns change too fast"))
			case unindexed != "":
				err = f.MissingIndex(unindexed)
			case f.Store.Dialect.Classify(err) == dialect.ClassUndefined: // the index that the statement names is gone
				err = f.Explain(ctx, "read a page", err)
			case errors.Is(err, feedtype.ErrNoULID):
				err = f.HoldsNoULID(asked.Shard, err)
			}
			return nil, nil, f.Fail("read a page", err)
		}
		// A table, a column or the feed itself is another one now.
		if err := f.Reload(ctx); err != nil {
			return nil, nil, err
		}
		if err == nil && rows.Signature == "" {
			if err := f.History.InItsDatabase(ctx); err != nil {
				return nil, nil, f.unlessReadOnly(ctx, err)
			}
		}
	}
}

func (f *Reader) fill(ctx context.Context, shard, limit int) (stuck bool, err error) {
	pager, err := f.Pager()
	if err != nil {
		return false, err
	}
	return pager.Fill(ctx, shard, limit)
}

func (f *Reader) accepts(p feedtype.Position) bool {
	pager, err := f.Pager()
	return err == nil && pager.Accepts(p)
}

func (f *Reader) selectPart(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error {
	pager, err := f.Pager()
	if err != nil {
		return err
	}
	return pager.Select(ctx, l, q, s)
}

// layoutOf is the layout that a query for a part of the feed is made for. What is known
// of the feed may be old, so nothing is refused by it before it was read again.
func (f *Reader) layoutOf(ctx context.Context, q *dialect.PageQuery, shards feedtype.Shards) (*catalog.Layout, error) {
	for fresh := false; ; fresh = true {
		l, err := f.CurrentLayout(ctx)
		if err != nil {
			return nil, err
		}
		if err = f.selectPart(ctx, l, q, shards); err == nil || fresh {
			return l, err
		}
		if err := f.Reload(ctx); err != nil {
			return nil, err
		}
	}
}

// watchKey is what a page's standing is of.
func keyToWatch(l *catalog.Layout, rows *dialect.PageRows) watch.Key {
	return watch.Key{Feed: l.Feed.Name, OfShard: l.Feed.ULIDs != nil, Shard: rows.Shard}
}

// judge refuses a place that is not of this feed's history, and completes one at
// the beginning. A refusal says what to do; it is never answered with silence.
func (f *Reader) judge(at feedtype.CursorState, rows *dialect.PageRows) (feedtype.CursorState, error) {
	if at.Start {
		at = feedtype.CursorState{Generation: rows.Generation, Mark: rows.Head, Position: rows.EntriesBelow}
		return at, filling(f.Name, at, rows)
	}
	refuse := func(code feedtype.Code, format string, args ...any) (feedtype.CursorState, error) {
		return feedtype.CursorState{}, refusal(f.Name, code, format, args...)
	}
	// A row that is there is not ahead, even where nobody was given its ULID: check tells.
	ahead := rows.Given.Max(rows.Head).Max(rows.EntriesBelow)
	switch {
	case f.Store.Replica && at.Generation > rows.Generation:
		// The bump is on its way here. Until then nothing that is here is for this cursor.
		rows.Rows, rows.Head = nil, feedtype.Position{}
		return at, nil
	case at.Generation != rows.Generation:
		return feedtype.CursorState{}, otherGeneration(f.Name, at, rows.Generation)
	case at.Seen().Above(ahead) && f.Store.Replica:
		// The replica lags. Rows may be here yet whose deletes, up to the mark, this cursor
		// is never told of.
		rows.Rows, rows.Head = nil, feedtype.Position{}
		return at, nil
	case at.Seen().Above(ahead):
		return refuse(feedtype.CursorAhead, "cursor %q is ahead of the feed's head %s: it belongs to another feed, shard or database, or the database was set back",
			at.Cursor(), ahead)
	case rows.TombstonesBelow.Above(at.Seen()):
		return refuse(feedtype.TombstonesExpired, "cursor %q is older than the tombstones kept (from position %s): deletes since then are forgotten",
			at.Cursor(), rows.TombstonesBelow)
	case rows.EntriesBelow.Above(at.Position):
		return feedtype.CursorState{}, &feedtype.Error{Code: feedtype.EntriesExpired, Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("cursor %q is older than the entries kept (from position %s): those in between were purged", at.Cursor(), rows.EntriesBelow),
			Next: `start again at the beginning (after=""), which is that of what is kept, and take what is missing from the table`}
	}
	return at, filling(f.Name, at, rows)
}

func refusal(feed string, code feedtype.Code, format string, args ...any) error {
	return &feedtype.Error{Code: code, Object: feedtype.FeedObject(feed), Cause: fmt.Sprintf(format, args...),
		Next: `start again at the beginning (after="") and remove what the new pass does not bring`}
}

func otherGeneration(feed string, at feedtype.CursorState, generation int64) error {
	return refusal(feed, feedtype.GenerationChanged, "cursor %q is of generation %d, the feed is at generation %d: positions of before were lost with a restored backup or a failover, or the feed was made or divided anew",
		at.Cursor(), at.Generation, generation)
}

// unlessReadOnly turns a refusal that only a primary can know to be right into
// ReadOnly, when the server is none: it may lag.
func (f *Reader) unlessReadOnly(ctx context.Context, refusal error) error {
	if f.Store.Replica || !errors.Is(refusal, feedtype.CursorAhead) && !errors.Is(refusal, feedtype.DatabaseChanged) && !errors.Is(refusal, feedtype.GenerationChanged) {
		return refusal
	}
	if _, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names); err != nil {
		return f.Fail("read a page", err)
	}
	return refusal
}

// fit remembers how many rows of a feed fit into a page's bytes. A page that was cut
// has made the database send rows in vain; the next one asks for fewer.
type fit struct{ rows atomic.Int64 }

func (f *fit) cap(limit int) int {
	if rows := f.rows.Load(); rows > 0 {
		return int(min(int64(limit), rows))
	}
	return limit
}

func (f *fit) learn(page *dialect.PageRows, limit int) {
	rows := f.rows.Load()
	switch {
	case page.Truncated:
		f.rows.Store(int64(len(page.Rows)))
	case rows > 0 && int64(limit) == rows && len(page.Rows) == limit: // it filled the page and was not cut
		if rows *= 2; rows > feedtype.MaxLimit {
			rows = 0
		}
		f.rows.Store(rows)
	}
}

// next is the position that a page reaches, and whether there was more. A page
// that was not cut reaches its head, also where filters left entries out.
func next(after feedtype.Position, rows *dialect.PageRows, limit int) (position feedtype.Position, more bool) {
	if len(rows.Rows) < limit && !rows.Truncated && !rows.Cut {
		return after.Max(rows.Head), false
	}
	last := rows.Rows[len(rows.Rows)-1].Position
	return last, rows.Head.Above(last)
}

// filling refuses a place from which rows that are placed later would be missed.
func filling(feed string, at feedtype.CursorState, rows *dialect.PageRows) error {
	if !rows.Filling || !rows.LiveFrom.IsZero() && !rows.LiveFrom.Before().Above(at.Position) {
		return nil
	}
	return &feedtype.Error{Code: feedtype.Filling, Object: feedtype.FeedObject(feed), Cause: fmt.Sprintf("rows of before it are being placed behind the head of shard %d, and would be missed from cursor %q on", rows.Shard, at.Cursor()),
		Next: "try again when back-fill is done; should it have broken off, `rowfeed feed backfill " + feed + "` goes on with it"}
}

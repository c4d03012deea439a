package read

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// maxEmptyPages is the maximum number of pages without an entry that a fetch reads before it returns.
const maxEmptyPages = 20

// Reader reads the pages of one feed. It is safe for concurrent use.
type Reader struct {
	*catalog.Feed
	History *history.History
	Watch   *watch.Watcher
	Poller  *watch.Poller
	// Pager returns the Pager of the feed's mode. It fails if this version cannot read the feed's record.
	Pager func() (Pager, error)
	Quota *store.FeedQuota // of connections that read pages
	// MaxPageBytes and TailBytes are the fields of rowfeed.Config.
	MaxPageBytes, TailBytes int

	rowBytes rowBytes
	pages    store.Sharing[pageKey, reading] // pages for waiting readers
	tail     tail
}

// Pager has what differs between the kinds of positions when a page is read.
type Pager interface {
	// Select restricts a page's query to a part of the feed.
	Select(ctx context.Context, l *catalog.Layout, q *dialect.PageQuery, s feedtype.Shards) error
	// Accepts reports whether a position has the kind of the feed's positions.
	Accepts(p feedtype.Position) bool
	// At returns the state just below the lowest position of a part that was published at or after a time.
	At(ctx context.Context, t time.Time, s feedtype.Shards) (feedtype.CursorState, error)
	// MoveWaiting gives positions to up to limit outbox records of a shard, unless another process has done so. A
	// reader calls it at the end of a shard in which records wait. Stuck means that only records are left that cannot
	// get a position.
	MoveWaiting(ctx context.Context, shard, limit int) (stuck bool, err error)
}

// Fetch returns the page that a request asks for. It does not publish: rowfeed.Feed does so for consistent requests.
func (f *Reader) Fetch(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
	limit, err := req.EffectiveLimit()
	if err != nil {
		return feedtype.Page{}, err
	}
	asked := pageKey{after: req.After, limit: limit, shards: req.Shards}
	if req.Wait > 0 {
		return f.waitForEntries(ctx, asked, req.Wait, req.Room)
	}
	bytes, err := enter(ctx, req.Room)
	if err != nil {
		return feedtype.Page{}, err
	}
	got, err := f.read(ctx, time.Now(), asked, bytes)
	return got.Page, err
}

// Inspect reads the first entry after a cursor in one shard, to show it to an operator. It moves no outbox records and
// does not call the Observer.
func (f *Reader) Inspect(ctx context.Context, after feedtype.Cursor, shard int) (feedtype.Page, error) {
	asked := pageKey{after: after, limit: 1, shards: feedtype.One(shard), inspect: true}
	got, err := f.read(ctx, time.Now(), asked, unbounded)
	return got.Page, err
}

// pageKey is a request for a page. Readers with equal keys can share the page.
type pageKey struct {
	after   feedtype.Cursor
	limit   int
	shards  feedtype.Shards
	inspect bool // see Inspect
}

// reading is a page with the watermark that its own snapshot showed.
type reading struct {
	feedtype.Page
	key       watch.Key
	watermark watch.Watermark
	// stuck is true if the only records that wait after the page are outbox records that cannot get a position.
	stuck bool
}

// read reads a page that shows everything committed before asOf. The page is empty only if there is nothing to show, or
// after maxEmptyPages pages without an entry. Its memory is bounded by room, in bytes, but it has at least one entry.
func (f *Reader) read(ctx context.Context, asOf time.Time, asked pageKey, room int) (reading, error) {
	started := time.Now()
	at, err := f.cursorState(ctx, asked.after, asked.shards)
	if err != nil {
		return reading{}, err
	}
	var got reading
	vanished, shared := 0, false
	settled := false // no open transaction can explain that the cursor is above the head
	var again error  // why the last page has to be read again
	wanted := f.rowsFor(asked)
	for range maxEmptyPages {
		most, maxBytes := f.fit(wanted, room)
		limit := f.rowBytes.limit(most, maxBytes)
		q := dialect.PageQuery{After: at.Position, Mark: at.Mark, Limit: limit, MaxBytes: maxBytes,
			Sorted: limit < most}
		if at.Start {
			q.Mark = feedtype.LastPosition // the head of this page, whatever it is
		}
		rows, l, reused, err := f.fromTail(ctx, asOf, at, q, asked.shards)
		if rows == nil && err == nil {
			rows, l, err = f.ReadPage(ctx, q, asked.shards)
		}
		if err != nil {
			return reading{}, err
		}
		shared = shared || reused
		f.rowBytes.learn(rows, most, limit, maxBytes)
		got.key = watch.Key{Feed: l.Feed.Name, OfShard: l.Feed.ULIDs != nil, Shard: rows.Shard}
		got.watermark = watch.Watermark{Generation: rows.Generation, Head: rows.Given, Term: rows.Term}
		if asked.after == feedtype.Now {
			at = headState(rows)
		}
		part, err := partOf(l, asked.shards)
		had := at.Part
		if l.Feed.OwnShard != "" && had.To-had.From == 1 && part != (feedtype.CursorPart{}) {
			had.Of = part.Of // one data shard has the same rows with every number of data shards
		}
		if err == nil && !had.Includes(part) {
			err = f.otherPart(at, part)
		}
		if err != nil {
			return reading{}, err
		}
		valid, terms, err := f.judge(ctx, at, l, rows)
		if errors.Is(err, history.ErrOtherHistory) {
			asOf, again = time.Now(), err
			continue
		}
		if err != nil {
			err = f.refuseOnPrimary(ctx, err)
			if settled || !mayBeShownLater(at, rows, err) {
				return reading{}, err
			}
			if err := f.awaitOpenChange(ctx, l.Feed, rows.Shard, err); err != nil {
				return reading{}, err
			}
			asOf, settled, again = time.Now(), true, errEnded
			continue
		}
		at, again = valid, nil
		at.Part = part
		position, more := next(at.Position, rows, limit)
		if part != (feedtype.CursorPart{}) && !l.Feed.Sharded() {
			end, err := f.keepPart(l, rows, part, asked.limit)
			if err != nil {
				return reading{}, f.Fail("find the part of a key", err)
			}
			if !end.IsZero() {
				position, more = end, true
			}
		}
		if at.Position = position; !rows.EntriesBelow.IsZero() {
			at.Position = position.Max(rows.EntriesBelow)
			rows.Rows = slices.DeleteFunc(rows.Rows, func(r dialect.PageRow) bool {
				return !r.Position.Above(rows.EntriesBelow)
			})
		}
		var left int
		if got.Page, left, err = assemble(l, rows, terms); err != nil {
			return reading{}, f.Fail("read a row", err)
		}
		vanished += left
		got.More, got.Cursor = more, at.Cursor()
		if got.key.OfShard {
			got.Standing = got.watermark.String()
		}
		if rows.Waiting && asked.after != feedtype.Now && !asked.inspect && f.Store.Publishes() {
			if len(got.Entries) == 0 && !got.More {
				pager, err := f.Pager()
				if err != nil {
					return reading{}, err
				}
				if got.stuck, err = pager.MoveWaiting(ctx, got.key.Shard, asked.limit); err != nil {
					return reading{}, err
				}
			}
			got.More = !got.stuck
		}
		if len(got.Entries) > 0 || !got.More {
			break
		}
		asOf = time.Now() // an older reading may end below this cursor
	}
	if again != nil {
		return reading{}, f.readAgain(again)
	}
	if !asked.inspect {
		f.Store.Observer.Fetched(feedtype.FetchEvent{Feed: f.Name, Entries: len(got.Entries),
			Deletes: deletes(got.Entries), Vanished: vanished, Shared: shared, Took: time.Since(started)})
	}
	return got, nil
}

// rowsFor returns how many rows a page reads for a request. A page of which most rows belong to other parts reads more.
func (f *Reader) rowsFor(asked pageKey) int {
	d := f.DialectFeed()
	from, to, err := asked.shards.Range(feedtype.Undivided)
	if _, one := asked.shards.Single(); err != nil || one || asked.shards.All() || d.ULIDs != nil || d.Sharded() {
		return asked.limit
	}
	return max(asked.limit, min(asked.limit*feedtype.Undivided/(to-from), tailRows))
}

// judge is validateCursor, and reads the terms of a feed whose rows hold their positions. The error is
// history.ErrOtherHistory if the page has to be read again.
func (f *Reader) judge(ctx context.Context, at feedtype.CursorState, l *catalog.Layout, rows *dialect.PageRows) (
	valid feedtype.CursorState, terms *history.Terms, err error,
) {
	if valid, err = f.validateCursor(ctx, at, rows); err != nil || !l.Feed.ReadsRows() || rows.Term == 0 {
		return valid, nil, err
	}
	terms, err = f.History.Terms(ctx, history.State{Head: rows.Given.Number(), Term: rows.Term})
	return valid, terms, err
}

// readAgain is the error of a page that could not be judged, because the database was replaced meanwhile.
func (f *Reader) readAgain(err error) error {
	return &feedtype.Error{Code: feedtype.Unavailable, Object: feedtype.FeedObject(f.Name), Cause: "read a page",
		Err: err, Next: "try again"}
}

func deletes(entries []feedtype.Entry) (n int) {
	for i := range entries {
		if entries[i].Op == feedtype.Delete {
			n++
		}
	}
	return n
}

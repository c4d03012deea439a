package read

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// waitForEntries returns a page with entries as soon as there is one. When wait is over it returns the page of that
// moment. It asks again with the cursor that each page gave, as a polling client does, so both receive the same pages.
func (f *Reader) waitForEntries(ctx context.Context, asked pageKey, wait time.Duration,
	room feedtype.Room,
) (feedtype.Page, error) {
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	got, err := f.knownEmpty(ctx, asked)
	if err == nil && got == nil {
		got, err = f.readUnlocked(ctx, over, nil, asked, room)
	}
	ignoreKnown := false
	var news watch.Watermark // the watermark that woke this reader last
	stuck := 0
	for err == nil && len(got.Entries) == 0 {
		var woken *watch.Crowd
		before := got
		if !got.More {
			leave(room)
			var how watch.Verdict
			how, woken, news = f.Watch.Wait(over, got.key, got.watermark, ignoreKnown)
			switch {
			case ctx.Err() != nil:
				return feedtype.Page{}, f.Fail("wait for an entry", ctx.Err())
			case how == watch.Quiet && !got.key.OfShard: // a writer can use a ULID late, which moves no watermark
				return got.Page, nil
			}
		}
		if before.stuck { // every poll of the watcher finds the stuck records again
			stuck++
			_ = store.Pause(over, store.Backoff(stuck))
		}
		asked.after = before.Cursor
		got, err = f.readUnlocked(ctx, over, woken, asked, room)
		if over.Err() != nil {
			break
		}
		ignoreKnown = err == nil && !before.More && (got.watermark == before.watermark || news.Ahead(got.watermark))
	}
	if err != nil {
		return feedtype.Page{}, err
	}
	return got.Page, nil
}

// knownEmpty is the empty page of a cursor that is the last known head, or nil for any other cursor. Nearly all waiting
// readers have such a cursor, and they go back to waiting without a statement. The known head may be old. The watcher
// then wakes the reader, and it confirms the head by a later poll before the reader is answered.
func (f *Reader) knownEmpty(ctx context.Context, asked pageKey) (*reading, error) {
	at, err := asked.after.State()
	if err != nil || at.Start || at.Mark.Above(at.Position) {
		return nil, nil // read returns the error
	}
	// Not for a shard with ULIDs: a writer can use a ULID late, which moves no watermark.
	key := watch.Key{Feed: f.Name}
	now, ok := f.Watch.At(key)
	if !ok || at.Head != at.Position ||
		now != (watch.Watermark{Generation: at.Generation, Head: at.Position, Term: at.Term}) {
		return nil, nil
	}
	l, err := f.CurrentLayout(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf(l, asked.shards)
	if err != nil || !at.Part.Includes(part) ||
		f.selectPart(ctx, l, &dialect.PageQuery{}, asked.shards) != nil {
		return nil, nil
	}
	page := feedtype.Page{Entries: []feedtype.Entry{}, Cursor: asked.after, Key: l.Key, Columns: l.Columns}
	return &reading{Page: page, key: key, watermark: now}, nil
}

// readUnlocked is readShared, and tries again until over ends while another transaction locks what the page needs.
func (f *Reader) readUnlocked(ctx, over context.Context, woken *watch.Crowd, key pageKey, room feedtype.Room) (
	*reading, error,
) {
	for tries := 1; ; tries++ {
		bytes, err := enter(ctx, room)
		if err != nil {
			return nil, err
		}
		got, err := f.readShared(ctx, woken, key, bytes)
		if !errors.Is(err, feedtype.Locked) {
			return got, err
		}
		leave(room)
		if store.Pause(over, store.Backoff(tries)) != nil {
			return got, err
		}
		woken = nil // a crowd keeps its result, here the error
	}
}

// NewPages makes what the readers of a watch.Crowd share.
func NewPages() any { return &store.Sharing[pageKey, reading]{Keep: true} }

// readShared reads a page together with all readers that want the same page: those of the crowd or, if woken is nil,
// all readers that ask now. The room of one of them bounds the page. The caller owns the entries, and must not write to
// their values.
func (f *Reader) readShared(ctx context.Context, woken *watch.Crowd, key pageKey, room int) (*reading, error) {
	pages := &f.pages
	if woken != nil {
		pages = woken.Pages.(*store.Sharing[pageKey, reading])
	}
	got, err := pages.Do(ctx, key, func(ctx context.Context) (reading, error) {
		asOf := time.Now()
		if woken != nil {
			asOf = woken.At
		}
		got, err := f.read(ctx, asOf, key, room)
		got.Page = got.ForMany()
		return got, err
	})
	if err != nil {
		return nil, f.Fail("read a page", err)
	}
	got.Entries = slices.Clone(got.Entries)
	return &got, nil
}

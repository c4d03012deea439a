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

// pageKey is what a page is the answer to.
type pageKey struct {
	after  feedtype.Cursor
	limit  int
	shards feedtype.Shards
	still  bool // who looks moves no records
}

// await answers a page with entries as soon as there is one, and when wait is over the
// page that there is then. It does what a caller would do that asks again and again with
// the cursor it was given, so that nothing is told by waiting that polling would not tell.
func (f *Reader) await(ctx context.Context, asked pageKey, wait time.Duration) (feedtype.Page, error) {
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	got, err := f.resting(ctx, asked)
	if err == nil && got == nil {
		got, err = f.shareInTime(ctx, over, nil, asked)
	}
	patient := false
	var news watch.Standing // what woke us last
	stuck := 0
	for err == nil && len(got.Entries) == 0 {
		var woken *watch.Crowd
		before := got
		if !got.More {
			var how watch.Verdict
			how, woken, news = f.Watch.Wait(over, got.key, got.at, patient)
			switch {
			case ctx.Err() != nil:
				return feedtype.Page{}, f.Fail("wait for an entry", ctx.Err())
			case how == watch.Quiet && !got.key.OfShard: // what a writer uses late moves no state
				return got.Page, nil
			}
		}
		if before.stuck { // what waits there is news at every look
			stuck++
			_ = store.Pause(over, store.Backoff(stuck))
		}
		asked.after = before.Cursor
		got, err = f.shareInTime(ctx, over, woken, asked)
		if over.Err() != nil {
			break
		}
		patient = err == nil && !before.More && (got.at == before.at || news.Ahead(got.at))
	}
	if err != nil {
		return feedtype.Page{}, err
	}
	return got.Page, nil
}

// resting is the empty page of a cursor that stands at the head, as far as is known
// without asking the database: those who have read everything, which is nearly all who
// wait, go straight back to waiting. What is known may be old, but who waits learns of
// whatever has come since; and nobody is answered with it unless a look that began after
// they asked finds the feed still there. Nil where there is more to know.
func (f *Reader) resting(ctx context.Context, asked pageKey) (*reading, error) {
	at, err := asked.after.State()
	if err != nil || at.Start || at.Mark.Above(at.Position) {
		return nil, nil // read will say what is wrong with it
	}
	// A shard with ULIDs is read by everyone who asks: a writer may use what it took late, and
	// that moves no state.
	key := watch.Key{Feed: f.Name}
	now, ok := f.Watch.At(key)
	if !ok || now != (watch.Standing{Generation: at.Generation, Head: at.Position}) {
		return nil, nil
	}
	l, err := f.CurrentLayout(ctx)
	if err != nil {
		return nil, err
	}
	if f.selectPart(ctx, l, &dialect.PageQuery{}, asked.shards) != nil {
		return nil, nil
	}
	return &reading{Page: feedtype.Page{Entries: []feedtype.Entry{}, Cursor: asked.after, Key: l.Key, Columns: l.Columns}, key: key, at: now}, nil
}

// shareInTime is share for as long as another transaction has what the page needs: who waits
// for an entry has time for that, too.
func (f *Reader) shareInTime(ctx, over context.Context, woken *watch.Crowd, key pageKey) (*reading, error) {
	for tries := 1; ; tries++ {
		got, err := f.share(ctx, woken, key)
		if !errors.Is(err, feedtype.Locked) || store.Pause(over, store.Backoff(tries)) != nil {
			return got, err
		}
		woken = nil // of a crowd's the answer is kept
	}
}

// newPages makes what a crowd shares, see crowd.pages.
func NewPages() any { return &store.Sharing[pageKey, reading]{Keep: true} }

// share reads a page together with all who want the same one: those who were woken together,
// or where that is nil, all who ask now. The entries are the caller's own; their values are not.
func (f *Reader) share(ctx context.Context, woken *watch.Crowd, key pageKey) (*reading, error) {
	pages := &f.pages
	if woken != nil {
		pages = woken.Pages.(*store.Sharing[pageKey, reading])
	}
	got, err := pages.Do(ctx, key, func(ctx context.Context) (reading, error) {
		then := time.Now()
		if woken != nil {
			then = woken.At
		}
		got, err := f.read(ctx, then, key)
		got.Page = got.ForMany()
		return got, err
	})
	if err != nil {
		return nil, f.Fail("read a page", err)
	}
	got.Entries = slices.Clone(got.Entries)
	return &got, nil
}

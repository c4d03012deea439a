package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// watchedSource is a source that records the pages that a consumer reads.
type watchedSource struct {
	rowfeed.Source
	mu    sync.Mutex
	read  []rowfeed.Cursor // the cursors after which pages were read, in order
	moved chan struct{}    // closed and replaced at each page
	hang  rowfeed.Cursor   // pages after this cursor are not answered before the request ends
	open  int              // open requests
}

func watchedPages(s rowfeed.Source) *watchedSource {
	return &watchedSource{Source: s, moved: make(chan struct{}), hang: "none"}
}

func (s *watchedSource) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	s.mu.Lock()
	s.open++
	hang := s.hang == req.After
	s.mu.Unlock()
	var page rowfeed.Page
	err := errors.New("it hangs")
	if hang {
		s.note(req.After)
		<-ctx.Done()
		<-time.After(50 * time.Millisecond) // a page takes a while
	} else if page, err = s.Source.Fetch(ctx, req); err == nil {
		s.note(req.After)
	}
	s.mu.Lock()
	s.open--
	s.mu.Unlock()
	return page, err
}

func (s *watchedSource) note(after rowfeed.Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, after)
	close(s.moved)
	s.moved = make(chan struct{})
}

// await returns when a page after a cursor was read.
func (s *watchedSource) await(ctx context.Context, after rowfeed.Cursor) error {
	for {
		s.mu.Lock()
		done, moved := slices.Contains(s.read, after), s.moved
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

func (s *watchedSource) pages() []rowfeed.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.read)
}

// reading is a consumer of six entries, two at a time, with a watchedSource.
type reading struct {
	*suite.Env
	*rowfeed.Consumer
	feed   *rowfeed.Feed
	source *watchedSource
	handed []string // position, id and v of every entry, of every attempt
	// batch, if set, decides about a batch. behind is called when a batch is committed.
	batch  func(ctx context.Context, entries []rowfeed.Entry) error
	behind func()
}

// readings runs a test with a consumer that has a transaction, and with one that delivers to another system.
func readings(t *testing.T, test func(r *reading)) {
	for _, kind := range []string{"handle", "deliver"} {
		t.Run(kind, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				r := &reading{Env: x, feed: x.AddKV()}
				x.InsertKV(1, 7)
				x.Publish(r.feed)
				ctx, end := context.WithTimeout(x.Ctx, suite.Patience())
				x.Cleanup(end)
				x.Ctx = ctx
				r.consumer(kind)
				test(r)
			})
		})
	}
}

func (r *reading) consumer(kind string) {
	r.source = watchedPages(r.feed)
	committed := &rowfeed.Observer{Consumed: func(rowfeed.ConsumeEvent) {
		if do := r.behind; do != nil {
			r.behind = nil
			do()
		}
	}}
	rf, err := rowfeed.Open(r.Ctx, r.Pool, r.Dialect, &rowfeed.Config{Observer: committed})
	if err != nil {
		r.Fatal(err)
	}
	take := func(ctx context.Context, entries []rowfeed.Entry) error {
		for _, e := range entries {
			id, _ := e.Key.Get("id")
			v, _ := e.Row.Get("v")
			r.handed = append(r.handed, fmt.Sprintf("%s: %v=%v", e.Position, id, v))
		}
		if r.batch != nil {
			return r.batch(ctx, entries)
		}
		return nil
	}
	r.Consumer = &rowfeed.Consumer{Name: "test", Source: r.source, DB: rf,
		Options: rowfeed.ConsumerOptions{Limit: 2, Retry: rowfeed.Retry{Backoff: 1, MaxBackoff: 1}}}
	if kind == "handle" {
		r.Handle = func(ctx context.Context, _ *sql.Tx, entries []rowfeed.Entry) error { return take(ctx, entries) }
	} else {
		r.Deliver = func(ctx context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
			if err := take(ctx, entries); err != nil {
				return []rowfeed.Refusal{{Err: err}}, nil // refuses the first entry; an error would end RunOnce
			}
			return nil, nil
		}
	}
}

// afterTwo returns the cursor behind the first two entries.
func (r *reading) afterTwo() rowfeed.Cursor { return r.Fetch(r.feed, rowfeed.Beginning, 2).Cursor }

// holdFirst keeps the first batch until the next page has been read, and then calls then.
func (r *reading) holdFirst(then func() error) {
	next := r.afterTwo()
	r.batch = func(ctx context.Context, entries []rowfeed.Entry) error {
		if entries[0].Position != "1" {
			return nil
		}
		if err := r.source.await(ctx, next); err != nil {
			return err
		}
		return then()
	}
}

func (r *reading) once() {
	r.Helper()
	if err := r.RunOnce(r.Ctx); err != nil {
		r.Fatal(err)
	}
}

func (r *reading) wantHanded(want ...string) {
	r.Helper()
	if !slices.Equal(r.handed, want) {
		r.Errorf("handed over %q, want %q", r.handed, want)
	}
}

// change changes a row of the second page, and deletes another.
func (r *reading) change() {
	r.Exec("UPDATE kv SET v = 2 WHERE id = 3", "DELETE FROM kv WHERE id = 4")
	r.Publish(r.feed)
}

// TestPageIsReadAhead (M47, H26): the next page is read while a batch is handled. Rows of that page that change before
// they are handled come again at later positions.
func TestPageIsReadAhead(t *testing.T) {
	readings(t, func(r *reading) {
		r.holdFirst(func() error { return nil })
		r.behind = r.change
		r.once()
		r.wantHanded("1: 1=1", "2: 2=1", "3: 3=1", "4: 4=1", "5: 5=1", "6: 6=1", "7: 3=2", "8: 4=<nil>")
	})
}

// TestNoReadAheadReadsAfterCommit (M47): with NoReadAhead, every page is as it is when the batch before has been
// committed.
func TestNoReadAheadReadsAfterCommit(t *testing.T) {
	readings(t, func(r *reading) {
		r.Options.NoReadAhead, r.behind = true, r.change
		r.once()
		r.wantHanded("1: 1=1", "2: 2=1", "5: 5=1", "6: 6=1", "7: 3=2", "8: 4=<nil>")
	})
}

// TestPageAheadWaitsForFailedBatch (M47, H3): the page that was read ahead is not handled before the batch before it,
// even if that batch fails first.
func TestPageAheadWaitsForFailedBatch(t *testing.T) {
	readings(t, func(r *reading) {
		failed := false
		r.holdFirst(func() error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("not yet")
		})
		r.once()
		r.wantHanded("1: 1=1", "2: 2=1", "1: 1=1", "2: 2=1", "3: 3=1", "4: 4=1", "5: 5=1", "6: 6=1")
	})
}

// TestSeekDiscardsPageAhead (M47, H2): an operator moves the cursor back while a page is read ahead. With Handle that
// page takes no effect, and the next entries come from the new position.
func TestSeekDiscardsPageAhead(t *testing.T) {
	readings(t, func(r *reading) {
		r.holdFirst(func() error { return nil })
		r.behind = func() {
			if _, err := r.RF.Admin().ResetConsumer(r.Ctx, suite.TestConsumer); err != nil {
				r.Error(err)
			}
		}
		r.once()
		r.wantHanded("1: 1=1", "2: 2=1", "3: 3=1", "4: 4=1", "1: 1=1", "2: 2=1", "3: 3=1", "4: 4=1", "5: 5=1", "6: 6=1")
	})
}

// TestOnePageIsReadAhead (M47): at most one page is read ahead, none beyond the head, and Run returns only when no
// request is open.
func TestOnePageIsReadAhead(t *testing.T) {
	readings(t, func(r *reading) {
		after := r.afterTwo()
		ahead := -1
		r.holdFirst(func() error {
			ahead = len(r.source.pages())
			return nil
		})
		r.once()
		if pages := r.source.pages(); ahead != 2 || len(pages) != 3 {
			r.Errorf("%d pages were read when the first batch was through, and %q in all", ahead, pages)
		}
		if _, err := r.RF.Admin().ResetConsumer(r.Ctx, suite.TestConsumer); err != nil {
			r.Fatal(err)
		}
		r.source.hang, r.source.read = after, nil
		ctx, end := context.WithCancel(r.Ctx)
		r.behind = end
		if err := r.Run(ctx); err != nil {
			r.Error(err)
		}
		r.source.mu.Lock()
		defer r.source.mu.Unlock()
		if r.source.open != 0 {
			r.Errorf("Run has ended, and %d pages are being read", r.source.open)
		}
	})
}

// TestPoolOfOneReadsNothingAhead (M47): a pool of one connection has none for a page while a transaction is open.
func TestPoolOfOneReadsNothingAhead(t *testing.T) {
	readings(t, func(r *reading) {
		r.Pool.SetMaxOpenConns(1)
		r.once()
		r.wantHanded("1: 1=1", "2: 2=1", "3: 3=1", "4: 4=1", "5: 5=1", "6: 6=1")
	})
}

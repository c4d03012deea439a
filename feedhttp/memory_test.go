package feedhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// rowsOf is a feed of rows of one size. Its pages end when their rows fill their room.
type rowsOf struct {
	size    int
	roomy   bool // ignores the room
	fetched int
}

func (s *rowsOf) Fetch(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
	s.fetched++
	room := 1 << 40
	if !s.roomy {
		var err error
		if room, err = req.Room.Enter(ctx); err != nil {
			return feedtype.Page{}, err
		}
	}
	columns := []feedtype.Column{{Name: "v", Kind: feedtype.Text}}
	page := feedtype.Page{Cursor: "1", More: true, Key: columns, Columns: columns}
	bytes := 0
	for i := range req.Limit {
		row, err := feedtype.NewRow(columns, []any{strings.Repeat("v", s.size)})
		if err != nil {
			return feedtype.Page{}, err
		}
		position := strconv.Itoa(i + 1)
		page.Entries = append(page.Entries, feedtype.Entry{Position: position, Op: feedtype.Upsert, Row: row})
		page.Cursor = feedtype.Cursor(position)
		if bytes += feedtype.EntryBytes(1) + s.size; bytes > room {
			break
		}
	}
	return page, nil
}

func (s *rowsOf) Info(context.Context) (*feedtype.Info, error) { return nil, errors.New("not needed") }

// feedsOf has the same source for all names.
type feedsOf struct{ source feedtype.Source }

func (c feedsOf) Names(context.Context) ([]string, error)                 { return nil, nil }
func (c feedsOf) Source(context.Context, string) (feedtype.Source, error) { return c.source, nil }

// slow is a client that reads nothing until it is told to.
type slow struct {
	*httptest.ResponseRecorder
	begun  bool // the answer's body has begun
	reads  chan struct{}
	leaves context.CancelFunc
	gone   context.Context
	done   chan struct{} // closed when the request has ended
	ended  bool
}

func (s *slow) Write(p []byte) (int, error) {
	s.begun = true
	select {
	case <-s.reads:
		return s.ResponseRecorder.Write(p)
	case <-s.gone.Done():
		return 0, s.gone.Err()
	}
}

// memoryFixture is a handler with clients that read nothing. It runs in a bubble of synctest.
type memoryFixture struct {
	*testing.T
	*Handler
}

type clientKey struct{}

func newMemoryFixture(t *testing.T, source feedtype.Source, bytes int) memoryFixture {
	return memoryFixture{t, NewHandler(feedsOf{source}, &Config{PageMemory: bytes, PageTimeout: time.Hour,
		Client: func(ctx context.Context) string { who, _ := ctx.Value(clientKey{}).(string); return who }})}
}

// ask sends a request of a client, and returns when the handler waits for the client or for memory.
func (x memoryFixture) ask(client, path string) *slow {
	x.Helper()
	ctx, cancel := context.WithCancel(context.WithValue(x.Context(), clientKey{}, client))
	s := &slow{ResponseRecorder: httptest.NewRecorder(), reads: make(chan struct{}), leaves: cancel, gone: ctx,
		done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
	go func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			}
			s.ended = true
			close(s.done)
		}()
		x.ServeHTTP(s, r)
	}()
	synctest.Wait()
	return s
}

// read lets a client read all of its answer.
func (x memoryFixture) read(s *slow) {
	x.Helper()
	close(s.reads)
	synctest.Wait()
	if !s.ended {
		x.Fatal("the answer has not ended")
	}
}

// leave lets a client go away.
func (x memoryFixture) leave(s *slow) {
	x.Helper()
	s.leaves()
	synctest.Wait()
	if !s.ended {
		x.Fatal("the request of a client that has gone has not ended")
	}
}

func (x memoryFixture) inUse() int {
	n, _, _ := x.PageMemory()
	return n
}

// fill sends requests of a client until one of them waits for memory. It returns the others and that one.
func (x memoryFixture) fill(client, path string) (begun []*slow, waits *slow) {
	x.Helper()
	for range 200 {
		s := x.ask(client, path)
		if !s.begun {
			return begun, s
		}
		begun = append(begun, s)
	}
	x.Fatal("no request waits for memory")
	return nil, nil
}

const (
	pageMemory = 4 << 20
	largePage  = "/_feeds/fetch/kv?limit=10000"
)

// TestSlowReadersHoldBoundedMemory: the pages of a feed hold at most half of the memory. The next request waits, and is
// answered when the client of a page has gone.
func TestSlowReadersHoldBoundedMemory(t *testing.T) {
	for _, path := range []string{largePage, "/_feeds/http-feeds/kv?limit=10000", "/_feeds/stream/kv"} {
		synctest.Test(t, func(t *testing.T) {
			x := newMemoryFixture(t, &rowsOf{size: 5000}, pageMemory)
			begun, next := x.fill("", path)
			if n := x.inUse(); n > pageMemory/2 || n < pageMemory/4 {
				t.Errorf("%s: the pages of one feed hold %d bytes of %d", path, n, pageMemory)
			}
			if len(begun) < 10 {
				t.Errorf("%s: only %d readers are served at the same time", path, len(begun))
			}
			last := x.ask("", path)
			if x.leave(begun[0]); !next.begun {
				t.Errorf("%s: a client has gone, and the next request still waits", path)
			}
			begun[0] = next
			for _, s := range append(begun, last) {
				s.leaves()
			}
			if synctest.Wait(); x.inUse() != 0 {
				t.Errorf("%s: %d bytes are in use when all clients have gone", path, x.inUse())
			}
		})
	}
}

// TestPagesShrinkWhenMemoryIsShort: later readers get smaller pages, and each has at least one row. A page that was
// read frees its memory, and the next request is answered.
func TestPagesShrinkWhenMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMemoryFixture(t, &rowsOf{size: 5000}, pageMemory)
		begun, next := x.fill("", largePage)
		x.read(begun[0])
		if !next.begun {
			t.Error("a page was read, and the next request still waits")
		}
		for _, s := range append(begun[1:], next) {
			x.read(s)
		}
		first, last := begun[0].Body.Len(), begun[len(begun)-1].Body.Len()
		if first < 10*last || last < 5000 {
			t.Errorf("the first page has %d bytes, the last one %d", first, last)
		}
		if x.inUse() != 0 {
			t.Errorf("%d bytes are in use after the pages were read", x.inUse())
		}
	})
}

// TestOneFeedOrClientCannotUseAllMemory: the readers of one feed leave memory to those of others, and one client leaves
// memory to others. A request that waits for one of the two delays no other request.
func TestOneFeedOrClientCannotUseAllMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMemoryFixture(t, &rowsOf{size: 5000}, pageMemory)
		other := strings.Replace(largePage, "kv", "other", 1)
		_, _ = x.fill("a", largePage)
		for _, ask := range []struct {
			client, path string
			served       bool
		}{{"a", other, false}, {"b", largePage, false}, {"b", other, true}, {"", other, true}} {
			if s := x.ask(ask.client, ask.path); s.begun != ask.served {
				t.Errorf("client %q, %s: served %v", ask.client, ask.path, s.begun)
			}
		}
		x.fill("c", other)
		if n := x.inUse(); n > pageMemory {
			t.Errorf("all pages hold %d bytes of %d", n, pageMemory)
		}
	})
}

// TestWaitForMemoryEnds: a request that waits for memory in vain is refused with 503. The answer says why, and when to
// try again. A waiting client that goes away is not counted as refused.
func TestWaitForMemoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newMemoryFixture(t, &rowsOf{size: 5000}, pageMemory)
		_, refused := x.fill("a", largePage)
		close(refused.reads)
		x.leave(x.ask("a", largePage))
		<-refused.done // the bubble's clock goes on
		var p Problem
		err := json.Unmarshal(refused.Body.Bytes(), &p)
		if _, _, n := x.PageMemory(); err != nil || !refused.ended || refused.Code != http.StatusServiceUnavailable ||
			refused.Header().Get("Retry-After") == "" || refused.Header().Get("Content-Type") != problemMediaType ||
			!strings.Contains(p.Detail, "this client has its maximum of 2097152 bytes") || p.Next == "" || n != 1 {
			t.Errorf("%d, %v, %+v, %v; %d refusals", refused.Code, refused.Header(), p, err, n)
		}
	})
}

// TestRowLargerThanItsMemoryIsSent (M66): a row that is larger than half of the memory is sent. Other pages of its feed
// wait meanwhile. The size of the row was not known when memory was given, so the page is read again.
func TestRowLargerThanItsMemoryIsSent(t *testing.T) {
	for _, roomy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &rowsOf{size: 3 << 20, roomy: roomy}
			x := newMemoryFixture(t, source, pageMemory)
			large := x.ask("", "/_feeds/fetch/kv?limit=1")
			next := x.ask("", "/_feeds/fetch/kv?limit=1")
			if !large.begun || next.begun || source.fetched > 3 {
				t.Fatalf("the row is sent: %v, and so is the next: %v; %d pages were read", large.begun, next.begun,
					source.fetched)
			}
			if x.inUse() < 3<<20 {
				t.Errorf("%d bytes are in use", x.inUse())
			}
			if x.read(large); large.Body.Len() < 3<<20 || !next.begun {
				t.Errorf("%d bytes were sent; the next row is sent: %v", large.Body.Len(), next.begun)
			}
			x.leave(next)
		})
	}
}

// TestSmallPageAfterALargeOneGetsItsShare: only the page that was read again gets the memory that it needs.
func TestSmallPageAfterALargeOneGetsItsShare(t *testing.T) {
	source := &rowsOf{size: 3 << 20}
	share := newMemory(pageMemory, time.Hour).newShare("kv", "", 1, streamMemory)
	for _, size := range []int{3 << 20, 10} {
		source.size = size
		fetch := func(req feedtype.Request) (feedtype.Page, error) { return source.Fetch(t.Context(), req) }
		if _, err := share.page(t.Context(), feedtype.Request{Limit: 1}, fetch); err != nil {
			t.Fatal(err)
		}
		share.Leave()
	}
	if _, err := share.Enter(t.Context()); err != nil || source.fetched != 3 || share.held > pageMemory/8 {
		t.Errorf("%d pages were read, and a small page gets %d bytes; %v", source.fetched, share.held, err)
	}
}

// TestIdleStreamHoldsNoMemory: a stream holds memory while it sends a page, and none afterwards.
func TestIdleStreamHoldsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, asked := &rowsOf{size: 100}, 0
		x := newMemoryFixture(t, stubSource(func(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
			if asked++; asked > 1 {
				<-ctx.Done()
				return feedtype.Page{}, ctx.Err()
			}
			return rows.Fetch(ctx, req)
		}), pageMemory)
		s := x.ask("", "/_feeds/stream/kv")
		sending := x.inUse()
		close(s.reads)
		if synctest.Wait(); sending == 0 || x.inUse() != 0 || s.ended {
			t.Errorf("the stream holds %d bytes while it sends, then %d; ended: %v", sending, x.inUse(), s.ended)
		}
		x.leave(s)
	})
}

// TestPageThatFailsFreesItsMemory: a page whose fetch or encoding fails frees its memory.
func TestPageThatFailsFreesItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, fail := range map[string]func() (feedtype.Page, error){
			"error":    func() (feedtype.Page, error) { return feedtype.Page{}, errors.New("no database") },
			"panic":    func() (feedtype.Page, error) { panic("no database") },
			"encoding": func() (feedtype.Page, error) { return feedtype.Page{Entries: make([]feedtype.Entry, 3)}, nil },
		} {
			for _, path := range []string{"/_feeds/fetch/kv", "/_feeds/http-feeds/kv", "/_feeds/stream/kv"} {
				source := func(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
					if _, err := req.Room.Enter(ctx); err != nil {
						return feedtype.Page{}, err
					}
					return fail()
				}
				x := newMemoryFixture(t, stubSource(source), pageMemory)
				s := x.ask("", path)
				if x.leave(s); x.inUse() != 0 {
					t.Errorf("%s, %s: %d bytes are in use", name, path, x.inUse())
				}
			}
		}
	})
}

// stubSource is a feed whose pages the test makes.
type stubSource func(ctx context.Context, req feedtype.Request) (feedtype.Page, error)

func (f stubSource) Fetch(ctx context.Context, req feedtype.Request) (feedtype.Page, error) {
	return f(ctx, req)
}

func (stubSource) Info(context.Context) (*feedtype.Info, error) { return nil, errors.New("not needed") }

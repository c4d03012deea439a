package feedhttp

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	defaultPageMemory = 64 << 20
	// smallPage is the size below which pages do not get smaller when memory is short.
	smallPage = 32 << 10
	// firstRow is the expected size of a feed's rows before its first page.
	firstRow = 512
	// plainParts is the memory to encode a page part by part.
	plainParts = 2 * writeChunk
)

// memory bounds the memory of all pages that a Handler reads, encodes and sends. One feed, and one client, has at most
// half of it. See "Memory" in internal/store/DESIGN.md.
type memory struct {
	limit int
	wait  time.Duration // the maximum wait of a request

	mu      sync.Mutex
	used    int
	refused int64
	feeds   map[string]*feedMemory
	queued  map[*feedMemory]struct{} // feeds with requests that wait
	clients map[string]int           // bytes in use; a client without pages has no entry
}

// feedMemory is the memory of one feed's pages.
type feedMemory struct {
	used    int
	row     int       // mean size of the rows of the last page
	waiting list.List // of *share, in the order in which they came
}

func newMemory(limit int, wait time.Duration) *memory {
	return &memory{limit: limit, wait: wait, feeds: make(map[string]*feedMemory),
		queued: make(map[*feedMemory]struct{}), clients: make(map[string]int)}
}

func (m *memory) state() (inUse, limit int, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.limit, m.refused
}

// share is the memory of one request's page. It implements feedtype.Room.
type share struct {
	of     *memory
	feed   *feedMemory
	client string // empty for an unknown client, which has no limit of its own
	limit  int    // entries
	coding int    // the maximum memory to encode the page, unless its rows are larger
	held   int
	least  int           // what a page that was dropped needs; 0 after it was read again
	ready  chan struct{} // nil unless the request waits; closed when it holds memory
}

// newShare returns the share of a request for a page of up to limit entries of a feed.
func (m *memory) newShare(feed, client string, limit, coding int) *share {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.feeds[feed]
	if f == nil {
		f = &feedMemory{row: firstRow}
		m.feeds[feed] = f
	}
	return &share{of: m, feed: f, client: client, limit: limit, coding: coding}
}

// Enter implements feedtype.Room. A request that waits in vain is refused.
func (s *share) Enter(ctx context.Context) (bytes int, err error) {
	m := s.of
	m.mu.Lock()
	if s.held > 0 {
		defer m.mu.Unlock()
		return s.room(s.held), nil
	}
	if s.feed.waiting.Len() == 0 && m.grant(s) {
		defer m.mu.Unlock()
		return s.room(s.held), nil
	}
	s.ready = make(chan struct{})
	place := s.feed.waiting.PushBack(s)
	m.queued[s.feed] = struct{}{}
	m.serve(s.feed) // those in front may wait for memory of their client
	m.mu.Unlock()
	patience := time.NewTimer(m.wait)
	defer patience.Stop()
	select {
	case <-s.ready:
	case <-ctx.Done():
	case <-patience.C:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.held > 0 {
		return s.room(s.held), nil
	}
	s.feed.waiting.Remove(place)
	m.serve(s.feed)
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.refused++
	return 0, problem(Overloaded, "try again; read pages faster, or fewer of them at the same time",
		"the pages that are being sent use the memory for pages: %s. No memory for the page became free in %s",
		m.shortage(s), m.wait)
}

// Leave implements feedtype.Room.
func (s *share) Leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.held > 0 {
		s.of.hold(s, 0)
		s.of.serveAll()
	}
}

// settle makes the share as large as the page. It returns false, and gives the memory back, if the page needs more
// memory than is free. The page must then be dropped, and read again after Enter.
func (s *share) settle(page feedtype.Page) bool {
	size := page.Bytes()
	m := s.of
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(page.Entries); n > 0 {
		s.feed.row = size / n
	}
	before, needs := s.held, s.needs(size)
	// A page that has all that a feed may have is sent, even if its only row is larger.
	fits := needs <= before || before >= m.limit/2 || needs-before <= m.free(s.feed, s.client)
	if s.least = 0; !fits {
		s.least, needs = min(needs, m.limit/2), 0
	}
	if m.hold(s, needs); needs < before {
		m.serveAll()
	}
	return fits
}

// needs is the memory to read, encode and send a page of this size.
func (s *share) needs(size int) int { return size + min(size, max(s.coding, 2*s.feed.row)) }

// room is the size of the largest page that needs this memory.
func (s *share) room(memory int) (size int) {
	return max(memory/2, memory-max(s.coding, 2*s.feed.row))
}

// free is the memory that another page of a feed could use, for a client unless that is empty.
func (m *memory) free(feed *feedMemory, client string) int {
	free := min(m.limit-m.used, m.limit/2-feed.used)
	if client != "" {
		free = min(free, m.limit/2-m.clients[client])
	}
	return free
}

// grant gives a share the memory for a page, if it is free. It expects rows twice as large as those of the feed's last
// page, and grants more if much is free. When memory is short, pages get smaller. A quarter is kept for small pages, so
// that slow readers of large pages leave something.
func (m *memory) grant(s *share) bool {
	half, free := m.limit/2, m.free(s.feed, s.client)
	spare := free - half/4
	wanted := max(min(s.needs(2*s.limit*s.feed.row), half), s.least)
	least := max(min(s.needs(max(smallPage, s.feed.row)), wanted), s.least)
	if least > free {
		return false
	}
	m.hold(s, min(max(wanted, spare/8), max(least, spare/2)))
	return true
}

// hold sets the bytes of a share.
func (m *memory) hold(s *share, bytes int) {
	more := bytes - s.held
	s.held = bytes
	m.used += more
	s.feed.used += more
	if s.client == "" {
		return
	}
	if m.clients[s.client] += more; m.clients[s.client] == 0 {
		delete(m.clients, s.client)
	}
}

// serveAll gives free memory to the requests that wait.
func (m *memory) serveAll() {
	for feed := range m.queued { // in a random order, so that no feed is preferred
		m.serve(feed)
	}
}

// serve gives free memory to the requests that wait for pages of a feed.
func (m *memory) serve(feed *feedMemory) {
	for at := feed.waiting.Front(); at != nil; {
		s, next := at.Value.(*share), at.Next()
		switch {
		case m.grant(s):
			feed.waiting.Remove(at)
			close(s.ready)
		case m.free(feed, s.client) == m.free(feed, ""): // not for lack of its client's memory
			return
		}
		at = next
	}
	if feed.waiting.Len() == 0 {
		delete(m.queued, feed)
	}
}

// shortage names the limit that a share has reached.
func (m *memory) shortage(s *share) string {
	half := m.limit / 2
	switch free := m.free(s.feed, s.client); {
	case s.client != "" && free == half-m.clients[s.client]:
		return fmt.Sprintf("this client has its maximum of %d bytes", half)
	case free == half-s.feed.used:
		return fmt.Sprintf("this feed has its maximum of %d bytes", half)
	}
	return fmt.Sprintf("all pages together have their maximum of %d bytes", m.limit)
}

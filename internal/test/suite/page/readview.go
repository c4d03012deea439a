package page

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPageHasNoHoles (H1): publishers publish in tight loops, and readers poll with Fetch. A page never has position
// n+1 without n. Where read views are not atomic, a page that is one statement would have such holes. The longer the
// test runs, the more certain its result: ROWFEED_TEST_READVIEW_SECONDS is 2 by default on such a database, otherwise
// 0.4.
func TestPageHasNoHoles(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		usual := 0.4
		if x.Has.TornReadViews {
			usual = 2
		}
		f := x.AddKV()
		x.Fill(1) // readers start above it, because a start at the beginning shows no tombstones
		x.Publish(f)
		ctx, cancel := context.WithTimeout(x.Ctx, x.Seconds("ROWFEED_TEST_READVIEW_SECONDS", usual))
		defer cancel()
		publish := publishLoops(x, f)
		if x.Has.SlowReadViews {
			// On MariaDB, pages of one statement had a hole once in some 20,000 pages without these open transactions,
			// and once in 1,000 with them.
			x.Exec("CREATE TABLE bystanders (id INT NOT NULL PRIMARY KEY)")
			for i := range 150 {
				x.In(x.Begin(0), fmt.Sprintf("INSERT INTO bystanders VALUES (%d)", i))
			}
		}
		var publishing, reading sync.WaitGroup
		for range 3 {
			publishing.Go(func() {
				for ctx.Err() == nil {
					if err := publish(); err != nil {
						x.Errorf("publish: %v", err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		var mu sync.Mutex
		pages, entries := 0, 0
		for range 2 {
			reading.Go(func() {
				p, e := follow(x, f, done)
				mu.Lock()
				defer mu.Unlock()
				pages, entries = pages+p, entries+e
			})
		}
		publishing.Wait()
		close(done)
		reading.Wait()
		head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		if want := 2 * (int(head) - 1); entries != want && !x.Failed() {
			x.Errorf("two readers received %d entries, want %d", entries, want)
		}
		x.Logf("%d positions, read in %d pages", head, pages)
	})
}

// TestPageShowsNothingAboveItsHead (H1): if a page is two statements, one for the head and one for the rows, the page
// has no row above that head. A read view may show one of the rows that were committed in between, but not those below
// it.
func TestPageShowsNothingAboveItsHead(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere a page is one statement for both
	suite.EachCapture(t, func(x *suite.Env) {
		other := x.AddKV()
		x.InsertKV(1, 3)
		x.Publish(other)
		between := func() {}
		f := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "SELECT s.value, COALESCE(s.term, 0), f.generation") {
				between()
			}
			return err
		}}, nil)
		between = func() {
			between = func() {}
			x.InsertKV(3, 5)
			x.Publish(other)
		}
		if page := x.Fetch(f, "1", 10); suite.Place(page.Cursor) != "2" || len(page.Entries) != 1 || page.More {
			x.Errorf("%s", text(page))
		}
		if page := x.Fetch(f, "2", 10); suite.Place(page.Cursor) != "4" || len(page.Entries) != 2 {
			x.Errorf("the next page: %s", text(page))
		}
	})
}

// follow reads from position 1 until done is closed and the head is reached. It asserts that no position is missing: no
// key moves, so every position has an entry.
func follow(x *suite.Env, f *rowfeed.Feed, done <-chan struct{}) (pages, entries int) {
	cursor, position := rowfeed.Cursor("1"), int64(1)
	for {
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursor, Limit: 1000})
		if err != nil {
			x.Errorf("fetch: %v", err)
			return pages, entries
		}
		pages++
		for _, e := range page.Entries {
			if e.Position != strconv.FormatInt(position+1, 10) {
				x.Errorf("after position %d came %s, on page %d from cursor %s to %s",
					position, e.Position, pages, cursor, page.Cursor)
				return pages, entries
			}
			position++
			entries++
		}
		cursor = page.Cursor
		if last && !page.More {
			return pages, entries
		}
	}
}

// publishLoops returns a function that publishes, which publishers call again and again. On a server it calls a
// procedure that does what readers depend on, many times faster than over the network. Otherwise it is the library's
// publisher with the smallest batch.
func publishLoops(x *suite.Env, f *rowfeed.Feed) func() error {
	x.Helper()
	if !x.Has.Functions {
		next := make(chan int64)
		go func() {
			for id := int64(2); ; id++ {
				select {
				case next <- id:
				case <-x.Context().Done():
					return
				}
			}
		}()
		return func() error {
			_, err := x.Pool.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO kv (id, k, v) VALUES (%d, 'k', 0)", <-next))
			if err == nil {
				_, err = f.Publish(x.Ctx)
			}
			return err
		}
	}
	x.Exec(x.Text("page.publish_in_server"))
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
	return func() error {
		_, err := pool.ExecContext(x.Ctx, x.Has.Spell("CALL advance(200)"))
		return err
	}
}

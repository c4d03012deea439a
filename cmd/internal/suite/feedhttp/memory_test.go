package feedhttp_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPagesCutByMemorySkipNoEntry (M66): pages that the server's memory cuts have all entries of the feed, each once.
// The last page says that no more follow.
func TestPagesCutByMemorySkipNoEntry(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		pool := e.New(t).OpenTapped(t, testdb.Hooks{})
		db, err := rowfeed.Open(t.Context(), pool, typed[e.Family].dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		handler := feedhttp.NewHandler(feedhttp.Of(db), &feedhttp.Config{Heartbeat: time.Hour, PageMemory: 512 << 10})
		x := fixture{sql: pool, db: db, server: serve(t, handler)}
		x.exec(t, `CREATE TABLE kv (id int NOT NULL PRIMARY KEY, v varchar(2000))`)
		// The first page and its encoding get 96 KiB: half of what the feed may have, without a reserve for others.
		const rows, together = 1500, 100
		for first := 0; first < rows; first += together {
			var values []string
			for id := first; id < first+together; id++ {
				values = append(values, fmt.Sprintf("(%d, '%s')", id, strings.Repeat("v", 2000)))
			}
			x.exec(t, `INSERT INTO kv VALUES `+strings.Join(values, ", "))
		}
		x.addFeed(t, "kv")
		for _, parameters := range []string{"", "&wait=1m"} {
			after, pages, more := "", 0, true
			seen := map[float64]bool{}
			for ; more; pages++ {
				var page struct {
					Entries []struct{ Key struct{ ID float64 } }
					Cursor  string
					More    bool
				}
				a := ask(t, x.server, "GET", "/_feeds/fetch/kv?limit=10000&after="+after+parameters)
				if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || len(a.body) > 64<<10 {
					t.Fatalf("%d, %d bytes, %v", a.status, len(a.body), err)
				}
				for _, e := range page.Entries {
					if seen[e.Key.ID] {
						t.Errorf("%q: row %v is on two pages", parameters, e.Key.ID)
					}
					seen[e.Key.ID] = true
				}
				after, more = page.Cursor, page.More
			}
			if len(seen) != rows || pages < 40 {
				t.Errorf("%q: %d rows of %d on %d pages", parameters, len(seen), rows, pages)
			}
		}
		got := listen(t, x.server, "/_feeds/stream/kv")
		got.want(t, retry)
		for i := range rows {
			if block := got.next(t); !strings.HasPrefix(block, "id: ") ||
				!strings.Contains(block, fmt.Sprintf(`"position":"%d"`, i+1)) {
				t.Fatalf("event %d is %.100s", i, block)
			}
		}
		got.end()
	})
}

// TestWaitingRequestsHoldNoMemory: requests that wait for an entry, and idle streams, hold no memory for pages. Each of
// them then gets the entry.
func TestWaitingRequestsHoldNoMemory(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	// A process that does not know the head of the feed has to read before it waits.
	db, err := rowfeed.Open(t.Context(), x.sql, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	x.db, x.handler = db, feedhttp.NewHandler(feedhttp.Of(db), &noHeartbeat)
	x.server = serve(t, x.handler)
	got := []<-chan answer{
		later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m"),
		later(t, x.server, "/_feeds/http-feeds/kv?timeout=60000&lastEventId=kv:1:0:1"),
		later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m&shard=0&shard_count=1"),
	}
	stream := listen(t, x.server, "/_feeds/stream/kv")
	stream.want(t, retry)
	stream.next(t)
	for give := time.Now().Add(time.Minute); x.db.Admin().Readers()["kv"] < 4; runtime.Gosched() {
		if time.Now().After(give) {
			t.Fatalf("%d requests wait after a minute", x.db.Admin().Readers()["kv"])
		}
	}
	if n, _, _ := x.handler.PageMemory(); n != 0 {
		t.Errorf("waiting requests hold %d bytes", n)
	}
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	x.publish(t, x.feed)
	for _, a := range got {
		if a := <-a; a.status != 200 || !strings.Contains(a.body, `"v":"b"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if block := stream.next(t); !strings.HasPrefix(block, "id: 2.9k3f2c7adq|") {
		t.Errorf("%s", block)
	}
}

// TestLargeEntryEndsAWaitFromNow: a request that waits from "now", or from a time, gets an entry that is larger than
// its memory. The entry is read a second time, and the cursor from which the request waited has not moved.
func TestLargeEntryEndsAWaitFromNow(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	x.handler = feedhttp.NewHandler(feedhttp.Of(x.db), &feedhttp.Config{Heartbeat: time.Hour, PageMemory: 1 << 20})
	x.server = serve(t, x.handler)
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	got := map[string]<-chan answer{}
	for _, after := range []string{"now", "at:" + tomorrow} {
		got[after] = later(t, x.server, "/_feeds/fetch/kv?wait=1m&after="+after)
	}
	for give := time.Now().Add(time.Minute); x.db.Admin().Readers()["kv"] < len(got); runtime.Gosched() {
		if time.Now().After(give) {
			t.Fatalf("%d requests wait after a minute", x.db.Admin().Readers()["kv"])
		}
	}
	x.exec(t, `INSERT INTO kv VALUES (2, '`+strings.Repeat("v", 2<<20)+`')`)
	x.publish(t, x.feed)
	for after, a := range got {
		if a := <-a; a.status != 200 || !strings.Contains(a.body, `"position":"2"`) {
			t.Errorf("%s: %d %.200s", after, a.status, a.body)
		}
	}
}

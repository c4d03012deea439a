package page

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// pageStatements counts the statements that read pages, and those of them that sort.
type pageStatements struct{ all, sorted int }

func (p *pageStatements) hooks() testdb.Hooks {
	return testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, "tombstones_below") && strings.Contains(ev.SQL, "LEFT JOIN") {
			p.all++
			if strings.Contains(ev.SQL, "ORDER BY p.feed_sync_id LIMIT") {
				p.sorted++
			}
		}
		return nil
	}}
}

// backwards makes a feed of rows whose keys go down as their positions go up.
func backwards(x *suite.Env, spec rowfeed.FeedSpec, rows int) *rowfeed.Feed {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	f := x.Add(spec)
	for id := rows; id > 0; id-- {
		x.Exec(fmt.Sprintf("INSERT INTO kv (id, k, v) VALUES (%d, 'k', %d)", id, id))
		if spec.Capture == feedtype.CaptureColumn { // which takes what waits in the order of the key
			x.Publish(f)
		}
	}
	x.Publish(f)
	return f
}

// TestPagesAreNotSorted (M66): rows come in the order of their positions without being sorted, in one
// statement a page.
func TestPagesAreNotSorted(t *testing.T) {
	testdb.Quick(t)
	for name, spec := range map[string]rowfeed.FeedSpec{
		"whole": {}, "parts": {DataShards: 64}, "column": {Capture: feedtype.CaptureColumn},
	} {
		t.Run(name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				spec.Name, spec.Table = "kv", "kv"
				const rows = 60
				backwards(x, spec, rows)
				var read pageStatements
				rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, read.hooks()), x.Dialect, nil)
				if err != nil {
					x.Fatal(err)
				}
				f, err := rf.Feed(x.Ctx, "kv")
				if err != nil {
					x.Fatal(err)
				}
				pages, seen := 0, 0
				for _, part := range []rowfeed.Shards{{}, rowfeed.Part(0, 2)} {
					if spec.DataShards == 0 && !part.All() {
						continue
					}
					for after, more := rowfeed.Beginning, true; more; pages++ {
						page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: 20, Shards: part})
						if err != nil {
							x.Fatal(err)
						}
						seen += len(page.Entries)
						after, more = page.Cursor, page.More
					}
				}
				if read.all != pages || read.sorted != 0 || seen < rows {
					x.Errorf("%d entries on %d pages with %d statements, %d of which sort", seen, pages, read.all, read.sorted)
				}
			})
		})
	}
}

// TestPagesOfWideRows (M66): a feed whose pages are cut at their bytes is asked for sorted ones, which are
// read once, also near its end.
func TestPagesOfWideRows(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		var read pageStatements
		f := x.Tapped(read.hooks(), &rowfeed.Config{MaxPageBytes: 1000})
		const rows = 40
		for id := range rows {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, '%s', 0)", id, strings.Repeat("k", 100)))
		}
		x.Publish(f)
		pages, seen := 0, 0
		for after, more := rowfeed.Cursor("1"), true; more; pages++ {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: rows})
			if err != nil {
				x.Fatal(err)
			}
			seen += len(page.Entries)
			after, more = page.Cursor, page.More
		}
		if seen != rows-1 || pages < 4 || read.all != pages+1 || read.sorted != pages {
			x.Errorf("%d entries on %d pages with %d statements, %d of which sort", seen, pages, read.all, read.sorted)
		}
	})
}

// TestPagesInDisorder (M66): a session may have settings under which MariaDB looks rows up in the order
// of their keys. The page is then read again, and sorted.
func TestPagesInDisorder(t *testing.T) {
	testdb.MariaDB.Require(t)
	x := suite.NewEnv(t, testdb.MariaDB, nil)
	x.Migrate()
	const rows = 50
	backwards(x, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, rows)
	// The session's default limit cuts a page in neither order.
	settings := "?sql_select_limit=3&join_cache_level=8&optimizer_switch=" + url.QueryEscape("'mrr=on,mrr_sort_keys=on,mrr_cost_based=off,join_cache_bka=on,join_cache_hashed=on,optimize_join_buffer_size=off'")
	pool, d, err := suite.Open(x.Ctx, x.DB.URL+settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	// One that is cut where its bytes are too many ends before what has not been read is known.
	for _, bytes := range []int{0, 1} {
		rf, err := rowfeed.Open(x.Ctx, pool, d, &rowfeed.Config{MaxPageBytes: bytes})
		if err != nil {
			t.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for after, more := rowfeed.Beginning, true; more; {
			page := x.Fetch(f, after, rows)
			for _, e := range page.Entries {
				if seen++; e.Position != fmt.Sprint(seen) {
					t.Fatalf("pages of %d bytes: entry %d stands at %s", bytes, seen, e.Position)
				}
			}
			after, more = page.Cursor, page.More
		}
		if seen != rows {
			t.Errorf("pages of %d bytes: %d entries", bytes, seen)
		}
	}
}

package page

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sorts matches the end of a statement that sorts its page.
var sorts = regexp.MustCompile(`ORDER BY p\.feed_sync_id (LIMIT|OFFSET)`)

// pageStatements counts the statements that read pages, and how many of them sort.
type pageStatements struct{ all, sorted int }

func (p *pageStatements) hooks() testdb.Hooks {
	return testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, "tombstones_below") && strings.Contains(ev.SQL, "LEFT JOIN") {
			p.all++
			if sorts.MatchString(ev.SQL) {
				p.sorted++
			}
		}
		return nil
	}}
}

// backwards makes a feed of rows whose keys decrease while their positions increase.
func backwards(x *suite.Env, spec rowfeed.FeedSpec, rows int) *rowfeed.Feed {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	f := x.Add(spec)
	for id := rows; id > 0; id-- {
		x.Exec(fmt.Sprintf("INSERT INTO kv (id, k, v) VALUES (%d, 'k', %d)", id, id))
		if spec.Capture == feedtype.CaptureColumn { // it publishes the rows of a pass in the order of their keys
			x.Publish(f)
		}
	}
	x.Publish(f)
	return f
}

// TestPagesAreNotSorted (M66): a page is one statement without a sort, and its rows have the order of their positions.
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
				sorted := 0
				if x.Has.SortsPages {
					sorted = pages
				}
				if read.all != pages || read.sorted != sorted || seen < rows {
					x.Errorf("%d entries on %d pages with %d statements, %d of which sort",
						seen, pages, read.all, read.sorted)
				}
			})
		})
	}
}

// TestPagesOfWideRowsAreSorted (M66): once a page was cut because of MaxPageBytes, the feed's pages are read with a
// sort. Each of them is one statement, also near the head.
func TestPagesOfWideRowsAreSorted(t *testing.T) {
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
		unsorted := 1 // the first page, before it is known that rows are wide
		if x.Has.SortsPages {
			unsorted = 0
		}
		if seen != rows-1 || pages < 4 || read.all != pages+unsorted || read.sorted != pages {
			x.Errorf("%d entries on %d pages with %d statements, %d of which sort", seen, pages, read.all, read.sorted)
		}
	})
}

// TestDisorderedPageIsReadAgain (M66): with some settings of a session, MariaDB returns rows in the order of their
// keys. rowfeed notices this, and reads the page again with a sort.
func TestDisorderedPageIsReadAgain(t *testing.T) {
	testdb.MariaDB.Require(t)
	x := suite.NewEnv(t, testdb.MariaDB, nil)
	x.Migrate()
	const rows = 50
	backwards(x, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, rows)
	// The session's limit of rows must not cut a page, whether it is read with or without a sort.
	settings := url.Values{}
	for _, setting := range x.Statements("page.rows_in_key_order") {
		name, value, _ := strings.Cut(setting, "=")
		settings.Set(name, value)
	}
	pool, d, err := suite.Open(x.Ctx, x.DB.URL+"?"+settings.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	// With MaxPageBytes a page ends before it is known which rows were not read.
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
					t.Fatalf("pages of %d bytes: entry %d has position %s", bytes, seen, e.Position)
				}
			}
			after, more = page.Cursor, page.More
		}
		if seen != rows {
			t.Errorf("pages of %d bytes: %d entries", bytes, seen)
		}
	}
}

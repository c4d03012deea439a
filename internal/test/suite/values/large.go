package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLargeValuesAreWhole (M66): a text and a binary value of 16 MiB arrive whole, and can be read back from JSON.
// MariaDB and MySQL need a higher max_allowed_packet for that.
func TestLargeValuesAreWhole(t *testing.T) {
	size := 16 << 20
	if suite.Raced() {
		size = 2 << 20
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newBigEnv(t, e, nil)
		x.Exec(x.Statements("values.table_of_large_values", size/2, size)...)
		f := x.Add(rowfeed.FeedSpec{Name: "big", Table: "big"})
		x.Publish(f)
		page := x.Fetch(f, "", 0)
		if len(page.Entries) != 1 || page.More {
			t.Fatalf("the page has %d entries, more %v", len(page.Entries), page.More)
		}
		text, _ := page.Entries[0].Row.Get("t")
		binary, _ := page.Entries[0].Row.Get("b")
		if text != strings.Repeat("é", size/2) || string(binary.([]byte)) != string(make([]byte, size)) {
			t.Errorf("the entry has a %T of %d bytes and a %T of %d bytes", text, len(text.(string)),
				binary, len(binary.([]byte)))
		}
		info, err := f.Info(x.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantRoundTrip(x, page.Entries[0], info)
	})
}

// newBigEnv opens rowfeed on a server that accepts values of 16 MiB.
func newBigEnv(t *testing.T, e testdb.Engine, cfg *rowfeed.Config) *suite.Env {
	t.Helper()
	db := e.New
	if setting := fixture.Of(e).Text(t, "values.allow_large_packets"); setting != "" {
		db = e.Dedicated(t, testdb.Setting(setting)).NewDatabase
	}
	x := suite.OpenEnv(t, db(t), cfg)
	x.Migrate()
	return x
}

// TestLargeRowsEndAPage (M15, M66): a page of many large rows ends early and says that there is more. No row is
// missing. A row above the bound is on a page of its own.
func TestLargeRowsEndAPage(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		const rows, size, bound = 20, 100_000, 350_000
		x := suite.NewEnv(t, e, &rowfeed.Config{MaxPageBytes: bound})
		x.Migrate()
		x.Exec(x.Text("values.table_of_texts"))
		for id := 1; id <= rows; id++ {
			n := size / 2
			if id == 7 {
				n = 2 * bound
			}
			x.Exec(fmt.Sprintf("INSERT INTO big VALUES (%d, %s)", id, x.Text("values.text_of_twice", n)))
		}
		f := x.Add(rowfeed.FeedSpec{Name: "big", Table: "big"})
		x.Publish(f)
		var ids []int64
		var pages []int
		for cursor, more := rowfeed.Beginning, true; more; {
			page := x.Fetch(f, cursor, 0)
			bytes := 0
			for _, e := range page.Entries {
				id, _ := e.Key.Get("id")
				text, _ := e.Row.Get("t")
				ids, bytes = append(ids, id.(int64)), bytes+len(text.(string))
			}
			last := len(page.Entries) - 1
			if last < 0 {
				t.Fatal("a page has no entries")
			}
			if text, _ := page.Entries[last].Row.Get("t"); bytes-len(text.(string)) > bound {
				t.Errorf("a page of %d rows and %d bytes has further rows above the bound", last+1, bytes)
			}
			pages = append(pages, last+1)
			cursor, more = page.Cursor, page.More
		}
		want := make([]int64, rows)
		for i := range want {
			want[i] = int64(i + 1)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("the pages have the rows %v", ids)
		}
		if len(pages) < 5 || slices.Max(pages) > 5 {
			t.Errorf("the pages have %v rows", pages)
		}
	})
}

package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestValuesOf16MB (M66): one text and one binary value of 16 MiB in a row arrive whole,
// and back from JSON. (MariaDB and MySQL need max_allowed_packet above the value.)
func TestValuesOf16MB(t *testing.T) {
	size := 16 << 20
	if suite.Raced() {
		size = 2 << 20
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newBigEnv(t, e, nil)
		x.Exec(x.By(map[string]string{
			"sqlite":   "CREATE TABLE big (id INTEGER PRIMARY KEY, t TEXT, b BLOB)",
			"postgres": "CREATE TABLE big (id INTEGER PRIMARY KEY, t TEXT, b BYTEA)",
			"mysql":    "CREATE TABLE big (id INTEGER PRIMARY KEY, t LONGTEXT, b LONGBLOB)",
		}), x.By(map[string]string{
			"sqlite":   fmt.Sprintf("INSERT INTO big VALUES (1, replace(hex(zeroblob(%d)), '00', 'é'), zeroblob(%d))", size/2, size),
			"postgres": fmt.Sprintf(`INSERT INTO big VALUES (1, repeat('é', %d), decode(repeat('00', %d), 'hex'))`, size/2, size),
			"mysql":    fmt.Sprintf("INSERT INTO big VALUES (1, REPEAT('é', %d), REPEAT(x'00', %d))", size/2, size),
		}))
		f := x.Add(rowfeed.FeedSpec{Name: "big", Table: "big"})
		x.Publish(f)
		page := x.Fetch(f, "", 0)
		if len(page.Entries) != 1 || page.More {
			t.Fatalf("%d entries, more %v", len(page.Entries), page.More)
		}
		text, _ := page.Entries[0].Row.Get("t")
		binary, _ := page.Entries[0].Row.Get("b")
		if text != strings.Repeat("é", size/2) || string(binary.([]byte)) != string(make([]byte, size)) {
			t.Errorf("%T of %d bytes, %T of %d", text, len(text.(string)), binary, len(binary.([]byte)))
		}
		info, err := f.Info(x.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantRoundTrip(x, page.Entries[0], info)
	})
}

// newBigEnv is an initialised database whose server takes values of 16 MiB.
func newBigEnv(t *testing.T, e testdb.Engine, cfg *rowfeed.Config) *suite.Env {
	t.Helper()
	db := e.New
	if e.Family == "mysql" {
		db = e.Dedicated(t, testdb.Setting("max_allowed_packet=64M")).NewDatabase
	}
	x := suite.OpenEnv(t, db(t), cfg)
	x.Migrate()
	return x
}

// TestLargeRowsEndAPage (M15, M66): a page of many large rows ends early, says that there
// is more, and loses nothing; a single row above the bound still makes a page.
func TestLargeRowsEndAPage(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		const rows, size, bound = 20, 100_000, 350_000
		x := suite.NewEnv(t, e, &rowfeed.Config{MaxPageBytes: bound})
		x.Migrate()
		x.Exec(x.By(map[string]string{
			"sqlite":   "CREATE TABLE big (id INTEGER PRIMARY KEY, t TEXT)",
			"postgres": "CREATE TABLE big (id INTEGER PRIMARY KEY, t TEXT)",
			"mysql":    "CREATE TABLE big (id INTEGER PRIMARY KEY, t LONGTEXT)",
		}))
		value := x.By(map[string]string{"sqlite": "hex(zeroblob(%d))", "postgres": "repeat('xx', %d)", "mysql": "REPEAT('xx', %d)"})
		for id := 1; id <= rows; id++ {
			n := size / 2
			if id == 7 {
				n = 2 * bound
			}
			x.Exec(fmt.Sprintf("INSERT INTO big VALUES (%d, "+value+")", id, n))
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
				t.Fatal("an empty page")
			}
			if text, _ := page.Entries[last].Row.Get("t"); bytes-len(text.(string)) > bound {
				t.Errorf("a page of %d rows and %d bytes went on above the bound", last+1, bytes)
			}
			pages = append(pages, last+1)
			cursor, more = page.Cursor, page.More
		}
		want := make([]int64, rows)
		for i := range want {
			want[i] = int64(i + 1)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("got ids %v", ids)
		}
		if len(pages) < 5 || slices.Max(pages) > 5 {
			t.Errorf("pages of %v rows", pages)
		}
	})
}

// Package mysql_test has the tests of package dialect/mysql, on MariaDB and MySQL.
package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// each runs f on MariaDB and MySQL, each time in a database of its own.
func each(t *testing.T, f func(t *testing.T, h *harness)) {
	t.Helper()
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) { f(t, &harness{T: t, Database: e.New(t)}) })
}

// harness is a test's database with what most tests do with it.
type harness struct {
	*testing.T
	*testdb.Database
}

func (h *harness) ctx() context.Context { return h.Context() }

// sql runs a statement of the test's own.
func (h *harness) sql(query string, args ...any) {
	h.Helper()
	h.Exec(h.T, query, args...)
}

// pool opens another pool, with settings of the driver.
func (h *harness) pool(params ...string) *sql.DB {
	h.Helper()
	return h.OpenTapped(h.T, testdb.Hooks{}, params...)
}

// open opens rowfeed and makes its tables.
func (h *harness) open(params ...string) *rowfeed.DB {
	h.Helper()
	db, err := rowfeed.Open(h.ctx(), h.pool(params...), mysql.New(), nil)
	h.must(err)
	_, err = db.Migrate(h.ctx())
	h.must(err)
	return db
}

// add makes a feed of a table, with the name of the table.
func (h *harness) add(db *rowfeed.DB, table string, key ...string) *rowfeed.Feed {
	h.Helper()
	f, err := db.AddFeed(h.ctx(), rowfeed.FeedSpec{Name: table, Table: table, Key: key}, nil)
	h.must(err)
	return f
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) publish(f *rowfeed.Feed) int {
	h.Helper()
	n, err := f.Publish(h.ctx())
	h.must(err)
	return n
}

// drain reads the feed from a cursor to its head, one line per entry, such as `3 upsert {"id":1} {"id":1,"v":"x"}`.
func (h *harness) drain(f *rowfeed.Feed, after rowfeed.Cursor) (lines []string, head rowfeed.Cursor) {
	h.Helper()
	for {
		page, err := f.Fetch(h.ctx(), rowfeed.Request{After: after})
		h.must(err)
		for _, e := range page.Entries {
			line := fmt.Sprintf("%s %s %s", e.Position, e.Op, e.Key.AppendJSON(nil))
			if e.Op == rowfeed.Upsert {
				line += " " + string(e.Row.AppendJSON(nil))
			}
			lines = append(lines, line)
		}
		if after = page.Cursor; !page.More {
			return lines, after
		}
	}
}

// expect publishes and compares the new entries since the cursor.
func (h *harness) expect(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	h.Helper()
	h.publish(f)
	got, head := h.drain(f, after)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.Errorf("after %q the feed has\n%s\nwant\n%s", after, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return head
}

// feed is a table's feed as the dialect sees it, with tables but without a record.
func (h *harness) feed(table string, key ...string) (*dialect.Feed, *dialect.Table) {
	h.Helper()
	d := mysql.New()
	described, err := d.Describe(h.ctx(), dialect.On(h.Admin()), feedtype.TableName{Name: table})
	h.must(err)
	f := &dialect.Feed{Name: table, Names: dialect.Names{Schema: h.Name, Prefix: "rowfeed_"}, Source: described.Name,
		Columns: described.Columns, Capture: feedtype.CaptureTrigger}
	if key == nil {
		key, _ = described.PrimaryKey().Names()
	}
	for _, name := range key {
		c := *described.Column(name)
		c.Stored = dialect.StoredName(name)
		f.Key = append(f.Key, c)
	}
	return f, described
}

// steps runs a list of steps.
func (h *harness) steps(steps []dialect.Step, err error) {
	h.Helper()
	h.must(err)
	for _, s := range steps {
		if _, err := h.Admin().ExecContext(h.ctx(), s.SQL); err != nil {
			h.Fatalf("%s: %v\n%s", s.Note, err, s.SQL)
		}
	}
}

// one reads a single value as text.
func (h *harness) one(query string, args ...any) string {
	h.Helper()
	var v sql.NullString
	h.must(h.Admin().QueryRowContext(h.ctx(), query, args...).Scan(&v))
	return v.String
}

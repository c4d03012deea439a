package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Captures are the captures that EachCapture tests. The tests write plain SQL. Env.SQL adds what writers have to do
// with capture "column".
var Captures = []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureColumn}

// EachCapture runs f on every engine, once for each capture, on a database with rowfeed's tables.
func EachCapture(t *testing.T, f func(x *Env)) {
	t.Helper()
	EachFresh(t, func(x *Env) {
		x.Migrate()
		f(x)
	})
}

// EachFresh is EachCapture on a database without rowfeed's tables.
func EachFresh(t *testing.T, f func(x *Env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, capture := range Captures {
			t.Run(string(capture), func(t *testing.T) {
				x := NewEnv(t, e, nil)
				x.Capture = capture
				f(x)
			})
		}
	})
}

// Parts of a writer's statement.
var (
	table       = `(\w+|"(?:[^"]|"")+"|` + "`[^`]+`)"
	plainInsert = regexp.MustCompile(`(?i)^(INSERT(?: IGNORE| OR IGNORE)? INTO ` + table + `) (VALUES|SELECT)`)
	anyUpsert   = regexp.MustCompile(`(?i)(DO UPDATE SET|ON DUPLICATE KEY UPDATE) `)
	anyUpdate   = regexp.MustCompile(`(?i)^UPDATE ` + table + ` SET (.*?)( WHERE (.*))?$`)
	anyDelete   = regexp.MustCompile(`(?i)^DELETE FROM ` + table + `( WHERE (.*))?$`)
	oneKey      = regexp.MustCompile(`^(\w+) = (-?\d+)$`)
)

// columnFeed is what writers know of a feed with capture "column".
type columnFeed struct {
	name        string
	stays       bool     // there is no need to ask whether the table has the column
	key, stored []string // quoted: the columns in the table, and those of a record
}

// SQL returns what a writer runs for the statement, in one transaction. With capture "column" an update sets
// feed_sync_id to NULL, a delete records the key, and an update of the key does both. If the table has no such column
// at the moment, the statement stays as it is.
func (x *Env) SQL(statement string) []string {
	x.Helper()
	statement = x.Has.Spell(statement)
	insert, update := plainInsert.FindStringSubmatch(statement), anyUpdate.FindStringSubmatch(statement)
	remove := anyDelete.FindStringSubmatch(statement)
	name := ""
	switch {
	case insert != nil:
		name = insert[2]
	case update != nil:
		name = update[1]
	case remove != nil:
		name = remove[1]
	}
	f, ok := x.Columns[name]
	if !ok {
		return []string{statement}
	}
	if !f.stays {
		var none int
		query := "SELECT count(feed_sync_id) FROM " + name + " WHERE 1 = 0"
		if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&none); err != nil {
			return []string{statement}
		}
	}
	record := func(where string) string {
		one := oneKey.FindStringSubmatch(where)
		if one != nil && len(f.key) == 1 && x.Dialect.Quote(one[1]) == f.key[0] {
			return fmt.Sprintf("INSERT INTO rowfeed_changes_%s (%s) VALUES (%s)", f.name, f.stored[0], one[2])
		}
		if where != "" {
			where = " WHERE " + where
		}
		return fmt.Sprintf("INSERT INTO rowfeed_changes_%s (%s) SELECT %s FROM %s%s", f.name,
			strings.Join(f.stored, ", "), strings.Join(f.key, ", "), name, where)
	}
	switch {
	case insert != nil:
		named := statement
		if !x.Has.OptionalColumns { // writers must name their own columns
			named = strings.Replace(statement, insert[1], insert[1]+" ("+strings.Join(x.OwnColumns(name), ", ")+")", 1)
		}
		return []string{anyUpsert.ReplaceAllString(named, "$1 feed_sync_id = NULL, ")}
	case update != nil:
		nulled := strings.Replace(statement, " SET ", " SET feed_sync_id = NULL, ", 1)
		for _, key := range f.key {
			if strings.HasPrefix(update[2], key+" = ") || x.Dialect.Quote(strings.SplitN(update[2], " ", 2)[0]) == key {
				return []string{record(update[4]), nulled}
			}
		}
		return []string{nulled}
	}
	return []string{record(remove[3]), statement}
}

// Stays says that a table keeps the columns of its feed, so that SQL need not ask the server, which may be down.
func (x *Env) Stays(table string) {
	if c, ok := x.Columns[table]; ok {
		c.stays = true
		x.Columns[table] = c
	}
}

// OwnColumns returns a table's columns without those of capture "column".
func (x *Env) OwnColumns(table string) (names []string) {
	x.Helper()
	rows, err := x.DB.Admin().QueryContext(x.Ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		x.Fatal(err)
	}
	columns, err := rows.Columns()
	if err = errors.Join(err, rows.Close()); err != nil {
		x.Fatal(err)
	}
	for _, c := range columns {
		if c != dialect.PositionColumn && c != dialect.ShardColumn {
			names = append(names, x.Dialect.Quote(c))
		}
	}
	return names
}

// learn tells SQL what writers of a feed have to know.
func (x *Env) learn(f *rowfeed.Feed) {
	x.Helper()
	if f.Capture() != feedtype.CaptureColumn {
		return
	}
	info, err := f.Info(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if x.Columns == nil {
		x.Columns = map[string]columnFeed{}
	}
	c := columnFeed{name: f.Name()}
	for _, key := range info.Key {
		c.key = append(c.key, x.Dialect.Quote(key.Name))
		c.stored = append(c.stored, x.Dialect.Quote(dialect.StoredName(key.Name)))
	}
	x.Columns[f.Source().Name], x.Columns[x.Dialect.Quote(f.Source().Name)] = c, c
}

// Order returns entries in the order in which a feed shows changes that are published together. Triggers keep the order
// of the writes, which is that of want. With capture "column" deletes are first, and rows follow in the order of their
// keys.
func (x *Env) Order(want []string) []string {
	if x.Capture != feedtype.CaptureColumn {
		return want
	}
	id := func(line string) int {
		m := regexp.MustCompile(`"id":(-?\d+)`).FindStringSubmatch(line)
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1]) // digits, by the expression
		return n
	}
	ordered := slices.Clone(want)
	slices.SortStableFunc(ordered, func(a, b string) int {
		da, db := strings.HasPrefix(a, "delete"), strings.HasPrefix(b, "delete")
		switch {
		case da && db:
			return 0
		case da != db:
			return map[bool]int{true: -1, false: 1}[da]
		}
		return id(a) - id(b)
	})
	return ordered
}

// Unpublished counts the changes of the feed kv that are not published yet.
func (x *Env) Unpublished() int64 {
	x.Helper()
	n := x.Scalar("SELECT count(*) FROM rowfeed_changes_kv")
	if x.Capture == feedtype.CaptureColumn {
		n += x.Scalar("SELECT count(*) FROM kv WHERE feed_sync_id IS NULL")
	}
	return n
}

// Placed returns the table that has the positions of the feed kv.
func (x *Env) Placed() string {
	if x.Capture == feedtype.CaptureColumn {
		return "kv"
	}
	return "rowfeed_positions_kv"
}

// WantRepaired asserts that check finds as many keys as there are entries to come, that repair records them, and that
// the entries follow, in any order.
func (x *Env) WantRepaired(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	findings, err := f.Admin().Check(x.Ctx)
	if err != nil || len(findings) != len(want) {
		x.Fatalf("check: %+v %v, want %d findings", findings, err, len(want))
	}
	if lines, _ := x.Drain(f, after); len(lines) != 0 {
		x.Fatalf("before repair: %q", lines)
	}
	if n, err := f.Admin().Repair(x.Ctx); err != nil || n != int64(len(want)) {
		x.Fatalf("repair: %d %v", n, err)
	}
	lines, cursor := x.Drain(f, after)
	slices.Sort(lines)
	if !slices.Equal(lines, want) {
		x.Fatalf("after repair: %q, want %q", lines, want)
	}
	x.WantSound(f)
	return cursor
}

// EachColumn runs f on every engine with capture "column".
func EachColumn(t *testing.T, f func(x *Env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := NewEnv(t, e, nil)
		x.Capture = feedtype.CaptureColumn
		x.Migrate()
		f(x)
	})
}

// Bounded returns a context that ends before a server's own bound of lock waits does.
func (x *Env) Bounded() context.Context {
	ctx, cancel := context.WithTimeout(x.Ctx, 40*time.Second) // before a server gives up waiting
	x.Cleanup(cancel)
	return ctx
}

package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink/sqlmirror"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// mirrored is a feed of one database and its mirror, a table of another database.
type mirrored struct {
	*suite.Env            // the feed's side
	to         *suite.Env // the mirror's
	feed       *rowfeed.Feed
	sink       *sqlmirror.Sink
}

// eachMirror runs a test from every database to another one. Only the first database has to be among those that this
// process tests: a mirror's own database is started for it.
func eachMirror(t *testing.T, test func(x, to *suite.Env)) {
	t.Helper()
	for _, pair := range [][2]testdb.Engine{
		{testdb.MariaDB, testdb.Postgres15}, {testdb.Postgres15, testdb.SQLite}, {testdb.SQLite, testdb.MariaDB},
		{testdb.MySQL, testdb.Postgres18}, {testdb.Postgres18, testdb.MySQL}, {testdb.SQLite, testdb.SQLite},
	} {
		if !slices.Contains(testdb.Engines(), pair[0]) {
			continue // ROWFEED_TEST_ENGINES excludes it
		}
		t.Run(pair[0].Name+" to "+pair[1].Name, func(t *testing.T) {
			pair[0].Require(t)
			pair[1].RequireInstalled(t)
			x, to := suite.NewEnv(t, pair[0], nil), suite.NewEnv(t, pair[1], nil)
			x.Migrate()
			to.Migrate()
			test(x, to)
		})
	}
}

// mirror creates the table in both databases, the feed, and the sink.
func mirror(x, to *suite.Env, create string) *mirrored {
	x.Helper()
	x.Exec(create)
	to.Exec(create)
	m := &mirrored{Env: x, to: to, feed: x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"})}
	m.sink = mirrorSink(to, "m")
	return m
}

func mirrorSink(x *suite.Env, table string) *sqlmirror.Sink {
	x.Helper()
	s, err := sqlmirror.New(x.Ctx, sqlmirror.Config{Pool: x.Pool, Dialect: x.Dialect, DB: x.RF, Table: table})
	if err != nil {
		x.Fatal(err)
	}
	return s
}

// relay returns the mirror's relay, with its cursor in the mirror's database.
func (m *mirrored) relay() *relays.Relay {
	return &relays.Relay{Name: "test", Source: m.feed, Sink: m.sink, Restart: true, Limit: 3}
}

// run publishes and mirrors to the head.
func (m *mirrored) run() {
	m.Helper()
	m.Publish(m.feed)
	if err := m.relay().RunOnce(m.Ctx); err != nil {
		m.Fatal(err)
	}
}

func (m *mirrored) wantSame(query string) {
	m.Helper()
	if have, want := m.to.List(query), m.List(query); !slices.Equal(have, want) {
		m.Errorf("the mirror has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

const createMirror = "CREATE TABLE m (id bigint NOT NULL PRIMARY KEY, v varchar(100), n bigint)"

// TestMirrorFollowsItsFeed (S5): a mirror gets rows, changes and deletes. Rows that its table had before are removed
// with the first pass. A crash at any statement leaves cursor and rows consistent.
func TestMirrorFollowsItsFeed(t *testing.T) {
	testdb.Quick(t)
	eachMirror(t, func(x, to *suite.Env) {
		m := mirror(x, to, createMirror)
		to.Exec("INSERT INTO m VALUES (3, 'stale', 0), (99, 'never there', 0)")
		for i := range 8 {
			x.Exec(fmt.Sprintf("INSERT INTO m VALUES (%d, 'row %d', NULL)", i, i))
		}
		m.run()
		m.wantSame("SELECT id, v, n FROM m ORDER BY id")
		x.Exec("UPDATE m SET v = 'x', n = 7 WHERE id > 5", "DELETE FROM m WHERE id = 2",
			"UPDATE m SET id = 100 WHERE id = 3", "INSERT INTO m VALUES (2, 'again', 1)")
		m.run()
		m.wantSame("SELECT id, v, n FROM m ORDER BY id")
		x.Exec("DELETE FROM m")
		m.run()
		m.wantSame("SELECT id, v, n FROM m ORDER BY id")
		if got := to.List("SELECT value FROM rowfeed_cursors"); len(got) != 1 || got[0] == "" {
			x.Errorf("cursors of the mirror: %q", got)
		}
		if got := x.List("SELECT value FROM rowfeed_cursors"); len(got) != 0 {
			x.Errorf("cursors of the source: %q", got)
		}
	})
}

// TestFailedStatementKeepsMirrorConsistent (G8, S5): each statement of the mirror fails in turn, and the answer of the
// COMMIT is lost before and after it took effect. Rows and cursor are always of the same page.
func TestFailedStatementKeepsMirrorConsistent(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		m := mirror(x, to, createMirror)
		for i := range 4 {
			x.Exec(fmt.Sprintf("INSERT INTO m VALUES (%d, 'a', 0)", i))
		}
		m.run()
		for n := int64(1); ; n++ {
			x.Exec(fmt.Sprintf("UPDATE m SET n = %d", n))
			x.Publish(m.feed)
			seen, broken := int64(0), false
			pool := to.DB.OpenTapped(to.T, testdb.Hooks{After: func(
				_ context.Context, ev testdb.TapEvent, err error,
			) error {
				if !ev.InTx && ev.Kind != testdb.Begin || err != nil {
					return err
				}
				if seen++; seen == n {
					broken = true
					return suite.ErrOff
				}
				return nil
			}})
			rf, err := rowfeed.Open(x.Ctx, pool, to.Dialect, nil)
			if err != nil {
				x.Fatal(err)
			}
			s, err := sqlmirror.New(x.Ctx, sqlmirror.Config{Pool: pool, Dialect: to.Dialect, DB: rf, Table: "m"})
			if err != nil {
				x.Fatal(err)
			}
			ctx, cancel := context.WithCancel(x.Ctx)
			r := &relays.Relay{Name: "test", Source: m.feed, Sink: s, Limit: 2, Retry: quickly}
			r.Observe = func(e relays.Event) {
				// After any error that the relay survives, rows and cursor agree.
				if e.Kind == relays.Trouble {
					m.wantConsistent(n)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			m.Eventually("the mirror follows", func() bool {
				return len(to.List(fmt.Sprintf("SELECT id FROM m WHERE n = %d", n))) == 4
			})
			cancel()
			if err := <-ended; err != nil {
				x.Fatal(err)
			}
			m.wantConsistent(n)
			if !broken {
				break
			}
		}
	})
}

// wantConsistent asserts that the rows with n are those up to the cursor.
func (m *mirrored) wantConsistent(n int64) {
	m.Helper()
	head := 4 * (n + 1)
	var at int64
	if _, err := fmt.Sscan(m.to.List("SELECT value FROM rowfeed_cursors")[0], &at); err != nil {
		m.Error(err)
	}
	if done := int64(len(m.to.List(fmt.Sprintf("SELECT id FROM m WHERE n = %d", n)))); at != head-4+done {
		m.Errorf("%d rows are mirrored and the cursor is %d", done, at)
	}
}

// TestNewPassRemovesLostRows (S5): after a new pass from the beginning, for example after a restored backup, the mirror
// has no row that the feed does not have, and has never lost a row that the feed has.
func TestNewPassRemovesLostRows(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		m := mirror(x, to, createMirror)
		for i := range 7 {
			x.Exec(fmt.Sprintf("INSERT INTO m VALUES (%d, 'a', 0)", i))
		}
		m.run()
		// The feed is lost, and with it the deletes since.
		if err := x.RF.DropFeed(x.Ctx, "m"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM m WHERE id IN (1, 4)", "INSERT INTO m VALUES (8, 'new', 0)")
		m.feed = x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"})
		m.Publish(m.feed)
		least := 9
		r := m.relay()
		r.Source = watched{m.feed, func() {
			least = min(least, len(to.List("SELECT id FROM m WHERE id IN (0, 2, 3, 5, 6)")))
		}}
		if err := r.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		m.wantSame("SELECT id, v, n FROM m ORDER BY id")
		if least != 5 {
			x.Errorf("in the midst of the pass only %d of 5 rows were there", least)
		}
		if left := to.List("SELECT * FROM rowfeed_sweep_m"); len(left) > 0 {
			x.Errorf("left over from the sweep: %q", left)
		}
		// The same with a feed that has become empty.
		if err := x.RF.DropFeed(x.Ctx, "m"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM m")
		m.feed = x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"})
		m.run()
		m.wantSame("SELECT id, v, n FROM m ORDER BY id")
	})
}

// watched is a source that calls a function before every page.
type watched struct {
	rowfeed.Source
	before func()
}

func (w watched) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	w.before()
	return w.Source.Fetch(ctx, req)
}

// TestUniqueValuesMoveBetweenRows (H28, S5): values of unique columns move between rows, in one page or over several,
// in any order of arrival.
func TestUniqueValuesMoveBetweenRows(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		m := mirror(x, to,
			"CREATE TABLE m (id bigint NOT NULL PRIMARY KEY, a bigint UNIQUE, b bigint, c bigint, UNIQUE (b, c))")
		const all = "SELECT id, a, b, c FROM m ORDER BY id"
		for i := 1; i <= 6; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO m VALUES (%d, %d, 1, %d)", i, 10*i, i))
		}
		m.run()
		m.wantSame(all)
		x.Exec("UPDATE m SET a = NULL WHERE id = 1", "UPDATE m SET a = 10 WHERE id = 2",
			"UPDATE m SET a = 20 WHERE id = 1")
		m.run() // the values are swapped in one page
		m.wantSame(all)
		// A value moves from row 3 to row 6, and row 3 gets another. Row 3 was changed last, so row 6 arrives first.
		x.Exec("UPDATE m SET a = NULL WHERE id = 3", "UPDATE m SET a = 30 WHERE id = 6",
			"UPDATE m SET b = 2 WHERE id = 4", "UPDATE m SET c = 4 WHERE id = 5", "UPDATE m SET a = 60 WHERE id = 3",
			"UPDATE m SET b = 2, c = 5 WHERE id = 1")
		m.Publish(m.feed)
		r := m.relay()
		r.Limit = 1
		if err := r.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		m.wantSame(all)
		// A new row has values of a deleted and of a changed row.
		x.Exec("DELETE FROM m WHERE id = 2", "UPDATE m SET b = 9 WHERE id = 3", "INSERT INTO m VALUES (7, 10, 1, 3)",
			"UPDATE m SET c = 77 WHERE id = 3")
		m.run()
		m.wantSame(all)
	})
}

// TestMirrorKeepsValues (S5): every kind of value is equal in the mirror, on every pair of databases.
func TestMirrorKeepsValues(t *testing.T) {
	columns := []string{"i", "t", "f", "d", "x", "ts", "tz", "da", "bo", "js"}
	eachMirror(t, func(x, to *suite.Env) {
		x.Exec(x.Text("relay.every_type"))
		to.Exec(to.Text("relay.every_type"))
		m := &mirrored{Env: x, to: to, feed: x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"}), sink: mirrorSink(to, "m")}
		x.Exec(x.Text("relay.every_value"), "INSERT INTO m (id, k) VALUES (2, 'nothing')")
		m.run()
		page := x.Fetch(m.feed, "", 0)
		back := to.Add(rowfeed.FeedSpec{Name: "back", Table: "m"})
		to.Publish(back)
		again := to.Fetch(back, "", 0)
		if len(page.Entries) != 2 || len(again.Entries) != 2 {
			x.Fatalf("%d entries, %d of the mirror", len(page.Entries), len(again.Entries))
		}
		// The order of a back-fill is that of the database's texts.
		for _, entries := range [][]rowfeed.Entry{page.Entries, again.Entries} {
			slices.SortFunc(entries, func(a, b rowfeed.Entry) int { return strings.Compare(keyOf(a), keyOf(b)) })
		}
		for i, c := range append([]string{"id", "k"}, columns...) {
			for j := range page.Entries {
				was, is := page.Entries[j].Row.Value(i), again.Entries[j].Row.Value(i)
				if !sameAcross(was, is) {
					x.Errorf("column %s: %v (%T) became %v (%T)", c, was, was, is, is)
				}
			}
		}
	})
}

func keyOf(e rowfeed.Entry) string {
	id, _ := e.Key.Get("id")
	return fmt.Sprint(id)
}

// sameAcross compares values of two databases, which may lack booleans or JSON, and may end times with a Z.
func sameAcross(a, b any) bool {
	norm := func(v any) string {
		switch v := v.(type) {
		case bool:
			return map[bool]string{true: "1", false: "0"}[v]
		case []byte:
			return fmt.Sprintf("%x", v)
		}
		s := fmt.Sprint(v)
		if strings.HasPrefix(s, "[") { // json.RawMessage
			s = fmt.Sprintf("%s", v)
		}
		s = strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "T", "")
		if strings.HasPrefix(s, "2026-") && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimSuffix(s, "Z"), "0")
		}
		return s
	}
	return norm(a) == norm(b)
}

// TestUnfitMirrorTableIsRefused (S5): a table that cannot be a mirror is refused. A column that both tables get
// later is mirrored.
func TestUnfitMirrorTableIsRefused(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		open := func(table string) error {
			_, err := sqlmirror.New(x.Ctx,
				sqlmirror.Config{Pool: to.Pool, Dialect: to.Dialect, DB: to.RF, Table: table})
			return err
		}
		x.WantCode(open(""), rowfeed.InvalidRequest)
		x.WantCode(open("absent"), rowfeed.Refused)
		to.Exec("CREATE TABLE nokey (id bigint)")
		x.WantCode(open("nokey"), rowfeed.Refused)
		if filled := to.Statements("relay.filled_key"); filled != nil {
			to.Exec(filled...)
			x.WantCode(open("filled"), rowfeed.Refused)
		}
		m := mirror(x, to, createMirror)
		x.Exec("INSERT INTO m VALUES (1, 'a', 0)")
		m.Publish(m.feed)
		for _, table := range []string{
			"CREATE TABLE other (v varchar(100) NOT NULL PRIMARY KEY, id bigint, n bigint)",
			"CREATE TABLE other (id bigint NOT NULL PRIMARY KEY, v varchar(100))",
			"CREATE TABLE other (id bigint NOT NULL PRIMARY KEY, v varchar(100), " +
				"n bigint GENERATED ALWAYS AS (id + 1) STORED)",
		} {
			to.Exec(table)
			r := m.relay()
			r.Sink, r.Retry = mirrorSink(to, "other"), quickly
			err := r.RunOnce(x.Ctx)
			x.WantCode(err, rowfeed.Refused)
			to.Exec("DROP TABLE other", "DROP TABLE rowfeed_sweep_other")
		}
		// Both tables get a column later.
		m.run()
		for _, y := range []*suite.Env{to, x} {
			y.Exec("ALTER TABLE m ADD COLUMN w bigint")
		}
		x.Exec("UPDATE m SET w = 3")
		m.run()
		m.wantSame("SELECT id, v, n, w FROM m ORDER BY id")
	})
}

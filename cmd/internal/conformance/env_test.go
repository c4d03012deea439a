// Package conformance is the one suite that every database passes, through the
// public API of the library and, where a rule is about statements, against the
// dialect. It has tests only. Each test runs on every engine of internal/test/testdb
// with a database of its own, unless testdb.Only says why not; a behaviour that a database lacks is asserted as
// a refusal, not skipped. On PostgreSQL 18 and MySQL only tests run that call testdb.Quick. The first line of a
// test's comment names, behind the test, the rows of docs/CAPABILITIES.md that it shows (internal/test/cases).
//
// Tests that mostly wait, for terms of leases to end and the like, run side by side
// (t.Parallel), after all others: those have the server and the processor to themselves.
package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// env is a fresh database with rowfeed on it.
type env struct {
	*testing.T
	engine  testdb.Engine
	capture feedtype.Capture // of the feeds that add makes; trigger when empty
	shards  int              // theirs, where the test says nothing
	db      *testdb.Database
	pool    *sql.DB // rowfeed's own pool
	dialect dialect.Dialect
	rf      *rowfeed.DB
	ctx     context.Context

	columns map[string]columnFeed // by table: those that writers of capture "column" know
}

// each runs f on every engine, on an initialised database.
func each(t *testing.T, f func(x *env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newEnv(t, e, nil)
		x.migrate()
		f(x)
	})
}

// newEnv opens rowfeed on a fresh database of the engine, without its tables.
func newEnv(t *testing.T, e testdb.Engine, cfg *rowfeed.Config) *env {
	t.Helper()
	return openEnv(t, e.New(t), cfg)
}

func openEnv(t *testing.T, db *testdb.Database, cfg *rowfeed.Config) *env {
	t.Helper()
	ctx := context.Background()
	pool, d, err := open.Open(ctx, db.URL, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	rf, err := rowfeed.Open(ctx, pool, d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &env{T: t, engine: db.Engine, db: db, pool: pool, dialect: d, rf: rf, ctx: ctx}
}

func (x *env) migrate() {
	x.Helper()
	if _, err := x.rf.Migrate(x.ctx); err != nil {
		x.Fatal(err)
	}
}

// number is the environment's variable of that name; what is usual where it is not set.
func (x *env) number(variable string, usual float64) float64 {
	x.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		x.Fatalf("%s: %v", variable, err)
	}
	return n
}

// seconds is number for how long a test goes on.
func (x *env) seconds(variable string, usual float64) time.Duration {
	x.Helper()
	return time.Duration(x.number(variable, usual) * float64(time.Second))
}

// family is the engine's SQL: sqlite, postgres or mysql.
func (x *env) family() string { return x.engine.Family }

// exec runs the test's own SQL, statement by statement, each as a writer would.
func (x *env) exec(statements ...string) {
	x.Helper()
	for _, s := range statements {
		parts := x.sql(s)
		if len(parts) == 1 {
			x.db.Exec(x.T, parts[0])
			continue
		}
		tx := x.begin(sql.LevelReadCommitted)
		for _, part := range parts { // the pool may have no second connection
			if _, err := tx.ExecContext(x.ctx, part); err != nil {
				x.Fatalf("%s: %v", part, err)
			}
		}
		x.commit(tx)
	}
}

// mustFail runs SQL that the database must refuse.
func (x *env) mustFail(statement string) {
	x.Helper()
	if _, err := x.db.Admin().ExecContext(x.ctx, statement); err == nil {
		x.Fatalf("no error from %s", statement)
	}
}

// by picks the text for the engine's family.
func (x *env) by(texts map[string]string) string {
	x.Helper()
	text, ok := texts[x.family()]
	if !ok {
		x.Fatalf("no text for %s", x.family())
	}
	return text
}

// begin opens a transaction of the test's own.
func (x *env) begin(isolation sql.IsolationLevel) *sql.Tx {
	x.Helper()
	if x.family() == "sqlite" {
		isolation = sql.LevelDefault
	}
	tx, err := x.db.Admin().BeginTx(x.ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { tx.Rollback() })
	return tx
}

func (x *env) in(tx *sql.Tx, statements ...string) {
	x.Helper()
	for _, s := range statements {
		for _, part := range x.sql(s) {
			if _, err := tx.ExecContext(x.ctx, part); err != nil {
				x.Fatalf("%s: %v", part, err)
			}
		}
	}
}

func (x *env) commit(tx *sql.Tx) {
	x.Helper()
	if err := tx.Commit(); err != nil {
		x.Fatal(err)
	}
}

// scalar reads one number.
func (x *env) scalar(query string) int64 {
	x.Helper()
	var n int64
	if err := x.db.Admin().QueryRowContext(x.ctx, query).Scan(&n); err != nil {
		x.Fatalf("%s: %v", query, err)
	}
	return n
}

// addKV makes the table kv(id, k, v) and its feed.
func (x *env) addKV() *rowfeed.Feed {
	x.Helper()
	x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	return x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
}

// exact replaces VARCHAR(n) in a CREATE TABLE by a type whose equal values have equal text, which keys
// need with capture column.
func (x *env) exact(create string) string {
	if x.family() != "mysql" {
		return create
	}
	return regexp.MustCompile(`VARCHAR\((\d+)\)`).ReplaceAllString(create, "CHAR($1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
}

func (x *env) add(spec rowfeed.FeedSpec) *rowfeed.Feed {
	x.Helper()
	if spec.Capture == "" {
		spec.Capture = x.capture
	}
	if spec.DataShards == 0 {
		spec.DataShards = x.shards
	}
	f, err := x.rf.AddFeed(x.ctx, spec, nil)
	if err != nil {
		x.Fatal(err)
	}
	x.learn(f)
	return f
}

func (x *env) publish(f *rowfeed.Feed) int {
	x.Helper()
	n, err := f.Publish(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	return n
}

func (x *env) fetch(f rowfeed.Source, after rowfeed.Cursor, limit int) rowfeed.Page {
	x.Helper()
	page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Limit: limit})
	if err != nil {
		x.Fatal(err)
	}
	return page
}

// drain publishes, fetches everything above after and writes it down: "3 upsert
// {...}" a line. It asserts that positions grow.
func (x *env) drain(f *rowfeed.Feed, after rowfeed.Cursor) (lines []string, cursor rowfeed.Cursor) {
	x.Helper()
	x.publish(f)
	last := int64(math.MinInt64)
	for {
		page := x.fetch(f, after, 0)
		for _, e := range page.Entries {
			position, err := strconv.ParseInt(e.Position, 10, 64)
			if err != nil || position <= last {
				x.Fatalf("position %q after %d", e.Position, last)
			}
			last = position
			lines = append(lines, line(e))
		}
		after = page.Cursor
		if !page.More {
			return lines, after
		}
	}
}

// line is an entry without its position: an upsert's row, or a delete's key.
func line(e rowfeed.Entry) string {
	if e.Op == rowfeed.Delete {
		return "delete " + string(e.Key.AppendJSON(nil))
	}
	return "upsert " + string(e.Row.AppendJSON(nil))
}

// wantDrain asserts what is new above the cursor.
func (x *env) wantDrain(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	got, cursor := x.drain(f, after)
	if want = x.order(want); !slices.Equal(got, want) {
		x.Fatalf("entries above %q:\n%s\nwant:\n%s", after, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return cursor
}

// wantCode asserts an error's code, and that it says what to do.
func (x *env) wantCode(err error, code rowfeed.Code) {
	x.Helper()
	if !isCode(err, code) {
		x.Fatalf("error %v, want code %s", err, code)
	}
}

func kv(id int, k string, v int) string {
	return fmt.Sprintf(`upsert {"id":%d,"k":"%s","v":%d}`, id, k, v)
}

func gone(id int) string { return fmt.Sprintf(`delete {"id":%d}`, id) }

// restart starts a killed server again. Idle connections of the test's own pools are
// dropped: each would fail once, at whatever the test does next.
func (x *env) restart(server *testdb.Server) {
	x.Helper()
	server.Start(x.T)
	for _, pool := range []*sql.DB{x.pool, x.db.Admin()} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(8)
	}
}

// wantSound asserts that check finds nothing.
func (x *env) wantSound(f *rowfeed.Feed) {
	x.Helper()
	findings, err := f.Admin().Check(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Note {
			continue // something was not looked for
		}
		x.Errorf("check: %s: %s %v", finding.Rule, finding.Problem, finding.Key)
	}
}

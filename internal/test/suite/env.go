package suite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Env is a fresh database with rowfeed on it.
type Env struct {
	*testing.T
	Engine  testdb.Engine
	Capture feedtype.Capture // of the feeds that Add makes; empty means trigger
	Shards  int              // DataShards of the feeds that Add makes, unless the test sets them
	DB      *testdb.Database
	Pool    *sql.DB // rowfeed's own pool
	Dialect *dialect.Dialect
	RF      *rowfeed.DB
	Ctx     context.Context

	Columns map[string]columnFeed // the feeds with capture "column", by table

	Has *fixture.Fixture // how the database behaves
}

// Each runs f on every engine, on an initialised database.
func Each(t *testing.T, f func(x *Env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := NewEnv(t, e, nil)
		x.Migrate()
		f(x)
	})
}

// NewEnv opens rowfeed on a fresh database of the engine, without its tables.
func NewEnv(t *testing.T, e testdb.Engine, cfg *rowfeed.Config) *Env {
	t.Helper()
	return OpenEnv(t, e.New(t), cfg)
}

func OpenEnv(t *testing.T, db *testdb.Database, cfg *rowfeed.Config) *Env {
	t.Helper()
	ctx := context.Background()
	pool, d, err := Open(ctx, db.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	rf, err := rowfeed.Open(ctx, pool, d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &Env{T: t, Engine: db.Engine, DB: db, Pool: pool, Dialect: d, RF: rf, Ctx: ctx, Has: fixture.Of(db.Engine)}
}

func (x *Env) Migrate() {
	x.Helper()
	if _, err := x.RF.Migrate(x.Ctx); err != nil {
		x.Fatal(err)
	}
}

// Number returns the number in an environment variable, or usual if the variable is not set.
func (x *Env) Number(variable string, usual float64) float64 {
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

// Seconds returns the duration in an environment variable, which is in seconds.
func (x *Env) Seconds(variable string, usual float64) time.Duration {
	x.Helper()
	return time.Duration(x.Number(variable, usual) * float64(time.Second))
}

// Exec runs statements of the test, each as a writer of the feed would.
func (x *Env) Exec(statements ...string) {
	x.Helper()
	for _, s := range statements {
		parts := x.SQL(s)
		if len(parts) == 1 {
			x.DB.Exec(x.T, parts[0])
			continue
		}
		tx := x.Begin(sql.LevelReadCommitted)
		for _, part := range parts { // outside of tx, a pool of one connection would block
			if _, err := tx.ExecContext(x.Ctx, part); err != nil {
				x.Fatalf("%s: %v", part, err)
			}
		}
		x.Commit(tx)
	}
}

// MustFail runs a statement and asserts that the database refuses it.
func (x *Env) MustFail(statement string) {
	x.Helper()
	if _, err := x.DB.Admin().ExecContext(x.Ctx, x.Has.Spell(statement)); err == nil {
		x.Fatalf("no error from %s", statement)
	}
}

// Text returns the named text of the database's fixture, with its verbs replaced by the arguments.
func (x *Env) Text(name string, args ...any) string {
	x.Helper()
	return x.Has.Text(x.T, name, args...)
}

// Statements returns the statements of the named text of the database's fixture.
func (x *Env) Statements(name string, args ...any) []string {
	x.Helper()
	return x.Has.Statements(x.T, name, args...)
}

// Needs skips the test on a database that lacks the text.
func (x *Env) Needs(name string) {
	x.Helper()
	if why := x.Has.Lacking(name); why != "" {
		x.Skip(why)
	}
}

// Isolation returns the level, or the default one on a database that has one writer and no levels. If REPEATABLE READ
// locks what it reads, it returns SNAPSHOT for that.
func (x *Env) Isolation(level sql.IsolationLevel) sql.IsolationLevel {
	switch {
	case x.Has.OneWriter:
		return sql.LevelDefault
	case x.Has.LockingRepeatableRead && level == sql.LevelRepeatableRead:
		return sql.LevelSnapshot
	}
	return level
}

// Begin opens a transaction of the test.
func (x *Env) Begin(isolation sql.IsolationLevel) *sql.Tx {
	x.Helper()
	tx, err := x.DB.Admin().BeginTx(x.Ctx, &sql.TxOptions{Isolation: x.Isolation(isolation)})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { tx.Rollback() })
	return tx
}

func (x *Env) In(tx *sql.Tx, statements ...string) {
	x.Helper()
	for _, s := range statements {
		for _, part := range x.SQL(s) {
			if _, err := tx.ExecContext(x.Ctx, part); err != nil {
				x.Fatalf("%s: %v", part, err)
			}
		}
	}
}

func (x *Env) Commit(tx *sql.Tx) {
	x.Helper()
	if err := tx.Commit(); err != nil {
		x.Fatal(err)
	}
}

// Scalar reads one number.
func (x *Env) Scalar(query string) int64 {
	x.Helper()
	var n int64
	if err := x.DB.Admin().QueryRowContext(x.Ctx, x.Has.Spell(query)).Scan(&n); err != nil {
		x.Fatalf("%s: %v", query, err)
	}
	return n
}

// AddKV makes the table kv(id, k, v) and its feed.
func (x *Env) AddKV() *rowfeed.Feed {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	return x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
}

// Exact replaces VARCHAR(n) in a CREATE TABLE by a type whose equal values have equal text. Keys need such a type with
// capture "column".
func (x *Env) Exact(create string) string {
	return regexp.MustCompile(`VARCHAR\((\d+)\)`).ReplaceAllString(create, x.Text("suite.exact_text"))
}

func (x *Env) Add(spec rowfeed.FeedSpec) *rowfeed.Feed {
	x.Helper()
	if spec.Capture == "" {
		spec.Capture = x.Capture
	}
	if spec.DataShards == 0 {
		spec.DataShards = x.Shards
	}
	f, err := x.RF.AddFeed(x.Ctx, spec, nil)
	if err != nil {
		x.Fatal(err)
	}
	x.learn(f)
	return f
}

func (x *Env) Publish(f *rowfeed.Feed) int {
	x.Helper()
	n, err := f.Publish(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	return n
}

func (x *Env) Fetch(f rowfeed.Source, after rowfeed.Cursor, limit int) rowfeed.Page {
	x.Helper()
	page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: limit})
	if err != nil {
		x.Fatal(err)
	}
	return page
}

// Drain publishes, fetches all entries above after, and returns them as Line formats them. It asserts that positions
// increase.
func (x *Env) Drain(f *rowfeed.Feed, after rowfeed.Cursor) (lines []string, cursor rowfeed.Cursor) {
	x.Helper()
	x.Publish(f)
	last := int64(math.MinInt64)
	for {
		page := x.Fetch(f, after, 0)
		for _, e := range page.Entries {
			position, err := strconv.ParseInt(e.Position, 10, 64)
			if err != nil || position <= last {
				x.Fatalf("position %q after %d", e.Position, last)
			}
			last = position
			lines = append(lines, Line(e))
		}
		after = page.Cursor
		if !page.More {
			return lines, after
		}
	}
}

// Line formats an entry without its position: an upsert's row, or a delete's key.
func Line(e rowfeed.Entry) string {
	if e.Op == rowfeed.Delete {
		return "delete " + string(e.Key.AppendJSON(nil))
	}
	return "upsert " + string(e.Row.AppendJSON(nil))
}

// WantDrain publishes and asserts which entries are above the cursor.
func (x *Env) WantDrain(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	got, cursor := x.Drain(f, after)
	if want = x.Order(want); !slices.Equal(got, want) {
		x.Fatalf("entries above %q:\n%s\nwant:\n%s", after, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return cursor
}

// WantCode asserts an error's code.
func (x *Env) WantCode(err error, code rowfeed.Code) {
	x.Helper()
	if !IsCode(err, code) {
		x.Fatalf("error %v, want code %s", err, code)
	}
}

// KV returns the line of an upsert of the table kv.
func KV(id int, k string, v int) string {
	return fmt.Sprintf(`upsert {"id":%d,"k":"%s","v":%d}`, id, k, v)
}

// Gone returns the line of a delete of the table kv.
func Gone(id int) string { return fmt.Sprintf(`delete {"id":%d}`, id) }

// Restart starts a killed server again. It closes the idle connections of the test's pools, because the next statement
// on each of them would fail.
func (x *Env) Restart(server *testdb.Server) {
	x.Helper()
	server.Start(x.T)
	for _, pool := range []*sql.DB{x.Pool, x.DB.Admin()} {
		pool.SetMaxIdleConns(0)
		pool.SetMaxIdleConns(8)
	}
}

// WantSound asserts that check finds nothing.
func (x *Env) WantSound(f *rowfeed.Feed) {
	x.Helper()
	findings, err := f.Admin().Check(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Note {
			continue // it says what was not checked
		}
		x.Errorf("check: %s: %s %v", finding.Rule, finding.Problem, finding.Key)
	}
}

func IsCode(err error, code rowfeed.Code) bool { return errors.Is(err, code) }

// ReadUncommitted returns the setting of a connection that sees rows that are not committed.
func (x *Env) ReadUncommitted() string { return x.Text("suite.read_uncommitted") }

// Raced tells whether the race detector is on. It makes code that handles single bytes, such as SQLite in Go, twenty
// times slower.
var Raced = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
})

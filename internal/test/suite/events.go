package suite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Events is an Env with the table events(id, shard, ulid, data) and its ULID feed.
type Events struct {
	*Env
	Feed *rowfeed.Feed
}

// EachULID runs f on every engine with a ULID feed of mode blocking.
func EachULID(t *testing.T, f func(x *Events)) {
	t.Helper()
	Each(t, func(x *Env) {
		x.MakeEvents()
		f(&Events{x, x.Add(EventsSpec())})
	})
}

// EventsSpec is the feed of the table events.
func EventsSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{
		Name: "events", Table: "events", Mode: rowfeed.ModeBlocking, PositionColumn: "ulid", ShardColumn: "shard",
	}
}

// MakeEvents creates the table events and its index.
func (x *Env) MakeEvents() {
	x.Helper()
	x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
}

// ULIDType returns the type of a column of ULIDs.
func (x *Env) ULIDType() string { return x.Text("ulid.column_type") }

// ULIDLiteral returns the SQL of the ULID with these bytes, which are given in hexadecimal digits.
func (x *Env) ULIDLiteral(hex string) string { return x.Text("ulid.literal", hex) }

// EventsTable returns the statement that creates a table like events.
func (x *Env) EventsTable(name string) string {
	return "CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, ulid " + x.ULIDType() +
		" NOT NULL, data VARCHAR(100))"
}

// Lock locks shards in a transaction, and returns their ULIDs.
func (x *Events) Lock(tx *sql.Tx, req rowfeed.LockRequest) *rowfeed.ULIDs {
	x.Helper()
	u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), req)
	if err != nil {
		x.Fatal(err)
	}
	return u
}

// At returns the i-th ULID of a shard.
func (x *Events) At(u *rowfeed.ULIDs, shard int, i int64) ulid.ULID {
	x.Helper()
	id, err := u.At(shard, i)
	if err != nil {
		x.Fatal(err)
	}
	return id
}

// Event inserts a row.
func (x *Events) Event(tx *sql.Tx, id, shard int, u ulid.ULID, data string) {
	x.Helper()
	if err := x.TryEvent(x.Ctx, tx, id, shard, u, data); err != nil {
		x.Fatal(err)
	}
}

// TryEvent inserts a row, for goroutines.
func (x *Events) TryEvent(ctx context.Context, tx *sql.Tx, id, shard int, u ulid.ULID, data string) error {
	return InsertEvent(ctx, tx, x.Dialect, id, shard, u, data)
}

// InsertEvent inserts a row, for processes without an Env.
func InsertEvent(
	ctx context.Context, tx *sql.Tx, d *dialect.Dialect, id, shard int, u ulid.ULID, data string,
) error {
	values := d.Placeholder(1) + ", " + d.Placeholder(2) + ", " + d.Placeholder(3) + ", " + d.Placeholder(4)
	_, err := tx.ExecContext(ctx, "INSERT INTO events (id, shard, ulid, data) VALUES ("+values+")", id, shard, u, data)
	return err
}

// Write locks a shard and inserts rows with ids from first to last, in one transaction.
func (x *Events) Write(shard, first, last int) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
	for id := first; id <= last; id++ {
		x.Event(tx, id, shard, x.At(u, shard, int64(id-first)), "")
	}
	x.Commit(tx)
}

// Page returns a page of one shard.
func (x *Events) Page(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) rowfeed.Page {
	x.Helper()
	page, err := x.TryPage(f, shard, after, limit)
	if err != nil {
		x.Fatal(err)
	}
	return page
}

// TryPage is Page for goroutines. It tries again while another process moves records of the shard.
func (x *Events) TryPage(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) (rowfeed.Page, error) {
	deadline := time.Now().Add(Patience())
	for {
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: limit, Shards: rowfeed.One(shard)})
		if !IsCode(err, rowfeed.Locked) || time.Now().After(deadline) {
			return page, err
		}
	}
}

// WantIDs asserts the rows of a page, whose positions must be growing ULIDs.
func (x *Events) WantIDs(page rowfeed.Page, more bool, want ...int) {
	x.Helper()
	var got []int
	last := ""
	for _, e := range page.Entries {
		id, _ := e.Key.Get("id")
		got = append(got, int(id.(int64)))
		if _, err := ulid.ParseStrict(e.Position); err != nil || e.Position <= last || e.Op != rowfeed.Upsert {
			x.Fatalf("position %q after %q, %s (%v)", e.Position, last, e.Op, err)
		}
		last = e.Position
	}
	if !slices.Equal(got, want) || page.More != more {
		x.Fatalf("a page of rows %v, more %v; want %v, %v", got, page.More, want, more)
	}
}

// Writer returns the pool of one writer, whose session waits long enough for locks.
func (x *Events) Writer(h testdb.Hooks) *sql.DB {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, h)
	pool.SetMaxOpenConns(1)
	if x.Has.OneWriter { // such a session waits 5 s by default
		x.SetLockWait(pool, time.Minute)
	}
	return pool
}

// SetLockWait limits how long the session of a pool of one connection waits for a lock.
func (x *Env) SetLockWait(pool *sql.DB, wait time.Duration) {
	x.Helper()
	if _, err := pool.Exec(x.Text("ulid.set_lock_wait", wait.Milliseconds(), int(wait.Seconds()))); err != nil {
		x.Fatal(err)
	}
}

// Millis returns the time of a ULID.
func Millis(u ulid.ULID) time.Time { return time.UnixMilli(int64(u.Time())).UTC() }

// Lines returns the entries of a page as text.
func Lines(page rowfeed.Page) string {
	var s []string
	for _, e := range page.Entries {
		s = append(s, fmt.Sprint(e.Position, " ", e.Shard, " ", Line(e)))
	}
	return strings.Join(s, "\n")
}

// Now returns the time of the database's clock.
func (x *Env) Now() time.Time {
	x.Helper()
	return time.UnixMicro(x.Scalar("SELECT " + x.Dialect.Now)).UTC()
}

// Routines returns the number of functions and procedures that a feed of mode blocking has.
func (x *Env) Routines() int {
	x.Helper()
	return len(strings.Fields(x.Text("ulid.routines")))
}

// Holds starts a process that has locked shard 1. The process commits when release is called.
func (x *Events) Holds(params string, req rowfeed.LockRequest) (p *Program, release func()) {
	x.Helper()
	file := filepath.Join(x.TempDir(), "release")
	child := testdb.CrashChild(x.T, "shard holder",
		"URL="+x.DB.URL, "PARAMS="+params, "IDLE="+req.Idle.String(), "FILE="+file)
	p = &Program{child, []string{"", "shard holder"}}
	x.WaitFor(p, regexp.MustCompile("holding"))
	return p, func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			x.Fatal(err)
		}
	}
}

// WaitSetting returns how long the session of a transaction waits for a lock, as the database shows it.
func (x *Env) WaitSetting(tx *sql.Tx) (setting string) {
	x.Helper()
	if err := tx.QueryRowContext(x.Ctx, x.Text("ulid.lock_wait")).Scan(&setting); err != nil {
		x.Fatal(err)
	}
	return setting
}

// BeginOn opens a transaction on a pool.
func (x *Env) BeginOn(pool *sql.DB) *sql.Tx {
	x.Helper()
	level := sql.LevelReadCommitted
	if x.Has.OneWriter {
		level = sql.LevelDefault
	}
	tx, err := pool.BeginTx(x.Ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { tx.Rollback() })
	return tx
}

// WantVerified asserts that the feed's objects are in order.
func (x *Events) WantVerified() {
	x.Helper()
	if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
		x.Errorf("verify: %v, %v", problems, err)
	}
}

// Halves is the first ULID of a lock by SQL, and the numbers that ULIDs are computed from.
type Halves struct {
	ULID      []byte
	High, Low int64
}

// LockBySQL locks a shard with the database's function, as writers without the library do. The hint is SQL.
func (x *Events) LockBySQL(tx *sql.Tx, shard int, hint string) (h Halves, err error) {
	statements := x.Statements("ulid.lock_and_read", shard, hint)
	last := len(statements) - 1
	for _, s := range statements[:last] {
		if _, err = tx.ExecContext(x.Ctx, s); err != nil {
			return h, err
		}
	}
	err = tx.QueryRowContext(x.Ctx, statements[last]).Scan(&h.ULID, &h.High, &h.Low)
	return h, err
}

// BySQL returns the SQL of the i-th ULID of the last lock. It names the shard if a shard is given.
func (x *Events) BySQL(i string, shard ...int) string {
	if len(shard) == 0 {
		return x.Text("ulid.ulid", i)
	}
	return x.Text("ulid.ulid_of_shard", i, shard[0])
}

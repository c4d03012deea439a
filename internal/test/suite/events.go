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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Events is an env with a table events(id, shard, ulid, data) and its feed, with ULIDs.
type Events struct {
	*Env
	Feed *rowfeed.Feed
}

// EachULID runs f on every engine, on a database with such a feed.
func EachULID(t *testing.T, f func(x *Events)) {
	t.Helper()
	Each(t, func(x *Env) {
		x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		f(&Events{x, x.Add(EventsSpec())})
	})
}

func EventsSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeBlocking, PositionColumn: "ulid", ShardColumn: "shard"}
}

func (x *Env) ULIDType() string {
	return x.By(map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "BINARY(16)"})
}

func (x *Env) EventsTable(name string) string {
	return "CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, ulid " + x.ULIDType() + " NOT NULL, data VARCHAR(100))"
}

// Lock takes ULIDs in a transaction.
func (x *Events) Lock(tx *sql.Tx, req rowfeed.LockRequest) *rowfeed.ULIDs {
	x.Helper()
	u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), req)
	if err != nil {
		x.Fatal(err)
	}
	return u
}

// At is the i-th ULID of a shard.
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

func (x *Events) TryEvent(ctx context.Context, tx *sql.Tx, id, shard int, u ulid.ULID, data string) error {
	query := "INSERT INTO events (id, shard, ulid, data) VALUES (?, ?, ?, ?)"
	if x.Family() == "postgres" {
		query = "INSERT INTO events (id, shard, ulid, data) VALUES ($1, $2, $3, $4)"
	}
	_, err := tx.ExecContext(ctx, query, id, shard, u, data)
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

// Page is a page of one shard.
func (x *Events) Page(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) rowfeed.Page {
	x.Helper()
	page, err := x.TryPage(f, shard, after, limit)
	if err != nil {
		x.Fatal(err)
	}
	return page
}

// TryPage is page for goroutines. Another mover of the shard may be a slow one.
func (x *Events) TryPage(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) (rowfeed.Page, error) {
	deadline := time.Now().Add(Patience())
	for {
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: limit, Shards: rowfeed.One(shard)})
		if !IsCode(err, rowfeed.Locked) || time.Now().After(deadline) {
			return page, err
		}
	}
}

// WantIDs asserts the rows of a page, whose positions are ULIDs that grow.
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

// Writer is a pool for one writer, that waits for locks for as long as it takes.
func (x *Events) Writer(h testdb.Hooks) *sql.DB {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, h)
	pool.SetMaxOpenConns(1)
	if x.Family() == "sqlite" {
		if _, err := pool.Exec("PRAGMA busy_timeout = 60000"); err != nil {
			x.Fatal(err)
		}
	}
	return pool
}

func Millis(u ulid.ULID) time.Time { return time.UnixMilli(int64(u.Time())).UTC() }

func Lines(page rowfeed.Page) string {
	var s []string
	for _, e := range page.Entries {
		s = append(s, fmt.Sprint(e.Position, " ", e.Shard, " ", Line(e)))
	}
	return strings.Join(s, "\n")
}

// Now is the database's clock.
func (x *Env) Now() time.Time {
	x.Helper()
	return time.UnixMicro(x.Scalar("SELECT " + x.Dialect.Now())).UTC()
}

// Routines is how many functions and procedures a feed of mode blocking has.
func (x *Env) Routines() int {
	x.Helper()
	return len(strings.Fields(x.By(map[string]string{"sqlite": "", "postgres": "lock ulid", "mysql": "lock take witness ulid"})))
}

// Holds starts a writer in a process of its own, which has shard 1.
func (x *Events) Holds(params string, req rowfeed.LockRequest) (p *Program, goOn func()) {
	x.Helper()
	file := filepath.Join(x.TempDir(), "go on")
	p = &Program{testdb.CrashChild(x.T, "shard holder", "URL="+x.DB.URL, "PARAMS="+params, "IDLE="+req.Idle.String(), "FILE="+file), []string{"", "shard holder"}}
	x.WaitFor(p, regexp.MustCompile("holding"))
	return p, func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			x.Fatal(err)
		}
	}
}

// WaitSetting reads what bounds the waits of a transaction's session, in its own words.
func (x *Env) WaitSetting(tx *sql.Tx) (setting string) {
	x.Helper()
	query := x.By(map[string]string{"sqlite": "PRAGMA busy_timeout", "postgres": "SELECT current_setting('lock_timeout')", "mysql": "SELECT @@SESSION.innodb_lock_wait_timeout"})
	if err := tx.QueryRowContext(x.Ctx, query).Scan(&setting); err != nil {
		x.Fatal(err)
	}
	return setting
}

// BeginOn opens a transaction on a pool.
func (x *Env) BeginOn(pool *sql.DB) *sql.Tx {
	x.Helper()
	level := sql.LevelReadCommitted
	if x.Family() == "sqlite" {
		level = sql.LevelDefault
	}
	tx, err := pool.BeginTx(x.Ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { tx.Rollback() })
	return tx
}

func (x *Events) WantVerified() {
	x.Helper()
	if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
		x.Errorf("verify: %v, %v", problems, err)
	}
}

// Halves are what a lock by SQL has given.
type Halves struct {
	ULID      []byte
	High, Low int64
}

// LockBySQL takes ULIDs as a writer without the library does.
func (x *Events) LockBySQL(tx *sql.Tx, shard int, hint string) (h Halves, err error) {
	if x.Family() == "postgres" {
		err = tx.QueryRowContext(x.Ctx, fmt.Sprintf("SELECT uuid_send(ulid), ulid_high, ulid_low FROM rowfeed_lock_events(%d, %s)", shard, hint)).Scan(&h.ULID, &h.High, &h.Low)
		return h, err
	}
	if _, err = tx.ExecContext(x.Ctx, fmt.Sprintf("CALL rowfeed_lock_events(%d, %s, @ulid, @high, @low)", shard, hint)); err == nil {
		err = tx.QueryRowContext(x.Ctx, "SELECT @ulid, @high, @low").Scan(&h.ULID, &h.High, &h.Low)
	}
	return h, err
}

// BySQL is the SQL of the i-th ULID of the lock before, of the shard that is named where there may be several.
func (x *Events) BySQL(i string, shard ...int) string {
	named := ""
	for _, s := range shard {
		named += fmt.Sprint(", ", s)
	}
	return x.By(map[string]string{"postgres": "rowfeed_ulid_events(" + i + named + ")", "mysql": "rowfeed_ulid_events(@high, @low, " + i + ")"})
}

package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// events is an env with a table events(id, shard, ulid, data) and its feed, with ULIDs.
type events struct {
	*env
	feed *rowfeed.Feed
}

// eachULID runs f on every engine, on a database with such a feed.
func eachULID(t *testing.T, f func(x *events)) {
	t.Helper()
	each(t, func(x *env) {
		x.exec(x.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		f(&events{x, x.add(eventsSpec())})
	})
}

func eventsSpec() rowfeed.FeedSpec {
	return rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeBlocking, PositionColumn: "ulid", ShardColumn: "shard"}
}

func (x *env) ulidType() string {
	return x.by(map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "BINARY(16)"})
}

func (x *env) eventsTable(name string) string {
	return "CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, ulid " + x.ulidType() + " NOT NULL, data VARCHAR(100))"
}

// lock takes ULIDs in a transaction.
func (x *events) lock(tx *sql.Tx, req rowfeed.LockRequest) *rowfeed.ULIDs {
	x.Helper()
	u, err := x.feed.Lock(x.ctx, rowfeed.InTx(tx), req)
	if err != nil {
		x.Fatal(err)
	}
	return u
}

// at is the i-th ULID of a shard.
func (x *events) at(u *rowfeed.ULIDs, shard int, i int64) ulid.ULID {
	x.Helper()
	id, err := u.At(shard, i)
	if err != nil {
		x.Fatal(err)
	}
	return id
}

// event inserts a row.
func (x *events) event(tx *sql.Tx, id, shard int, u ulid.ULID, data string) {
	x.Helper()
	if err := x.tryEvent(x.ctx, tx, id, shard, u, data); err != nil {
		x.Fatal(err)
	}
}

func (x *events) tryEvent(ctx context.Context, tx *sql.Tx, id, shard int, u ulid.ULID, data string) error {
	query := "INSERT INTO events (id, shard, ulid, data) VALUES (?, ?, ?, ?)"
	if x.family() == "postgres" {
		query = "INSERT INTO events (id, shard, ulid, data) VALUES ($1, $2, $3, $4)"
	}
	_, err := tx.ExecContext(ctx, query, id, shard, u, data)
	return err
}

// write locks a shard and inserts rows with ids from first to last, in one transaction.
func (x *events) write(shard, first, last int) {
	x.Helper()
	tx := x.begin(sql.LevelReadCommitted)
	u := x.lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
	for id := first; id <= last; id++ {
		x.event(tx, id, shard, x.at(u, shard, int64(id-first)), "")
	}
	x.commit(tx)
}

// page is a page of one shard.
func (x *events) page(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) rowfeed.Page {
	x.Helper()
	page, err := x.tryPage(f, shard, after, limit)
	if err != nil {
		x.Fatal(err)
	}
	return page
}

// tryPage is page for goroutines. Another mover of the shard may be a slow one.
func (x *events) tryPage(f rowfeed.Source, shard int, after rowfeed.Cursor, limit int) (rowfeed.Page, error) {
	deadline := time.Now().Add(patience())
	for {
		page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Limit: limit, Shards: rowfeed.One(shard)})
		if !isCode(err, rowfeed.Locked) || time.Now().After(deadline) {
			return page, err
		}
	}
}

// wantIDs asserts the rows of a page, whose positions are ULIDs that grow.
func (x *events) wantIDs(page rowfeed.Page, more bool, want ...int) {
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

// isolations are the levels that an application's transaction may have.
func (x *env) isolations() []sql.IsolationLevel {
	if x.family() == "sqlite" {
		return []sql.IsolationLevel{sql.LevelDefault}
	}
	return []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
}

// writer is a pool for one writer, that waits for locks for as long as it takes.
func (x *events) writer(h testdb.Hooks) *sql.DB {
	x.Helper()
	pool := x.db.OpenTapped(x.T, h)
	pool.SetMaxOpenConns(1)
	if x.family() == "sqlite" {
		if _, err := pool.Exec("PRAGMA busy_timeout = 60000"); err != nil {
			x.Fatal(err)
		}
	}
	return pool
}

func millis(u ulid.ULID) time.Time { return time.UnixMilli(int64(u.Time())).UTC() }

func lines(page rowfeed.Page) string {
	var s []string
	for _, e := range page.Entries {
		s = append(s, fmt.Sprint(e.Position, " ", e.Shard, " ", line(e)))
	}
	return strings.Join(s, "\n")
}

// now is the database's clock.
func (x *env) now() time.Time {
	x.Helper()
	return time.UnixMicro(x.scalar("SELECT " + x.dialect.Now())).UTC()
}

// routines is how many functions and procedures a feed of mode blocking has.
func (x *env) routines() int {
	x.Helper()
	return len(strings.Fields(x.by(map[string]string{"sqlite": "", "postgres": "lock ulid", "mysql": "lock take witness ulid"})))
}

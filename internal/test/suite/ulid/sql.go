package ulid

import (
	"database/sql"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockInOneStatementIsUsable (M33): on PostgreSQL one statement, one message of several statements and a DO block
// are transactions that may lock a shard and insert. They are not refused as locks without a transaction.
func TestLockInOneStatementIsUsable(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // SQLite has no routines; the others refuse a lock without a transaction
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec(x.Statements("ulid.lock_and_insert_in_one", 1)...)
		x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 2, 3)
		x.WantSound(x.Feed)
	})
}

// TestFunctionsAndLibraryShareState (M36, M37, M38, M39): writers with the functions and writers with the library lock
// one shard in turn. One INSERT … SELECT uses 20,000 ULIDs of one lock. Invalid offsets, hints and uses outside the
// lock's transaction fail. Missing or other functions are reported by verify and made by upgrade.
func TestFunctionsAndLibraryShareState(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if !x.Has.Functions {
			if x.Dialect.Routines != nil {
				x.Error("the dialect creates functions in a database that has none")
			}
			return
		}
		conn := connection(x.Env)
		begin := func() *sql.Tx {
			x.Helper()
			tx, err := conn.BeginTx(x.Ctx, nil)
			if err != nil {
				x.Fatal(err)
			}
			x.Cleanup(func() { tx.Rollback() })
			return tx
		}
		must := func(tx *sql.Tx, shard int, hint string) suite.Halves {
			x.Helper()
			h, err := x.LockBySQL(tx, shard, hint)
			if err != nil {
				x.Fatal(err)
			}
			return h
		}
		x.Write(-5, 1, 1)
		tx := begin()
		h := must(tx, -5, "NULL")
		u := ulid.ULID(h.ULID)
		if int64(binary.BigEndian.Uint64(u[:8])) != h.High || int64(binary.BigEndian.Uint64(u[8:])) != h.Low {
			x.Errorf("the ULID %s differs from the numbers %d and %d", u, h.High, h.Low)
		}
		x.In(tx, "INSERT INTO events (id, shard, ulid, data) "+series("i + 2, -5, "+x.BySQL("i + 2")+", ''", 20_000))
		second := ulid.ULID(must(tx, -5, "NULL").ULID)
		if second.Compare(u) <= 0 {
			x.Errorf("the second lock has %s, which is not above %s", second, u)
		}
		if err := insertBySQL(x, tx, 20002, -5, 0); err != nil {
			x.Fatal(err)
		}
		x.Commit(tx)
		x.Write(-5, 20003, 20003)
		var ids []int
		for after, more := rowfeed.Beginning, true; more; {
			page := x.Page(x.Feed, -5, after, 10_000)
			for _, e := range page.Entries {
				id, _ := e.Key.Get("id")
				ids = append(ids, int(id.(int64)))
			}
			after, more = page.Cursor, page.More
		}
		if len(ids) != 20003 || !slices.IsSorted(ids) {
			x.Errorf("got %d rows, want 20003; in order: %v", len(ids), slices.IsSorted(ids))
		}
		x.WantSound(x.Feed)

		refused := func(what string, statements ...string) {
			x.Helper()
			tx := begin()
			defer tx.Rollback()
			must(tx, 1, "NULL")
			for _, s := range statements[:len(statements)-1] {
				x.In(tx, s)
			}
			if _, err := tx.ExecContext(x.Ctx, statements[len(statements)-1]); err == nil {
				x.Errorf("%s is not refused", what)
			}
		}
		for _, i := range []string{"-1", "100000000000", "NULL"} {
			refused("offset "+i, "INSERT INTO events (id, shard, ulid) VALUES (30000, 1, "+x.BySQL(i)+")")
		}
		for ahead, ok := range map[time.Duration]bool{
			2 * time.Minute: false, 30 * time.Second: true, -48 * time.Hour: true,
		} {
			tx := begin()
			_, err := x.LockBySQL(tx, 2, hintSQL(x.Env, x.Now().Add(ahead)))
			if ok != (err == nil) {
				x.Errorf("with a hint that is %s ahead: error %v", ahead, err)
			}
			tx.Rollback()
		}
		if x.Has.TransactionULIDs {
			lock, use := x.Text("ulid.lock", 1), "SELECT "+x.BySQL("0", 1)
			refused("a ULID of a rolled back savepoint",
				"COMMIT", "BEGIN", "SAVEPOINT s", lock, "ROLLBACK TO SAVEPOINT s", use)
			refused("a ULID of an earlier transaction", "COMMIT", "BEGIN", use)
			if _, err := conn.ExecContext(x.Ctx, lock); err == nil {
				x.Error("the function locked a shard without a transaction")
			}
			if _, err := conn.ExecContext(x.Ctx, use); err == nil {
				x.Error("the function returned a ULID without a transaction")
			}
		} else {
			_, before := stateOf(x.Env, -5)
			if _, err := conn.ExecContext(x.Ctx, x.Text("ulid.lock", -5)); err == nil {
				x.Error("the procedure locked a shard without a transaction")
			}
			if _, after := stateOf(x.Env, -5); after != before {
				x.Error("a lock that was refused has changed the shard's state")
			}
		}

		// Missing functions are reported and made again, and so are other functions with their names.
		for _, s := range x.Dialect.Routines.ULIDDown(
			&dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_"}}) {
			x.Exec(s.SQL)
		}
		if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != x.Routines() {
			x.Errorf("verify: %v, %v; want %d problems", problems, err, x.Routines())
		}
		if repaired, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(repaired) != x.Routines() {
			x.Errorf("upgrade: %v, %v; want %d repairs", repaired, err, x.Routines())
		}
		x.Exec(x.Statements("ulid.replace_ulid_function")...)
		repaired, err := x.Feed.Admin().Upgrade(x.Ctx)
		if err != nil || len(repaired) != 1 || !strings.Contains(repaired[0], "rowfeed_ulid_events") {
			x.Errorf("upgrade: %v, %v; want one repair", repaired, err)
		}
	})
}

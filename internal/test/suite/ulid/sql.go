package ulid

import (
	"database/sql"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lockInTime is lockBySQL for a writer that waits for as long as it takes, where the function would not.
func lockInTime(x *suite.Events, tx *sql.Tx, shard int, hint string) (h suite.Halves, err error) {
	if x.Family() == "postgres" {
		if _, err := tx.ExecContext(x.Ctx, "SET LOCAL lock_timeout = '1h'"); err != nil {
			return h, err
		}
	}
	return x.LockBySQL(tx, shard, hint)
}

// TestFunctionsAndLibraryShareState (M36, M37, M38, M39): writers with the functions and writers with the library take turns on one
// state; one INSERT … SELECT has as many as it likes; what each engine can refuse it does
// (M30, M33, M36, M37, M38, M39, M40).
func TestFunctionsAndLibraryShareState(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if x.Family() == "sqlite" {
			if steps := x.Dialect.ULIDUp(nil); len(steps) != 0 {
				x.Error("SQLite has functions")
			}
			return
		}
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
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
			x.Errorf("%s is not (%d, %d)", u, h.High, h.Low)
		}
		series := x.By(map[string]string{
			"postgres": "SELECT g, -5, " + x.BySQL("g") + ", '' FROM generate_series(2, 20001) g",
			"mysql":    "WITH RECURSIVE n (g) AS (SELECT 0 UNION ALL SELECT g + 1 FROM n WHERE g < 199) SELECT 2 + a.g * 200 + b.g, -5, " + x.BySQL("2 + a.g * 200 + b.g") + ", '' FROM n a JOIN n b WHERE a.g < 100",
		})
		x.In(tx, "INSERT INTO events (id, shard, ulid, data) "+series)
		second := must(tx, -5, "NULL") // above all of those
		x.In(tx, "INSERT INTO events (id, shard, ulid, data) VALUES (20002, -5, "+x.BySQL("0")+", '')")
		if a, b := ulid.ULID(second.ULID), u; a.Compare(b) <= 0 {
			x.Errorf("the second range %s is not above %s", a, b)
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
			x.Errorf("%d rows, sorted %v", len(ids), slices.IsSorted(ids))
		}
		x.WantSound(x.Feed)

		// What is refused.
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
		for hint, ok := range map[string]bool{"+ INTERVAL '2' MINUTE": false, "+ INTERVAL '30' SECOND": true, "- INTERVAL '2' DAY": true} {
			tx := begin()
			_, err := x.LockBySQL(tx, 2, x.By(map[string]string{"postgres": "clock_timestamp() ", "mysql": "UTC_TIMESTAMP(6) "})+hint)
			if ok != (err == nil) {
				x.Errorf("hint %s: %v", hint, err)
			}
			tx.Rollback()
		}
		if x.Family() == "postgres" {
			refused("a range taken back by a savepoint", "COMMIT", "BEGIN", "SAVEPOINT s", "SELECT * FROM rowfeed_lock_events(1)", "ROLLBACK TO SAVEPOINT s", "SELECT rowfeed_ulid_events(0, 1)")
			refused("a later transaction", "COMMIT", "BEGIN", "SELECT rowfeed_ulid_events(0, 1)")
			if _, err := conn.ExecContext(x.Ctx, "SELECT * FROM rowfeed_lock_events(1)"); err != nil {
				x.Error(err) // nothing can tell
			}
			if _, err := conn.ExecContext(x.Ctx, "SELECT rowfeed_ulid_events(0, 1)"); err == nil {
				x.Error("without a transaction a ULID is made")
			}
		} else {
			before := x.Scalar("SELECT ulid_low FROM rowfeed_shards WHERE shard = -5")
			if _, err := conn.ExecContext(x.Ctx, "CALL rowfeed_lock_events(-5, NULL, @ulid, @high, @low)"); err == nil {
				x.Error("without a transaction ULIDs are taken")
			}
			if after := x.Scalar("SELECT ulid_low FROM rowfeed_shards WHERE shard = -5"); after != before {
				x.Error("a lock that was refused has taken ULIDs")
			}
		}
		// Missing functions are found, and mended.
		for _, s := range x.Dialect.ULIDDown(&dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_"}}) {
			x.Exec(s.SQL)
		}
		if problems, err := x.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != x.Routines() {
			x.Errorf("%v, %v", problems, err)
		}
		if mended, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != x.Routines() {
			x.Errorf("%v, %v", mended, err)
		}
		// So are others of their names.
		if x.Family() == "postgres" {
			x.Exec("CREATE OR REPLACE FUNCTION rowfeed_ulid_events(i bigint, shard bigint DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RETURN gen_random_uuid(); END'")
		} else {
			x.Exec("DROP FUNCTION rowfeed_ulid_events", "CREATE FUNCTION rowfeed_ulid_events(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16) DETERMINISTIC NO SQL RETURN UNHEX(MD5(i))")
		}
		if mended, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 || !strings.Contains(mended[0], "rowfeed_ulid_events") {
			x.Errorf("%v, %v", mended, err)
		}
	})
}

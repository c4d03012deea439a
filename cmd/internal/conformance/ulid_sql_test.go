package conformance

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// halves are what a lock by SQL has given.
type halves struct {
	ulid      []byte
	high, low int64
}

// lockBySQL takes ULIDs as a writer without the library does.
func (x *events) lockBySQL(tx *sql.Tx, shard int, hint string) (h halves, err error) {
	if x.family() == "postgres" {
		err = tx.QueryRowContext(x.ctx, fmt.Sprintf("SELECT uuid_send(ulid), ulid_high, ulid_low FROM rowfeed_lock_events(%d, %s)", shard, hint)).Scan(&h.ulid, &h.high, &h.low)
		return h, err
	}
	if _, err = tx.ExecContext(x.ctx, fmt.Sprintf("CALL rowfeed_lock_events(%d, %s, @ulid, @high, @low)", shard, hint)); err == nil {
		err = tx.QueryRowContext(x.ctx, "SELECT @ulid, @high, @low").Scan(&h.ulid, &h.high, &h.low)
	}
	return h, err
}

// lockInTime is lockBySQL for a writer that waits for as long as it takes, where the function would not.
func (x *events) lockInTime(tx *sql.Tx, shard int, hint string) (h halves, err error) {
	if x.family() == "postgres" {
		if _, err := tx.ExecContext(x.ctx, "SET LOCAL lock_timeout = '1h'"); err != nil {
			return h, err
		}
	}
	return x.lockBySQL(tx, shard, hint)
}

// bySQL is the SQL of the i-th ULID of the lock before, of the shard that is named where there may be several.
func (x *events) bySQL(i string, shard ...int) string {
	named := ""
	for _, s := range shard {
		named += fmt.Sprint(", ", s)
	}
	return x.by(map[string]string{"postgres": "rowfeed_ulid_events(" + i + named + ")", "mysql": "rowfeed_ulid_events(@high, @low, " + i + ")"})
}

// TestULIDBySQL (M36, M37, M38, M39): writers with the functions and writers with the library take turns on one
// state; one INSERT … SELECT has as many as it likes; what each engine can refuse it does
// (M30, M33, M36, M37, M38, M39, M40).
func TestULIDBySQL(t *testing.T) {
	testdb.Quick(t)
	eachULID(t, func(x *events) {
		if x.family() == "sqlite" {
			if steps := x.dialect.ULIDUp(nil); len(steps) != 0 {
				x.Error("SQLite has functions")
			}
			return
		}
		conn, err := x.db.Admin().Conn(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
		begin := func() *sql.Tx {
			x.Helper()
			tx, err := conn.BeginTx(x.ctx, nil)
			if err != nil {
				x.Fatal(err)
			}
			x.Cleanup(func() { tx.Rollback() })
			return tx
		}
		must := func(tx *sql.Tx, shard int, hint string) halves {
			x.Helper()
			h, err := x.lockBySQL(tx, shard, hint)
			if err != nil {
				x.Fatal(err)
			}
			return h
		}
		x.write(-5, 1, 1)
		tx := begin()
		h := must(tx, -5, "NULL")
		u := ulid.ULID(h.ulid)
		if int64(binary.BigEndian.Uint64(u[:8])) != h.high || int64(binary.BigEndian.Uint64(u[8:])) != h.low {
			x.Errorf("%s is not (%d, %d)", u, h.high, h.low)
		}
		series := x.by(map[string]string{
			"postgres": "SELECT g, -5, " + x.bySQL("g") + ", '' FROM generate_series(2, 20001) g",
			"mysql":    "WITH RECURSIVE n (g) AS (SELECT 0 UNION ALL SELECT g + 1 FROM n WHERE g < 199) SELECT 2 + a.g * 200 + b.g, -5, " + x.bySQL("2 + a.g * 200 + b.g") + ", '' FROM n a JOIN n b WHERE a.g < 100",
		})
		x.in(tx, "INSERT INTO events (id, shard, ulid, data) "+series)
		second := must(tx, -5, "NULL") // above all of those
		x.in(tx, "INSERT INTO events (id, shard, ulid, data) VALUES (20002, -5, "+x.bySQL("0")+", '')")
		if a, b := ulid.ULID(second.ulid), u; a.Compare(b) <= 0 {
			x.Errorf("the second range %s is not above %s", a, b)
		}
		x.commit(tx)
		x.write(-5, 20003, 20003)
		var ids []int
		for after, more := rowfeed.Beginning, true; more; {
			page := x.page(x.feed, -5, after, 10_000)
			for _, e := range page.Entries {
				id, _ := e.Key.Get("id")
				ids = append(ids, int(id.(int64)))
			}
			after, more = page.Cursor, page.More
		}
		if len(ids) != 20003 || !slices.IsSorted(ids) {
			x.Errorf("%d rows, sorted %v", len(ids), slices.IsSorted(ids))
		}
		x.wantSound(x.feed)

		// What is refused.
		refused := func(what string, statements ...string) {
			x.Helper()
			tx := begin()
			defer tx.Rollback()
			must(tx, 1, "NULL")
			for _, s := range statements[:len(statements)-1] {
				x.in(tx, s)
			}
			if _, err := tx.ExecContext(x.ctx, statements[len(statements)-1]); err == nil {
				x.Errorf("%s is not refused", what)
			}
		}
		for _, i := range []string{"-1", "100000000000", "NULL"} {
			refused("offset "+i, "INSERT INTO events (id, shard, ulid) VALUES (30000, 1, "+x.bySQL(i)+")")
		}
		for hint, ok := range map[string]bool{"+ INTERVAL '2' MINUTE": false, "+ INTERVAL '30' SECOND": true, "- INTERVAL '2' DAY": true} {
			tx := begin()
			_, err := x.lockBySQL(tx, 2, x.by(map[string]string{"postgres": "clock_timestamp() ", "mysql": "UTC_TIMESTAMP(6) "})+hint)
			if ok != (err == nil) {
				x.Errorf("hint %s: %v", hint, err)
			}
			tx.Rollback()
		}
		if x.family() == "postgres" {
			refused("a range taken back by a savepoint", "COMMIT", "BEGIN", "SAVEPOINT s", "SELECT * FROM rowfeed_lock_events(1)", "ROLLBACK TO SAVEPOINT s", "SELECT rowfeed_ulid_events(0, 1)")
			refused("a later transaction", "COMMIT", "BEGIN", "SELECT rowfeed_ulid_events(0, 1)")
			if _, err := conn.ExecContext(x.ctx, "SELECT * FROM rowfeed_lock_events(1)"); err != nil {
				x.Error(err) // nothing can tell
			}
			if _, err := conn.ExecContext(x.ctx, "SELECT rowfeed_ulid_events(0, 1)"); err == nil {
				x.Error("without a transaction a ULID is made")
			}
		} else {
			before := x.scalar("SELECT ulid_low FROM rowfeed_shards WHERE shard = -5")
			if _, err := conn.ExecContext(x.ctx, "CALL rowfeed_lock_events(-5, NULL, @ulid, @high, @low)"); err == nil {
				x.Error("without a transaction ULIDs are taken")
			}
			if after := x.scalar("SELECT ulid_low FROM rowfeed_shards WHERE shard = -5"); after != before {
				x.Error("a lock that was refused has taken ULIDs")
			}
		}
		// Missing functions are found, and mended.
		for _, s := range x.dialect.ULIDDown(&dialect.Feed{Name: "events", Names: dialect.Names{Prefix: "rowfeed_"}}) {
			x.exec(s.SQL)
		}
		if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) != x.routines() {
			x.Errorf("%v, %v", problems, err)
		}
		if mended, err := x.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) != x.routines() {
			x.Errorf("%v, %v", mended, err)
		}
		// So are others of their names.
		if x.family() == "postgres" {
			x.exec("CREATE OR REPLACE FUNCTION rowfeed_ulid_events(i bigint, shard bigint DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RETURN gen_random_uuid(); END'")
		} else {
			x.exec("DROP FUNCTION rowfeed_ulid_events", "CREATE FUNCTION rowfeed_ulid_events(p_ulid_high bigint, p_ulid_low bigint, i bigint) RETURNS binary(16) DETERMINISTIC NO SQL RETURN UNHEX(MD5(i))")
		}
		if mended, err := x.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) != 1 || !strings.Contains(mended[0], "rowfeed_ulid_events") {
			x.Errorf("%v, %v", mended, err)
		}
	})
}

package ulid

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// isolations returns the isolation levels that an application's transaction may have.
func isolations(x *suite.Env) []sql.IsolationLevel {
	if x.Has.OneWriter {
		return []sql.IsolationLevel{sql.LevelDefault}
	}
	return []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}
}

// hintSQL returns a hint as the database's functions accept it.
func hintSQL(x *suite.Env, hint time.Time) string {
	if hint.IsZero() {
		return "NULL"
	}
	return x.Text("ulid.hint", hint.UTC().Format("2006-01-02 15:04:05.000000"))
}

// series returns a SELECT of columns for i from 0 to rows-1. MySQL limits the depth of a recursion to 1000.
func series(columns string, rows int) string {
	return fmt.Sprintf("WITH RECURSIVE d (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM d WHERE x < 999) "+
		"SELECT %s FROM (SELECT a.x + 1000 * b.x AS i FROM d b CROSS JOIN d a WHERE b.x <= %d) n WHERE i < %d",
		columns, rows/1000, rows)
}

// lockPatiently locks a shard with the database's function, which is to wait for as long as necessary.
func lockPatiently(x *suite.Events, tx *sql.Tx, shard int, hint string) (h suite.Halves, err error) {
	for _, s := range x.Statements("ulid.wait_in_function") {
		if _, err := tx.ExecContext(x.Ctx, s); err != nil {
			return h, err
		}
	}
	return x.LockBySQL(tx, shard, hint)
}

// insertBySQL inserts a row with the i-th ULID of the transaction's last lock by SQL.
func insertBySQL(x *suite.Events, tx *sql.Tx, id, shard int, i int64) error {
	_, err := tx.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) VALUES (%d, %d, %s, '')",
		id, shard, x.BySQL(fmt.Sprint(i))))
	return err
}

// stateOf returns the next ULID of a shard's state as two numbers, which are 0 if the shard has no state.
func stateOf(x *suite.Env, shard int) (high, low int64) {
	x.Helper()
	row := x.DB.Admin().QueryRowContext(x.Ctx,
		fmt.Sprintf("SELECT ulid_high, ulid_low FROM rowfeed_shards WHERE shard = %d", shard))
	if err := row.Scan(&high, &low); err != nil && err != sql.ErrNoRows {
		x.Fatal(err)
	}
	return high, low
}

// connection returns a connection of the test's own pool.
func connection(x *suite.Env) *sql.Conn {
	x.Helper()
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { conn.Close() })
	return conn
}

// eachMode runs f on every engine with a ULID feed of each mode.
func eachMode(t *testing.T, f func(x *suite.Events)) {
	t.Helper()
	t.Run(rowfeed.ModeBlocking, func(t *testing.T) { suite.EachULID(t, f) })
	t.Run(rowfeed.ModeOutbox, func(t *testing.T) { suite.EachOutbox(t, f) })
}

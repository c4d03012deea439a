package ulid

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// stray inserts a row with a ULID that rowfeed did not assign.
func stray(x *suite.Events, id, shard int, u ulid.ULID) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	x.Event(tx, id, shard, u, "made elsewhere")
	x.Commit(tx)
}

// ways returns the ways to insert a row with a locked ULID. Their hint is long ago, so that the clock does not help.
func ways(x *suite.Events) map[string]func(tx *sql.Tx, id, shard int) error {
	ways := map[string]func(tx *sql.Tx, id, shard int) error{"Feed.Lock": func(tx *sql.Tx, id, shard int) error {
		request := rowfeed.LockRequest{Shards: []int{shard}, Hint: time.UnixMilli(1)}
		u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
		if err != nil {
			return err
		}
		return x.TryEvent(x.Ctx, tx, id, shard, x.At(u, shard, 0), "")
	}}
	if x.Has.Functions {
		ways["SQL"] = func(tx *sql.Tx, id, shard int) error {
			if _, err := x.LockBySQL(tx, shard, "'2000-01-01 00:00:00'"); err != nil {
				return err
			}
			return insertBySQL(x, tx, id, shard, 0)
		}
	}
	return ways
}

// TestLockIsAboveForeignULIDs (H8): a shard has rows whose ULIDs rowfeed did not assign, and that readers may have
// passed. The next lock gets ULIDs above them, in every way and at every isolation level.
func TestLockIsAboveForeignULIDs(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		id, shard := 0, 10
		next := func(n *int) int { *n++; return *n }
		above := func(u ulid.ULID) ulid.ULID { u[5]++; return u }
		for way, write := range ways(x) {
			for name, used := range map[string]bool{"a shard without a state": false, "a row above the state": true} {
				for _, level := range isolations(x.Env) {
					rounds := 3
					if x.Has.PredicateLocks && level == sql.LevelSerializable {
						// To avoid conflicts, such transactions read the last row only at the shard's first lock.
						if rounds = 1; used {
							continue
						}
					}
					s := next(&shard)
					u := ulid.ULID{0x7f, 0, 0, 0, 0, 1, 15: 1}
					if used {
						x.Write(s, next(&id), id)
						last := x.Page(x.Feed, s, "", 10).Entries
						u = above(ulid.MustParse(last[0].Position))
					}
					for i := range rounds {
						stray(x, next(&id), s, u)
						cursor := x.Page(x.Feed, s, "", 100).Cursor
						tx := x.Begin(level)
						if err := write(tx, next(&id), s); err != nil {
							x.Fatalf("%s, %s, %s, %d: %v", way, name, level, i, err)
						}
						x.Commit(tx)
						page := x.Page(x.Feed, s, cursor, 10)
						if len(page.Entries) != 1 {
							x.Fatalf("%s, %s, %s, %d: %d entries after %s, want 1",
								way, name, level, i, len(page.Entries), cursor)
						}
						last := ulid.MustParse(page.Entries[0].Position)
						if u = above(last); last.Compare(ulid.ULID{0x7f, 0xff}) > 0 {
							x.Fatalf("the ULID %s is too far above the row", last)
						}
					}
				}
			}
			// A row has the next ULID of the state.
			s := next(&shard)
			x.Write(s, next(&id), id)
			high, low := stateOf(x.Env, s)
			var u ulid.ULID
			binary.BigEndian.PutUint64(u[:8], uint64(high))
			binary.BigEndian.PutUint64(u[8:], uint64(low))
			stray(x, next(&id), s, u)
			tx := x.Begin(sql.LevelReadCommitted)
			if err := write(tx, next(&id), s); err != nil {
				x.Fatalf("%s: a row has the next ULID of the state: %v", way, err)
			}
			x.Commit(tx)
			// No ULID is above the last one. The lock fails, and does not change the state.
			for _, last := range []string{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZ0000000000000001"} {
				stray(x, next(&id), s, ulid.MustParse(last))
				tx := x.Begin(sql.LevelReadCommitted)
				err := write(tx, next(&id), s)
				if err == nil || !strings.Contains(err.Error(), "above") {
					x.Errorf("%s above %s: error %v, want a refusal", way, last, err)
				}
				if way == "Feed.Lock" {
					x.WantCode(err, rowfeed.Refused)
				}
				if err := tx.Rollback(); err != nil {
					x.Fatal(err)
				}
				if now, _ := stateOf(x.Env, s); uint64(now) == 0 || uint64(now) > 1<<62 {
					x.Errorf("%s: the state is at %x", way, uint64(now))
				}
				x.Exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id-1))
			}
		}
		x.WantSound(x.Feed)
	})
}

// TestLockIsAboveForeignBytes (H8): the position column is PostgreSQL's bytea, and has rows with fewer or more than 16
// bytes. The next lock gets ULIDs above them.
func TestLockIsAboveForeignBytes(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("ulid.bytes_table"))
		e := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		for i, bytes := range x.Statements("ulid.foreign_bytes") {
			x.Exec(fmt.Sprintf("INSERT INTO events VALUES (%d, 1, %s, '')", 100+i, bytes))
			e.Write(1, i, i)
			if last := x.Scalar("SELECT id FROM events ORDER BY ulid DESC LIMIT 1"); last != int64(i) {
				x.Errorf("row %d is the last row, want the one that was inserted after %s", last, bytes)
			}
		}
	})
}

// TestAddFeedContinuesLeftoverState (M62): a shard has a state from an earlier feed when the feed is added. The state
// is then above the shard's rows, and locks continue from it.
func TestAddFeedContinuesLeftoverState(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.MakeEvents()
		e := &suite.Events{Env: x}
		for shard, ms := range map[int]int64{1: 1, 2: 1 << 46} {
			stray(e, shard, shard, ulid.ULID{0x01, 15: 1})
			x.Exec(fmt.Sprintf("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) "+
				"VALUES ('events', %d, %d, %d, 5, '')", shard, ms, ms<<16))
		}
		e.Feed = x.Add(suite.EventsSpec())
		if ms := x.Scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 1"); ms != 0x0100_0000_0001 {
			x.Errorf("the state that was below a row has the time %x, want that of the row", ms)
		}
		if ms := x.Scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 2"); ms != 1<<46 {
			x.Errorf("the state that was above a row has the time %x, want its own", ms)
		}
		for _, shard := range []int{1, 2} {
			cursor := e.Page(e.Feed, shard, "", 10).Cursor
			e.Write(shard, 10+shard, 10+shard)
			e.WantIDs(e.Page(e.Feed, shard, cursor, 10), false, 10+shard)
		}
	})
}

// TestULIDFunctionNeedsShardIfSeveralAreLocked (H8): a transaction locks several shards. PostgreSQL's function returns
// ULIDs of the last lock of the shard that the caller names. It fails if the caller names no shard, or one that is not
// locked.
func TestULIDFunctionNeedsShardIfSeveralAreLocked(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // on others, writers pass the two numbers of the lock
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		taken := map[int]string{}
		for _, shard := range []int{7, 77, -7, 7, 0} {
			h, err := x.LockBySQL(tx, shard, "NULL")
			if err != nil {
				x.Fatal(err)
			}
			taken[shard] = ulid.ULID(h.ULID).String()
			for shard, want := range taken {
				var is []byte
				query := x.Text("ulid.ulid_bytes", x.BySQL("0", shard))
				if err := tx.QueryRowContext(x.Ctx, query).Scan(&is); err != nil {
					x.Fatal(err)
				}
				if got := ulid.ULID(is).String(); got != want {
					x.Fatalf("shard %d: %s, want %s", shard, got, want)
				}
			}
		}
		for query, words := range map[string]string{
			x.BySQL("0"):      "several shards",
			x.BySQL("0", 8):   "no ULIDs of shard 8",
			x.BySQL("0", -77): "no ULIDs of shard -77",
		} {
			x.In(tx, "SAVEPOINT s")
			if _, err := tx.ExecContext(x.Ctx, "SELECT "+query); err == nil || !strings.Contains(err.Error(), words) {
				x.Errorf("%s: error %v, want %q in it", query, err, words)
			}
			x.In(tx, "ROLLBACK TO SAVEPOINT s")
		}
	})
}

// TestDropFeedWaitsForFirstWriter (M63): a feed is dropped while the first writer of a shard has an open transaction.
// DropFeed waits for the writer, and leaves no state of the shard.
func TestDropFeedWaitsForFirstWriter(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{7}})
		x.Event(tx, 1, 7, x.At(u, 7, 0), "")
		other, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- other.DropFeed(x.Ctx, "events") }()
		x.Eventually("DropFeed waits", func() bool { return len(done) > 0 || x.Waits() })
		x.Commit(tx)
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d shards still have a state", n)
		}
	})
}

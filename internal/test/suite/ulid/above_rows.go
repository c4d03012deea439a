package ulid

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// stray inserts a row whose ULID nobody was given.
func stray(x *suite.Events, id, shard int, u ulid.ULID) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	x.Event(tx, id, shard, u, "made elsewhere")
	x.Commit(tx)
}

// ways are those to take a ULID of a shard and to insert a row with it, in a
// transaction. The hint is long ago: no clock helps, they count on.
func ways(x *suite.Events) map[string]func(tx *sql.Tx, id, shard int) error {
	ways := map[string]func(tx *sql.Tx, id, shard int) error{"Feed.Lock": func(tx *sql.Tx, id, shard int) error {
		u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: time.UnixMilli(1)})
		if err != nil {
			return err
		}
		return x.TryEvent(x.Ctx, tx, id, shard, x.At(u, shard, 0), "")
	}}
	if x.Family() != "sqlite" {
		ways["SQL"] = func(tx *sql.Tx, id, shard int) error {
			if _, err := x.LockBySQL(tx, shard, "'2000-01-01 00:00:00'"); err != nil {
				return err
			}
			_, err := tx.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) VALUES (%d, %d, %s, '')", id, shard, x.BySQL("0")))
			return err
		}
	}
	return ways
}

// TestLockIsAboveForeignULIDs (H8): ULIDs are taken above those of the shard's rows, too, whoever made them: a
// reader has passed these. Readers of what proper writers write miss nothing (hazard 8).
func TestLockIsAboveForeignULIDs(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		id, shard := 0, 10
		next := func(n *int) int { *n++; return *n }
		above := func(u ulid.ULID) ulid.ULID { u[5]++; return u }
		for way, write := range ways(x) {
			for name, given := range map[string]bool{"a shard that has given nothing": false, "a row above the state": true} {
				for _, level := range isolations(x.Env) {
					rounds := 3 // above the state of a lock like this one, too
					if x.Family() == "postgres" && level == sql.LevelSerializable {
						if rounds = 1; given {
							continue // these look at first use only
						}
					}
					s := next(&shard)
					u := ulid.ULID{0x7f, 0, 0, 0, 0, 1, 15: 1}
					if given {
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
							x.Fatalf("%s, %s, %s, %d: after %s: %d entries of 1", way, name, level, i, cursor, len(page.Entries))
						}
						last := ulid.MustParse(page.Entries[0].Position)
						if u = above(last); last.Compare(ulid.ULID{0x7f, 0xff}) > 0 {
							x.Fatalf("%s is too far ahead", last)
						}
					}
				}
			}
			// The very next ULID of the state.
			s := next(&shard)
			x.Write(s, next(&id), id)
			high, low := uint64(x.Scalar(fmt.Sprintf("SELECT ulid_high FROM rowfeed_shards WHERE shard = %d", s))), uint64(x.Scalar(fmt.Sprintf("SELECT ulid_low FROM rowfeed_shards WHERE shard = %d", s)))
			var u ulid.ULID
			for i := range 8 {
				u[i], u[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
			}
			stray(x, next(&id), s, u)
			tx := x.Begin(sql.LevelReadCommitted)
			if err := write(tx, next(&id), s); err != nil {
				x.Fatalf("%s: the next ULID was used: %v", way, err)
			}
			x.Commit(tx)
			// Nothing is above the last one: that is refused, and takes nothing.
			for _, last := range []string{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZ0000000000000001"} {
				stray(x, next(&id), s, ulid.MustParse(last))
				tx := x.Begin(sql.LevelReadCommitted)
				err := write(tx, next(&id), s)
				if err == nil || !strings.Contains(err.Error(), "above") {
					x.Errorf("%s above %s: %v", way, last, err)
				}
				if way == "Feed.Lock" {
					x.WantCode(err, rowfeed.Refused)
				}
				if err := tx.Rollback(); err != nil {
					x.Fatal(err)
				}
				if now := uint64(x.Scalar(fmt.Sprintf("SELECT ulid_high FROM rowfeed_shards WHERE shard = %d", s))); now == 0 || now > 1<<62 {
					x.Errorf("%s: the state is at %x", way, now)
				}
				x.Exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id-1))
			}
		}
		x.WantSound(x.Feed)
	})
}

// TestLockIsAboveForeignBytes (H8): the same in a column of PostgreSQL's bytea, which holds any bytes.
func TestLockIsAboveForeignBytes(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard smallint NOT NULL, ulid bytea NOT NULL, data text, UNIQUE (shard, ulid))")
		e := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		for i, bytes := range []string{`\x7e0000000001ff`, `\x7f00000000000000000000000000000000000000`, `\x7f10`} {
			x.Exec(fmt.Sprintf("INSERT INTO events VALUES (%d, 1, '%s', '')", 100+i, bytes))
			e.Write(1, i, i)
			if last := x.Scalar("SELECT id FROM events ORDER BY ulid DESC LIMIT 1"); last != int64(i) {
				x.Errorf("the row after %s is not the last one", bytes)
			}
		}
	})
}

// TestAddFeedContinuesLeftoverState (M62): a state that is left over where a feed is made goes on above the rows, too.
func TestAddFeedContinuesLeftoverState(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		e := &suite.Events{Env: x}
		for shard, ms := range map[int]int64{1: 1, 2: 1 << 46} {
			stray(e, shard, shard, ulid.ULID{0x01, 15: 1})
			x.Exec(fmt.Sprintf("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('events', %d, %d, %d, 5, '')", shard, ms, ms<<16))
		}
		e.Feed = x.Add(suite.EventsSpec())
		if ms := x.Scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 1"); ms != 0x0100_0000_0001 {
			x.Errorf("the state below its row is at %x", ms)
		}
		if ms := x.Scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 2"); ms != 1<<46 {
			x.Errorf("the state above its row is at %x", ms)
		}
		for _, shard := range []int{1, 2} {
			cursor := e.Page(e.Feed, shard, "", 10).Cursor
			e.Write(shard, 10+shard, 10+shard)
			e.WantIDs(e.Page(e.Feed, shard, cursor, 10), false, 10+shard)
		}
	})
}

// TestULIDFunctionNeedsShardIfSeveralAreLocked (H8): PostgreSQL's function makes the ULIDs of the shard that is named, those of its last
// lock, and refuses to guess which of several is meant (M38, M40, hazard 8).
func TestULIDFunctionNeedsShardIfSeveralAreLocked(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere the test is told the halves
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
				if err := tx.QueryRowContext(x.Ctx, fmt.Sprintf("SELECT uuid_send(rowfeed_ulid_events(0, %d))", shard)).Scan(&is); err != nil {
					x.Fatal(err)
				}
				if got := ulid.ULID(is).String(); got != want {
					x.Fatalf("shard %d: %s, want %s", shard, got, want)
				}
			}
		}
		for query, words := range map[string]string{"rowfeed_ulid_events(0)": "several shards", "rowfeed_ulid_events(0, 8)": "no ULIDs of shard 8", "rowfeed_ulid_events(0, -77)": "no ULIDs of shard -77"} {
			x.In(tx, "SAVEPOINT s")
			if _, err := tx.ExecContext(x.Ctx, "SELECT "+query); err == nil || !strings.Contains(err.Error(), words) {
				x.Errorf("%s: %v", query, err)
			}
			x.In(tx, "ROLLBACK TO SAVEPOINT s")
		}
	})
}

// TestDropFeedWaitsForFirstWriter (M63): a feed that is dropped beside the first writer of a shard waits for it, and
// leaves no state behind (M63).
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
		x.Eventually("the drop waits", func() bool { return len(done) > 0 || x.Waits() })
		x.Commit(tx)
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
	})
}

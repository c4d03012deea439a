package conformance

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// stray inserts a row whose ULID nobody was given.
func (x *events) stray(id, shard int, u ulid.ULID) {
	x.Helper()
	tx := x.begin(sql.LevelReadCommitted)
	x.event(tx, id, shard, u, "made elsewhere")
	x.commit(tx)
}

// ways are those to take a ULID of a shard and to insert a row with it, in a
// transaction. The hint is long ago: no clock helps, they count on.
func (x *events) ways() map[string]func(tx *sql.Tx, id, shard int) error {
	ways := map[string]func(tx *sql.Tx, id, shard int) error{"Feed.Lock": func(tx *sql.Tx, id, shard int) error {
		u, err := x.feed.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: time.UnixMilli(1)})
		if err != nil {
			return err
		}
		return x.tryEvent(x.ctx, tx, id, shard, x.at(u, shard, 0), "")
	}}
	if x.family() != "sqlite" {
		ways["SQL"] = func(tx *sql.Tx, id, shard int) error {
			if _, err := x.lockBySQL(tx, shard, "'2000-01-01 00:00:00'"); err != nil {
				return err
			}
			_, err := tx.ExecContext(x.ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) VALUES (%d, %d, %s, '')", id, shard, x.bySQL("0")))
			return err
		}
	}
	return ways
}

// TestLockPastRows (H8): ULIDs are taken above those of the shard's rows, too, whoever made them: a
// reader has passed these. Readers of what proper writers write miss nothing (hazard 8).
func TestLockPastRows(t *testing.T) {
	eachULID(t, func(x *events) {
		id, shard := 0, 10
		next := func(n *int) int { *n++; return *n }
		above := func(u ulid.ULID) ulid.ULID { u[5]++; return u }
		for way, write := range x.ways() {
			for name, given := range map[string]bool{"a shard that has given nothing": false, "a row above the state": true} {
				for _, level := range x.isolations() {
					rounds := 3 // above the state of a lock like this one, too
					if x.family() == "postgres" && level == sql.LevelSerializable {
						if rounds = 1; given {
							continue // these look at first use only
						}
					}
					s := next(&shard)
					u := ulid.ULID{0x7f, 0, 0, 0, 0, 1, 15: 1}
					if given {
						x.write(s, next(&id), id)
						last := x.page(x.feed, s, "", 10).Entries
						u = above(ulid.MustParse(last[0].Position))
					}
					for i := range rounds {
						x.stray(next(&id), s, u)
						cursor := x.page(x.feed, s, "", 100).Cursor
						tx := x.begin(level)
						if err := write(tx, next(&id), s); err != nil {
							x.Fatalf("%s, %s, %s, %d: %v", way, name, level, i, err)
						}
						x.commit(tx)
						page := x.page(x.feed, s, cursor, 10)
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
			x.write(s, next(&id), id)
			high, low := uint64(x.scalar(fmt.Sprintf("SELECT ulid_high FROM rowfeed_shards WHERE shard = %d", s))), uint64(x.scalar(fmt.Sprintf("SELECT ulid_low FROM rowfeed_shards WHERE shard = %d", s)))
			var u ulid.ULID
			for i := range 8 {
				u[i], u[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
			}
			x.stray(next(&id), s, u)
			tx := x.begin(sql.LevelReadCommitted)
			if err := write(tx, next(&id), s); err != nil {
				x.Fatalf("%s: the next ULID was used: %v", way, err)
			}
			x.commit(tx)
			// Nothing is above the last one: that is refused, and takes nothing.
			for _, last := range []string{"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7ZZZZZZZZZ0000000000000001"} {
				x.stray(next(&id), s, ulid.MustParse(last))
				tx := x.begin(sql.LevelReadCommitted)
				err := write(tx, next(&id), s)
				if err == nil || !strings.Contains(err.Error(), "above") {
					x.Errorf("%s above %s: %v", way, last, err)
				}
				if way == "Feed.Lock" {
					x.wantCode(err, rowfeed.Refused)
				}
				if err := tx.Rollback(); err != nil {
					x.Fatal(err)
				}
				if now := uint64(x.scalar(fmt.Sprintf("SELECT ulid_high FROM rowfeed_shards WHERE shard = %d", s))); now == 0 || now > 1<<62 {
					x.Errorf("%s: the state is at %x", way, now)
				}
				x.exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id-1))
			}
		}
		x.wantSound(x.feed)
	})
}

// TestLockPastBytes (H8): the same in a column of PostgreSQL's bytea, which holds any bytes.
func TestLockPastBytes(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	each(t, func(x *env) {
		x.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard smallint NOT NULL, ulid bytea NOT NULL, data text, UNIQUE (shard, ulid))")
		e := &events{x, x.add(eventsSpec())}
		for i, bytes := range []string{`\x7e0000000001ff`, `\x7f00000000000000000000000000000000000000`, `\x7f10`} {
			x.exec(fmt.Sprintf("INSERT INTO events VALUES (%d, 1, '%s', '')", 100+i, bytes))
			e.write(1, i, i)
			if last := x.scalar("SELECT id FROM events ORDER BY ulid DESC LIMIT 1"); last != int64(i) {
				x.Errorf("the row after %s is not the last one", bytes)
			}
		}
	})
}

// TestULIDAddLeft (M62): a state that is left over where a feed is made goes on above the rows, too.
func TestULIDAddLeft(t *testing.T) {
	each(t, func(x *env) {
		x.exec(x.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		e := &events{env: x}
		for shard, ms := range map[int]int64{1: 1, 2: 1 << 46} {
			e.stray(shard, shard, ulid.ULID{0x01, 15: 1})
			x.exec(fmt.Sprintf("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('events', %d, %d, %d, 5, '')", shard, ms, ms<<16))
		}
		e.feed = x.add(eventsSpec())
		if ms := x.scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 1"); ms != 0x0100_0000_0001 {
			x.Errorf("the state below its row is at %x", ms)
		}
		if ms := x.scalar("SELECT time_ms FROM rowfeed_shards WHERE shard = 2"); ms != 1<<46 {
			x.Errorf("the state above its row is at %x", ms)
		}
		for _, shard := range []int{1, 2} {
			cursor := e.page(e.feed, shard, "", 10).Cursor
			e.write(shard, 10+shard, 10+shard)
			e.wantIDs(e.page(e.feed, shard, cursor, 10), false, 10+shard)
		}
	})
}

// TestULIDOfShard (H8): PostgreSQL's function makes the ULIDs of the shard that is named, those of its last
// lock, and refuses to guess which of several is meant (M38, M40, hazard 8).
func TestULIDOfShard(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere the test is told the halves
	eachULID(t, func(x *events) {
		tx := x.begin(sql.LevelReadCommitted)
		taken := map[int]string{}
		for _, shard := range []int{7, 77, -7, 7, 0} {
			h, err := x.lockBySQL(tx, shard, "NULL")
			if err != nil {
				x.Fatal(err)
			}
			taken[shard] = ulid.ULID(h.ulid).String()
			for shard, want := range taken {
				var is []byte
				if err := tx.QueryRowContext(x.ctx, fmt.Sprintf("SELECT uuid_send(rowfeed_ulid_events(0, %d))", shard)).Scan(&is); err != nil {
					x.Fatal(err)
				}
				if got := ulid.ULID(is).String(); got != want {
					x.Fatalf("shard %d: %s, want %s", shard, got, want)
				}
			}
		}
		for query, words := range map[string]string{"rowfeed_ulid_events(0)": "several shards", "rowfeed_ulid_events(0, 8)": "no ULIDs of shard 8", "rowfeed_ulid_events(0, -77)": "no ULIDs of shard -77"} {
			x.in(tx, "SAVEPOINT s")
			if _, err := tx.ExecContext(x.ctx, "SELECT "+query); err == nil || !strings.Contains(err.Error(), words) {
				x.Errorf("%s: %v", query, err)
			}
			x.in(tx, "ROLLBACK TO SAVEPOINT s")
		}
	})
}

// TestLockDropOpen (M63): a feed that is dropped beside the first writer of a shard waits for it, and
// leaves no state behind (M63).
func TestLockDropOpen(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachULID(t, func(x *events) {
		tx := x.begin(sql.LevelReadCommitted)
		u := x.lock(tx, rowfeed.LockRequest{Shards: []int{7}})
		x.event(tx, 1, 7, x.at(u, 7, 0), "")
		other, err := rowfeed.Open(x.ctx, x.pool, x.dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- other.DropFeed(x.ctx, "events") }()
		x.eventually("the drop waits", func() bool { return len(done) > 0 || x.waits() })
		x.commit(tx)
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
	})
}

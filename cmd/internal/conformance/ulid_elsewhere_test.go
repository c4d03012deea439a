package conformance

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestULIDNoIndex (M43): without the unique index of shard and ULID two rows may share a place, and
// the edge of a page would pass one of them over: pages are refused, in a process that has read
// before, too, until there is one again, whatever its name (M43).
func TestULIDNoIndex(t *testing.T) {
	eachULID(t, func(x *events) {
		x.write(1, 1, 2)
		first := x.page(x.feed, 1, "", 1)
		drop := "DROP INDEX events_feed"
		if x.family() == "mysql" {
			drop += " ON events"
		}
		refused := func() {
			x.Helper()
			for range 2 {
				_, err := x.feed.Fetch(x.ctx, rowfeed.Request{After: first.Cursor, Shards: rowfeed.One(1)})
				if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "CREATE UNIQUE INDEX") {
					t.Error(err)
				}
			}
		}
		if x.family() != "mysql" { // whose statement takes any index of the name
			x.exec(drop, "CREATE INDEX events_feed ON events (shard, ulid)")
			refused()
			x.exec(drop, "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x.wantIDs(x.page(x.feed, 1, first.Cursor, 10), false, 2)
		}
		x.exec(drop)
		refused()
		x.exec("CREATE UNIQUE INDEX another ON events (shard, ulid)")
		x.wantIDs(x.page(x.feed, 1, first.Cursor, 10), false, 2)
		x.wantSound(x.feed)
	})
}

// TestULIDOtherDatabase (M74): a replica took over that had not got the newest commits, and
// nobody stops the writers. Before their rows pass the cursor of who has read what was lost,
// readers are refused, and nobody moves records, until somebody says what happened. SQLite has
// no identity.
func TestULIDOtherDatabase(t *testing.T) {
	moved := func(x *events, put func(id int, ahead time.Duration)) {
		if x.family() == "sqlite" {
			return
		}
		put(1, 0)
		x.page(x.feed, 0, "", 10)
		x.exec("CREATE TABLE kept AS SELECT * FROM rowfeed_shards")
		put(2, 30*time.Second)
		cursor := x.page(x.feed, 0, "", 10).Cursor
		set := func(column string) string { return column + " = (SELECT " + column + " FROM kept)" }
		x.exec("DELETE FROM events WHERE id = 2", "UPDATE rowfeed_shards SET "+set("time_ms")+", "+set("ulid_high")+", "+set("ulid_low"))
		if x.feed.Mode() == rowfeed.ModeOutbox {
			x.exec("DELETE FROM rowfeed_feed_events WHERE id = 2")
		}
		elsewhere := func() { x.exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'") }
		elsewhere()
		fresh, err := openEnv(x.T, x.db, nil).rf.Feed(x.ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		states := x.scalar("SELECT ulid_low FROM rowfeed_shards")
		put(3, 0)
		refused := func(f *rowfeed.Feed, after rowfeed.Cursor) {
			x.Helper()
			_, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Shards: rowfeed.One(0)})
			x.wantCode(err, rowfeed.DatabaseChanged)
			for _, want := range []string{"the one before", "`rowfeed feed bump events`", "--adopt-database`"} {
				if !strings.Contains(err.Error(), want) {
					x.Errorf("%v does not name %s", err, want)
				}
			}
		}
		for _, after := range []rowfeed.Cursor{cursor, "", rowfeed.Now} {
			refused(fresh, after)
		}
		if x.feed.Mode() == rowfeed.ModeOutbox {
			_, err := fresh.Publish(x.ctx)
			x.wantCode(err, rowfeed.DatabaseChanged)
			if now := x.scalar("SELECT ulid_low FROM rowfeed_shards"); now != states {
				x.Error("records were moved in another database")
			}
		}
		problems, err := fresh.Admin().Verify(x.ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "feed bump events") {
			x.Errorf("verify: %q, %v", problems, err)
		}
		// A replica of the database is not the database, and may be read.
		replica, err := openEnv(x.T, x.db, &rowfeed.Config{Replica: true}).rf.Feed(x.ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		if page := x.page(replica, 0, "", 1); len(page.Entries) != 1 {
			x.Errorf("of a replica: %+v", page)
		}
		if _, err := x.feed.Admin().Bump(x.ctx); err != nil {
			x.Fatal(err)
		}
		_, err = fresh.Fetch(x.ctx, rowfeed.Request{After: cursor, Shards: rowfeed.One(0)})
		x.wantCode(err, rowfeed.GenerationChanged)
		first := x.page(fresh, 0, "", 1)
		x.wantIDs(first, true, 1)
		page := x.page(fresh, 0, first.Cursor, 10)
		x.wantIDs(page, false, 3)
		elsewhere()
		refused(x.feed, page.Cursor)
		if changed, err := x.feed.Admin().AdoptDatabase(x.ctx); err != nil || !changed {
			x.Fatal(changed, err)
		}
		put(4, 0)
		for _, f := range []*rowfeed.Feed{fresh, x.feed} {
			x.wantIDs(x.page(f, 0, page.Cursor, 10), false, 4)
		}
	}
	t.Run("blocking", func(t *testing.T) {
		eachULID(t, func(x *events) {
			moved(x, func(id int, ahead time.Duration) {
				x.Helper()
				tx := x.begin(sql.LevelReadCommitted)
				u := x.lock(tx, rowfeed.LockRequest{Hint: x.now().Add(ahead)})
				x.event(tx, id, 0, x.at(u, 0, 0), fmt.Sprint(id))
				x.commit(tx)
			})
		})
	})
	t.Run("outbox", func(t *testing.T) {
		eachOutbox(t, func(x *events) {
			moved(x, func(id int, _ time.Duration) {
				x.Helper()
				x.appended(id, 0, time.Time{})
			})
		})
	})
}

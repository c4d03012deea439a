package ulid

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestFailoverStopsReadersUntilResolved (M74): a replica without the newest commits replaces the database, and writers
// continue. Fetch and Publish fail until an operator bumps the feed or adopts the database. Databases without an
// identity are not tested.
func TestFailoverStopsReadersUntilResolved(t *testing.T) {
	moved := func(x *suite.Events, put func(id int, ahead time.Duration)) {
		if !x.Has.Identity {
			return
		}
		put(1, 0)
		x.Page(x.Feed, 0, "", 10)
		x.Exec("CREATE TABLE kept AS SELECT * FROM rowfeed_shards")
		put(2, 30*time.Second)
		cursor := x.Page(x.Feed, 0, "", 10).Cursor
		kept := func(column string) string { return column + " = (SELECT " + column + " FROM kept)" }
		x.Exec("DELETE FROM events WHERE id = 2",
			"UPDATE rowfeed_shards SET "+kept("time_ms")+", "+kept("ulid_high")+", "+kept("ulid_low"))
		if x.Feed.Mode() == rowfeed.ModeOutbox {
			x.Exec("DELETE FROM rowfeed_feed_events WHERE id = 2")
		}
		fail := func() { x.Exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'") }
		fail()
		fresh, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		state := x.Scalar("SELECT ulid_low FROM rowfeed_shards")
		put(3, 0)
		refused := func(f *rowfeed.Feed, after rowfeed.Cursor) {
			x.Helper()
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(0)})
			x.WantCode(err, rowfeed.DatabaseChanged)
			for _, want := range []string{"the one before", "`rowfeed feed bump events`", "--adopt-database`"} {
				if !strings.Contains(err.Error(), want) {
					x.Errorf("error %v, want %q in it", err, want)
				}
			}
		}
		for _, after := range []rowfeed.Cursor{cursor, "", rowfeed.Now} {
			refused(fresh, after)
		}
		if x.Feed.Mode() == rowfeed.ModeOutbox {
			_, err := fresh.Publish(x.Ctx)
			x.WantCode(err, rowfeed.DatabaseChanged)
			if now := x.Scalar("SELECT ulid_low FROM rowfeed_shards"); now != state {
				x.Error("the publisher moved records in the other database")
			}
		}
		problems, err := fresh.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "feed bump events") {
			x.Errorf("verify: %q, %v", problems, err)
		}
		// A replica may be read: it is not meant to be the database.
		replica, err := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Replica: true}).RF.Feed(x.Ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		if page := x.Page(replica, 0, "", 1); len(page.Entries) != 1 {
			x.Errorf("the replica's page is %+v, want one entry", page)
		}
		if _, err := x.Feed.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		_, err = fresh.Fetch(x.Ctx, rowfeed.Request{After: cursor, Shards: rowfeed.One(0)})
		x.WantCode(err, rowfeed.GenerationChanged)
		first := x.Page(fresh, 0, "", 1)
		x.WantIDs(first, true, 1)
		page := x.Page(fresh, 0, first.Cursor, 10)
		x.WantIDs(page, false, 3)
		fail()
		refused(x.Feed, page.Cursor)
		if changed, err := x.Feed.Admin().AdoptDatabase(x.Ctx); err != nil || !changed {
			x.Fatal(changed, err)
		}
		put(4, 0)
		for _, f := range []*rowfeed.Feed{fresh, x.Feed} {
			x.WantIDs(x.Page(f, 0, page.Cursor, 10), false, 4)
		}
	}
	t.Run("blocking", func(t *testing.T) {
		suite.EachULID(t, func(x *suite.Events) {
			moved(x, func(id int, ahead time.Duration) {
				x.Helper()
				tx := x.Begin(sql.LevelReadCommitted)
				u := x.Lock(tx, rowfeed.LockRequest{Hint: x.Now().Add(ahead)})
				x.Event(tx, id, 0, x.At(u, 0, 0), fmt.Sprint(id))
				x.Commit(tx)
			})
		})
	})
	t.Run("outbox", func(t *testing.T) {
		suite.EachOutbox(t, func(x *suite.Events) {
			moved(x, func(id int, _ time.Duration) {
				x.Helper()
				x.Appended(id, 0, time.Time{})
			})
		})
	})
}

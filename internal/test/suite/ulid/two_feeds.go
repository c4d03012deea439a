package ulid

import (
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestFeedsDoNotShareShards (M5, M16, M17): two feeds have shards of the same numbers. A writer or mover of one feed
// neither waits for the other feed's lock nor moves its records. Dropping one feed does not change the other. The
// cursors "" and 0 are the beginning, and an empty page keeps its cursor.
func TestFeedsDoNotShareShards(t *testing.T) {
	eachMode(t, func(x *suite.Events) {
		mode := x.Feed.Mode()
		spec := rowfeed.FeedSpec{Name: "others", Table: "others", Mode: mode}
		if mode == rowfeed.ModeBlocking {
			spec.PositionColumn, spec.ShardColumn = "ulid", "shard"
			x.Exec(x.EventsTable("others"), "CREATE UNIQUE INDEX others_feed ON others (shard, ulid)")
		} else {
			x.Exec("CREATE TABLE others (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		}
		others := x.Add(spec)
		write := func(id int) {
			x.Helper()
			if mode == rowfeed.ModeBlocking {
				x.Write(0, id, id)
			} else {
				x.Appended(id, 0, time.Time{})
			}
		}
		hold := func() *sql.Tx { // locks shard 0 of the other feed
			x.Helper()
			tx := x.Begin(sql.LevelReadCommitted)
			if mode == rowfeed.ModeBlocking {
				request := rowfeed.LockRequest{Hint: time.UnixMilli(1)}
				if _, err := others.Lock(x.Ctx, rowfeed.InTx(tx), request); err != nil {
					t.Fatal(err)
				}
			} else {
				x.In(tx, "UPDATE rowfeed_shards SET witness = witness WHERE feed = 'others'")
			}
			return tx
		}
		if mode == rowfeed.ModeOutbox {
			x.Exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) " +
				"VALUES ('others', 0, 0, 0, 0, '')")
		}
		x.Commit(hold())
		if tx := hold(); !x.Has.OneWriter {
			write(1)
			x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
			x.Commit(tx)
		} else {
			x.Commit(tx)
			write(1)
		}
		if page := x.Page(others, 0, "", 10); len(page.Entries) != 0 || page.More {
			t.Errorf("the other feed has the page %+v, want an empty one", page)
		}
		write(2)
		x.Publish(x.Feed) // so that pages move no records
		for _, beginning := range []rowfeed.Cursor{"", "0"} {
			x.WantIDs(x.Page(x.Feed, 0, beginning, 10), false, 1, 2)
		}
		head := x.Page(x.Feed, 0, "", 10).Cursor
		if page := x.Page(x.Feed, 0, head, 10); len(page.Entries) != 0 || page.Cursor != head || page.More {
			t.Errorf("the page after %s is %+v, want an empty one", head, page)
		}
		_, err := others.Fetch(x.Ctx, rowfeed.Request{After: head, Shards: rowfeed.One(0)})
		x.WantCode(err, rowfeed.CursorAhead)
		if err := x.RF.DropFeed(x.Ctx, "others"); err != nil {
			t.Fatal(err)
		}
		_, err = x.RF.Feed(x.Ctx, "others")
		x.WantCode(err, rowfeed.UnknownFeed)
		write(3)
		x.WantIDs(x.Page(x.Feed, 0, head, 10), false, 3)
		x.WantSound(x.Feed)
	})
}

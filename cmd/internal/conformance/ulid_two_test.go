package conformance

import (
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestTwoULIDFeeds (M5, M16, M17): two feeds have shards of the same numbers, which have nothing to do with
// each other: neither waits for the other's, moves it, or goes with it. In each "" and 0 are the beginning, and
// an empty page keeps its cursor.
func TestTwoULIDFeeds(t *testing.T) {
	for mode, each := range map[string]func(*testing.T, func(*events)){rowfeed.ModeBlocking: eachULID, rowfeed.ModeOutbox: eachOutbox} {
		t.Run(mode, func(t *testing.T) {
			each(t, func(x *events) {
				spec := rowfeed.FeedSpec{Name: "others", Table: "others", Mode: mode}
				if mode == rowfeed.ModeBlocking {
					spec.PositionColumn, spec.ShardColumn = "ulid", "shard"
					x.exec(x.eventsTable("others"), "CREATE UNIQUE INDEX others_feed ON others (shard, ulid)")
				} else {
					x.exec("CREATE TABLE others (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))")
				}
				others := x.add(spec)
				write := func(id int) {
					x.Helper()
					if mode == rowfeed.ModeBlocking {
						x.write(0, id, id)
					} else {
						x.appended(id, 0, time.Time{})
					}
				}
				held := func() *sql.Tx { // the other's shard 0
					x.Helper()
					tx := x.begin(sql.LevelReadCommitted)
					if mode == rowfeed.ModeBlocking {
						if _, err := others.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: time.UnixMilli(1)}); err != nil {
							t.Fatal(err)
						}
					} else {
						x.in(tx, "UPDATE rowfeed_shards SET witness = witness WHERE feed = 'others'")
					}
					return tx
				}
				if mode == rowfeed.ModeOutbox {
					x.exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('others', 0, 0, 0, 0, '')")
				}
				x.commit(held())
				if tx := held(); x.family() != "sqlite" { // which has one writer at a time
					write(1) // beside it
					x.wantIDs(x.page(x.feed, 0, "", 10), false, 1)
					x.commit(tx)
				} else {
					x.commit(tx)
					write(1)
				}
				if page := x.page(others, 0, "", 10); len(page.Entries) != 0 || page.More {
					t.Errorf("the other feed: %+v", page)
				}
				write(2)
				x.publish(x.feed) // so that no page comes to the end of what was moved
				for _, beginning := range []rowfeed.Cursor{"", "0"} {
					x.wantIDs(x.page(x.feed, 0, beginning, 10), false, 1, 2)
				}
				head := x.page(x.feed, 0, "", 10).Cursor
				if page := x.page(x.feed, 0, head, 10); len(page.Entries) != 0 || page.Cursor != head || page.More {
					t.Errorf("after %s: %+v", head, page)
				}
				_, err := others.Fetch(x.ctx, rowfeed.Request{After: head, Shards: rowfeed.One(0)})
				x.wantCode(err, rowfeed.CursorAhead)
				if err := x.rf.DropFeed(x.ctx, "others"); err != nil {
					t.Fatal(err)
				}
				_, err = x.rf.Feed(x.ctx, "others")
				x.wantCode(err, rowfeed.UnknownFeed)
				write(3)
				x.wantIDs(x.page(x.feed, 0, head, 10), false, 3)
				x.wantSound(x.feed)
			})
		})
	}
}

package conformance

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestULIDTried (M30): a shard that somebody has locked, and has no row, is no second shard of the
// feed: those who read it as a whole go on, as long as their cursors can be of no other shard.
func TestULIDTried(t *testing.T) {
	eachULID(t, func(x *events) {
		whole := func(after rowfeed.Cursor) (rowfeed.Page, error) {
			x.Helper()
			return x.feed.Fetch(x.ctx, rowfeed.Request{After: after, Limit: 10})
		}
		good := func(after rowfeed.Cursor, want ...int) rowfeed.Cursor {
			x.Helper()
			page, err := whole(after)
			if err != nil {
				x.Fatal(err)
			}
			x.wantIDs(page, false, want...)
			return page.Cursor
		}
		ids := func(want ...int) {
			x.Helper()
			info, err := x.feed.Info(x.ctx)
			if err != nil || !slices.Equal(info.ShardIDs, want) {
				x.Errorf("shards %v (%v), want %v", info.ShardIDs, err, want)
			}
		}
		// Before there is any row, where a reader waits at the beginning already.
		x.try(9)
		begun := good("")
		x.write(5, 1, 2)
		cursor := good(begun, 1, 2)
		good("", 1, 2)

		x.try(3)
		good(cursor)
		good("", 1, 2)
		good(rowfeed.At(time.UnixMilli(1)), 1, 2)
		ids(3, 5, 9)
		if info, err := x.feed.Info(x.ctx); err != nil || info.Head != cursor {
			x.Errorf("the head is %q (%v), want %q", info.Head, err, cursor)
		}
		x.write(5, 3, 3)
		if page, err := whole(rowfeed.Now); err != nil || len(page.Entries) != 0 {
			x.Errorf("%+v, %v", page, err)
		}
		cursor = good(cursor, 3)

		// Whose row is gone may be the cursor of a shard whose rows are gone.
		x.exec("DELETE FROM events WHERE id = 3")
		_, err := whole(cursor)
		x.wantCode(err, rowfeed.InvalidRequest)
		x.wantIDs(x.page(x.feed, 5, cursor, 10), false)
		x.write(3, 4, 4)
		_, err = whole("")
		x.wantCode(err, rowfeed.InvalidRequest)

		// A lock that was refused has made nothing, also where its transaction goes on.
		tx := x.begin(sql.LevelReadCommitted)
		if x.family() == "postgres" {
			x.in(tx, "SAVEPOINT before_lock")
		}
		_, err = x.feed.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}, Hint: x.now().Add(time.Hour)})
		x.wantCode(err, rowfeed.InvalidRequest)
		if x.family() == "postgres" {
			x.in(tx, "ROLLBACK TO SAVEPOINT before_lock")
		}
		x.commit(tx)
		ids(3, 5, 9)
		x.wantSound(x.feed)
	})
}

// try locks a shard and leaves it at that: with PostgreSQL's function, which cannot know that its
// transaction is one statement long, else in a transaction that then has nothing to insert.
func (x *events) try(shard int) {
	x.Helper()
	if x.family() == "postgres" {
		if _, err := x.db.Admin().ExecContext(x.ctx, "SELECT rowfeed_lock_events($1)", shard); err != nil {
			x.Fatal(err)
		}
		return
	}
	tx := x.begin(sql.LevelReadCommitted)
	x.lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
	x.commit(tx)
}

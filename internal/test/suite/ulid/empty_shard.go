package ulid

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestShardWithoutRowsDoesNotCount (M30): a feed has rows in one shard, and other shards that were locked but have no
// row. Readers of the whole feed continue, as long as their cursors can belong to no other shard.
func TestShardWithoutRowsDoesNotCount(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		whole := func(after rowfeed.Cursor) (rowfeed.Page, error) {
			x.Helper()
			return x.Feed.Fetch(x.Ctx, rowfeed.Request{After: after, Limit: 10})
		}
		good := func(after rowfeed.Cursor, want ...int) rowfeed.Cursor {
			x.Helper()
			page, err := whole(after)
			if err != nil {
				x.Fatal(err)
			}
			x.WantIDs(page, false, want...)
			return page.Cursor
		}
		ids := func(want ...int) {
			x.Helper()
			info, err := x.Feed.Info(x.Ctx)
			if err != nil || !slices.Equal(info.ShardIDs, want) {
				x.Errorf("shards %v (%v), want %v", info.ShardIDs, err, want)
			}
		}
		// A reader has a cursor before the first row.
		try(x, 9)
		begun := good("")
		x.Write(5, 1, 2)
		cursor := good(begun, 1, 2)
		good("", 1, 2)

		try(x, 3)
		good(cursor)
		good("", 1, 2)
		good(rowfeed.At(time.UnixMilli(1)), 1, 2)
		ids(3, 5, 9)
		if info, err := x.Feed.Info(x.Ctx); err != nil || info.Head != cursor {
			x.Errorf("the head is %q (%v), want %q", info.Head, err, cursor)
		}
		x.Write(5, 3, 3)
		if page, err := whole(rowfeed.Now); err != nil || len(page.Entries) != 0 {
			x.Errorf("the page at the head is %+v, %v; want an empty one", page, err)
		}
		cursor = good(cursor, 3)

		// If a cursor's row is gone, the cursor may belong to another shard whose rows are gone.
		x.Exec("DELETE FROM events WHERE id = 3")
		_, err := whole(cursor)
		x.WantCode(err, rowfeed.InvalidRequest)
		x.WantIDs(x.Page(x.Feed, 5, cursor, 10), false)
		x.Write(3, 4, 4)
		_, err = whole("")
		x.WantCode(err, rowfeed.InvalidRequest)

		// A lock that was refused adds no shard, even if its transaction commits.
		tx := x.Begin(sql.LevelReadCommitted)
		if x.Has.AbortingErrors {
			x.In(tx, "SAVEPOINT before_lock")
		}
		request := rowfeed.LockRequest{Shards: []int{7}, Hint: x.Now().Add(time.Hour)}
		_, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
		x.WantCode(err, rowfeed.InvalidRequest)
		if x.Has.AbortingErrors {
			x.In(tx, "ROLLBACK TO SAVEPOINT before_lock")
		}
		x.Commit(tx)
		ids(3, 5, 9)
		x.WantSound(x.Feed)
	})
}

// try locks a shard and inserts nothing.
func try(x *suite.Events, shard int) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	x.Lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
	x.Commit(tx)
}

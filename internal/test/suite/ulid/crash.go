package ulid

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// writing is a writer in a child process: two rows of shard 1.
func writing(ctx context.Context, rf *rowfeed.DB, pool *sql.DB) error {
	f, err := rf.Feed(ctx, "events")
	if err != nil {
		return err
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	u, err := f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
	if err != nil {
		return err
	}
	query := "INSERT INTO events (id, shard, ulid, data) VALUES (?, 1, ?, '')"
	if os.Getenv("FAMILY") == "postgres" {
		query = "INSERT INTO events (id, shard, ulid, data) VALUES ($1, 1, $2, '')"
	}
	for i := range 2 {
		at, err := u.At(1, int64(i))
		if err == nil {
			_, err = tx.ExecContext(ctx, query, i+1, at)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

func init() {
	testdb.RegisterChild("write", func() {
		if err := suite.CrashingOn(writing); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestKilledWriterLeavesAllRowsOrNone (M8, M34, M44): a writer is killed before each of its statements in
// turn. While it hangs other shards do not wait; when it is gone the next writer of its
// shard goes on; both of its rows are there, or none.
func TestKilledWriterLeavesAllRowsOrNone(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "write", "URL="+x.DB.URL, fmt.Sprint("N=", n), "FAMILY="+x.Family())
			blocked := child.WaitMarker(x.Ctx)
			if x.Family() != "sqlite" {
				x.Write(2, 200, 200)
			}
			child.Kill()
			x.Write(1, 101, 101)
			page := x.Page(x.Feed, 1, "", 10)
			if blocked {
				x.WantIDs(page, false, 100, 101)
			} else {
				x.WantIDs(page, false, 100, 1, 2, 101)
				return
			}
			x.Exec("DELETE FROM events WHERE id > 100")
		}
	})
}

// TestLockRefusesDroppedFeed (M63): whoever has not heard that a feed was dropped takes nothing of it, and
// leaves nothing behind (M63).
func TestLockRefusesDroppedFeed(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		other, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
		if err == nil {
			err = other.DropFeed(x.Ctx, "events")
		}
		if err != nil {
			t.Fatal(err)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		_, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
		x.WantCode(err, rowfeed.UnknownFeed)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			t.Errorf("%d states are left", n)
		}
	})
}

// TestAddFeedKeepsFunctionsOfUsers (M63): functions of the user's own are not taken for rowfeed's.
func TestAddFeedKeepsFunctionsOfUsers(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no functions
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)", x.By(map[string]string{
			"postgres": "CREATE FUNCTION rowfeed_ulid_events(i bigint, shard bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
			"mysql":    "CREATE FUNCTION rowfeed_ulid_events(i bigint) RETURNS bigint DETERMINISTIC NO SQL RETURN 1",
		}))
		for range 2 {
			_, err := x.RF.AddFeed(x.Ctx, suite.EventsSpec(), nil)
			if x.WantCode(err, rowfeed.Conflict); !strings.Contains(err.Error(), "rowfeed_ulid_events") {
				t.Error(err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

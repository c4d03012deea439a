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

// writing is a writer in a child process. It inserts two rows into shard 1.
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
	d, err := suite.DialectOf(os.Getenv("URL"))
	if err != nil {
		return err
	}
	for i := range 2 {
		at, err := u.At(1, int64(i))
		if err == nil {
			err = suite.InsertEvent(ctx, tx, d, i+1, 1, at, "")
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

// TestKilledWriterLeavesAllRowsOrNone (M8, M34, M44): a writer is killed before each of its statements in turn. While
// it hangs, writers of other shards do not wait. When it is dead, the next writer of its shard continues, and the table
// has both of its rows or none.
func TestKilledWriterLeavesAllRowsOrNone(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "write", "URL="+x.DB.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(x.Ctx)
			if !x.Has.OneWriter {
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

// TestLockRefusesDroppedFeed (M63): a process locks a shard of a feed that another process has dropped. The lock fails,
// and leaves no state of the shard.
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
			t.Errorf("%d shards still have a state", n)
		}
	})
}

// TestAddFeedKeepsFunctionsOfUsers (M63): the database has a function of the user's with a name that rowfeed would use.
// AddFeed refuses, twice, and records nothing.
func TestAddFeedKeepsFunctionsOfUsers(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no functions
	suite.Each(t, func(x *suite.Env) {
		x.MakeEvents()
		x.Exec(x.Text("ulid.user_function"))
		for range 2 {
			_, err := x.RF.AddFeed(x.Ctx, suite.EventsSpec(), nil)
			if x.WantCode(err, rowfeed.Conflict); !strings.Contains(err.Error(), "rowfeed_ulid_events") {
				t.Errorf("error %v, want one that names the function", err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			t.Errorf("%d feeds are recorded, want none", n)
		}
	})
}

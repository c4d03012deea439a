package install

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestConcurrentFeedAddsShareBackFill: two processes add the same feed of a live table concurrently. No batch is
// recorded twice, and the second process does not mistake the complete feed for an incomplete one.
func TestConcurrentFeedAddsShareBackFill(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.KVOf(2100) // two batches
		held, end := x.AfterBatch(1)
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_changes_kv"); n != 2100 {
			x.Errorf("%d changes recorded of 2100 rows", n)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'active' AND fill_after IS NULL"); n != 1 {
			x.Error("the feed is not active")
		}
		x.Publish(f)
		x.WantSound(f)
	})
}

// failing opens rowfeed on a pool whose statements that begin with a text fail.
func failing(x *suite.Env, begin string) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, begin) {
				return testdb.ErrInjected
			}
			return nil
		}}), x.Dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

// TestBackFillKeepsMarkOfDrop: a feed is dropped while another process back-fills it, and the drop fails half-way.
// Back-fill keeps the state "dropping", so that the feed does not pass for a complete one.
func TestBackFillKeepsMarkOfDrop(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.KVOf(30)
		fresh := x.DB.Dump(x.T)
		held, end := x.AfterBatch(0)
		broken := failing(x, "DROP")
		if err := broken.DropFeed(x.Ctx, "kv"); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("error %v", err)
		}
		dropping := x.Scalar(
			"SELECT count(*) FROM rowfeed_feeds WHERE state = 'dropping'",
		) // 0 where DDL is transactional
		held.Release()
		if err := <-end; dropping == 1 {
			x.WantCode(err, rowfeed.UnknownFeed)
		} else if err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'dropping'"); n != dropping {
			x.Errorf("%d feeds are being dropped, there were %d", n, dropping)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if got := x.DB.Dump(x.T); got != fresh {
			x.Errorf("feed drop left behind\n%s\nwant\n%s", got, fresh)
		}
	})
}

// TestUpgradeDoesNotReviveDroppedFeed: a feed that was dropped before its upgrade gets the lock stays dropped: the
// upgrade does not create the missing objects.
func TestUpgradeDoesNotReviveDroppedFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.KVOf(3)
		fresh := x.DB.Dump(x.T)
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		other, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		if err := other.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		_, err = f.Admin().Upgrade(x.Ctx)
		x.WantCode(err, rowfeed.UnknownFeed)
		if got := x.DB.Dump(x.T); got != fresh {
			x.Errorf("feed upgrade made\n%s\nwant\n%s", got, fresh)
		}
	})
}

// TestAddFeedKeepsUserTableWithBatchName: without a prefix, a user's table can have the name of any table that a feed
// needs. Adding the feed is a conflict, and the table stays untouched.
func TestAddFeedKeepsUserTableWithBatchName(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, &rowfeed.Config{Prefix: rowfeed.NoPrefix})
		x.Migrate()
		x.Exec("CREATE TABLE batch_kv (n INT)", "INSERT INTO batch_kv VALUES (1)",
			"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY)")
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if n := x.Scalar("SELECT count(*) FROM batch_kv WHERE n = 1"); n != 1 {
			x.Error("the user's own table was touched")
		}
	})
}

// TestInterruptedAdoptReadsPositionsAgain: adding a feed that adopts positions fails, the former publisher continues,
// and the feed is added again. No position of the former publisher is given again.
func TestInterruptedAdoptReadsPositionsAgain(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, feed_sync_id BIGINT NULL)",
			"INSERT INTO kv VALUES (1, 'k', 0, 100)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		broken := failing(x, "CREATE TABLE")
		if _, err := broken.AddFeed(x.Ctx, spec, nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("error %v", err)
		}
		x.Exec("UPDATE kv SET feed_sync_id = 5000", "INSERT INTO kv (id, k, v) VALUES (2, 'k', 0)")
		x.Publish(x.Add(spec))
		if n := x.Scalar("SELECT feed_sync_id FROM kv WHERE id = 2"); n <= 5000 {
			x.Errorf("position %d was the former publisher's to give", n)
		}
	})
}

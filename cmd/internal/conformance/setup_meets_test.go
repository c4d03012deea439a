package conformance

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// afterBatch holds a `feed add` of kv after n batches of back-fill, on a pool of its
// own; its end is what comes out of the channel.
func (x *env) afterBatch(n int64) (held *testdb.Held, end chan error) {
	x.Helper()
	var made, batches atomic.Int64
	held = testdb.Hold(func(ev testdb.TapEvent) bool {
		return ev.Kind == testdb.Begin && made.Load() == 1 && batches.Load() == n
	})
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "INSERT INTO") && strings.Contains(ev.SQL, "changes_kv") {
			batches.Add(1)
		}
		if ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "feeds") && strings.Contains(ev.SQL, "SET state") {
			made.Store(1)
		}
		return held.Before(ctx, ev)
	}}), x.dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	end = make(chan error, 1)
	go func() {
		_, err := rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		end <- err
	}()
	<-held.Reached
	return held, end
}

func (x *env) kvOf(rows int) {
	x.Helper()
	x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	x.fill(rows)
}

// TestFeedAddTwiceAtOnce: two processes add the same feed of a live table at the same
// time. They share the work; whoever comes second does no batch again, and does not
// take a feed that is complete for one that is not.
func TestFeedAddTwiceAtOnce(t *testing.T) {
	each(t, func(x *env) {
		x.kvOf(2100) // two batches
		held, end := x.afterBatch(1)
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		held.Release()
		if err := <-end; err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_changes_kv"); n != 2100 {
			x.Errorf("%d changes recorded of 2100 rows", n)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'active' AND fill_after IS NULL"); n != 1 {
			x.Error("the feed is not active")
		}
		x.publish(f)
		x.wantSound(f)
	})
}

// TestDropMeetsFill: a feed is dropped while another process still fills it. Where
// the drop breaks off half-way, back-fill must not wipe out its mark: the feed would
// pass for one that is whole.
func TestDropMeetsFill(t *testing.T) {
	each(t, func(x *env) {
		x.kvOf(30)
		fresh := x.db.Dump(x.T)
		held, end := x.afterBatch(0)
		broken, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "DROP") {
				return testdb.ErrInjected
			}
			return nil
		}}), x.dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		if err := broken.DropFeed(x.ctx, "kv"); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("error %v", err)
		}
		dropping := x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'dropping'") // 0 where DDL is transactional
		held.Release()
		if err := <-end; dropping == 1 {
			x.wantCode(err, rowfeed.UnknownFeed)
		} else if err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE state = 'dropping'"); n != dropping {
			x.Errorf("%d feeds are being dropped, there were %d", n, dropping)
		}
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if got := x.db.Dump(x.T); got != fresh {
			x.Errorf("feed drop left behind\n%s\nwant\n%s", got, fresh)
		}
	})
}

// TestUpgradeAfterDrop: a feed that was dropped while `feed upgrade` waited for its turn
// stays dropped: what is missing then is not to be mended.
func TestUpgradeAfterDrop(t *testing.T) {
	eachCapture(t, func(x *env) {
		x.kvOf(3)
		fresh := x.db.Dump(x.T)
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		other, err := rowfeed.Open(x.ctx, x.pool, x.dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		if err := other.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		_, err = f.Admin().Upgrade(x.ctx)
		x.wantCode(err, rowfeed.UnknownFeed)
		if got := x.db.Dump(x.T); got != fresh {
			x.Errorf("feed upgrade made\n%s\nwant\n%s", got, fresh)
		}
	})
}

// TestNamesOfBatches: without a prefix a table of the user's own may have the name of
// any table that a feed needs.
func TestNamesOfBatches(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newEnv(t, e, &rowfeed.Config{Prefix: rowfeed.NoPrefix})
		x.migrate()
		x.exec("CREATE TABLE batch_kv (n INT)", "INSERT INTO batch_kv VALUES (1)", "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY)")
		_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}, nil)
		x.wantCode(err, rowfeed.Conflict)
		if n := x.scalar("SELECT count(*) FROM batch_kv WHERE n = 1"); n != 1 {
			x.Error("the user's own table was touched")
		}
	})
}

// TestAdoptAgainLater: an add that adopts positions breaks off, the former publisher
// goes on, and the add is run again. No position of the former's is given again.
func TestAdoptAgainLater(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, feed_sync_id BIGINT NULL)",
			"INSERT INTO kv VALUES (1, 'k', 0, 100)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		broken, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "CREATE TABLE") {
				return testdb.ErrInjected
			}
			return nil
		}}), x.dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		if _, err := broken.AddFeed(x.ctx, spec, nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("error %v", err)
		}
		x.exec("UPDATE kv SET feed_sync_id = 5000", "INSERT INTO kv (id, k, v) VALUES (2, 'k', 0)")
		x.publish(x.add(spec))
		if n := x.scalar("SELECT feed_sync_id FROM kv WHERE id = 2"); n <= 5000 {
			x.Errorf("position %d was the former publisher's to give", n)
		}
	})
}

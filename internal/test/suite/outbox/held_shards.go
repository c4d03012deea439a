package outbox

import (
	"context"
	"database/sql"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// servesMeanwhile asserts that records of shard 1, from this id on, are moved one after the other while a transaction
// holds another shard.
func servesMeanwhile(x *suite.Events, first int) {
	x.Helper()
	const rounds = 5
	x.Appended(first, 1, time.Time{})
	n := 1
	x.Eventually("shard 1 is served while shard 0 is held", func() bool {
		if x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 1") != 0 {
			return false
		}
		if n == rounds {
			return true
		}
		x.Appended(first+n, 1, time.Time{})
		n++
		return false
	})
}

// TestOneMoverAtATimeInAShard (M59, H1): while a mover is between reading records and moving them, a second mover of
// the shard is refused. Both readers see one order.
func TestOneMoverAtATimeInAShard(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{}) // the transaction that makes the row of a shard always holds it
		at := x.Page(x.Feed, 0, "", 10).Cursor
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, time.Time{})
		held := testdb.Hold(suite.PlacesRecords)
		mover := unhurriedFeed(x, testdb.Hooks{Before: held.Before})
		first := asking(x, mover, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		<-held.Reached
		x.Appended(4, 0, time.Time{})
		_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		x.WantCode(err, rowfeed.Locked)
		held.Release()
		page := answered(x, first)
		x.WantIDs(page, true, 2, 3)
		x.WantIDs(x.Page(x.Feed, 0, page.Cursor, 10), false, 4)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 2, 3, 4)
		x.WantSound(x.Feed)
	})
}

// minutes returns how many reports there may be since a moment if there is at most one a minute.
func minutes(since time.Time) int { return 1 + int(time.Since(since)/time.Minute) }

// TestHeldShardDelaysNoOtherShard (M59, H18): a transaction holds a shard. The publisher serves the others, reports
// which shard waits and what to do, and serves that shard once it is free. One call of Publish moves what can be moved,
// and its error names the shard.
func TestHeldShardDelaysNoOtherShard(t *testing.T) {
	testdb.Quick(t)
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		letGo := hold()
		x.Appended(3, 0, time.Time{})
		var told suite.Troubles
		ctx, stop := context.WithCancel(x.Ctx)
		ended, began := make(chan error, 1), time.Now()
		f := x.Other(testdb.Hooks{}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.Observer()})
		go func() { ended <- f.RunPublisher(ctx) }()
		servesMeanwhile(x, 10)
		x.Eventually("the publisher reports the shard", func() bool {
			return told.Like(`feed "events", shard 0: `) > 0 && told.Like("rowfeed unblock events --shard 0") > 0
		})
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("the publisher serves other shards and reports the problems %q", problems)
		}
		if _, shard := x.ShardStatus(0); x.Tells() == admin.HoldersAll && shard.Holder == nil {
			t.Errorf("status does not name the session that holds the shard: %+v", shard)
		}
		if n := told.Like(""); n < 1 || n > minutes(began) {
			t.Errorf("the publisher reported %q", told.Told)
		}
		letGo()
		x.Eventually("shard 0 is served again",
			func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}

		letGo = hold()
		x.Appended(4, 0, time.Time{})
		x.Appended(20, 1, time.Time{})
		n, err := x.Feed.Publish(x.Ctx)
		if x.WantCode(err, rowfeed.Locked); n != 1 || !strings.Contains(err.Error(), "shard 0") {
			t.Errorf("%d records moved, %v", n, err)
		}
		letGo()
		if n := x.Publish(x.Feed); n != 1 {
			t.Errorf("%d records moved", n)
		}
		x.WantIDs(x.All(0), false, 1, 3, 4)
		x.WantSound(x.Feed)
	})
}

// TestHeldShardDelaysNoPurgeOfOthers (M59): a transaction holds shards whose entries have expired. The publisher purges
// the others, reports the held shards, and does not try again at every pass.
func TestHeldShardDelaysNoPurgeOfOthers(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		for id := 3; id <= 5; id++ {
			x.Appended(id, 0, time.Time{})
			x.Appended(id+10, 1, time.Time{})
			x.Appended(id+20, -1, time.Time{})
			x.Appended(id+30, -2, time.Time{})
		}
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 1})
		letGo := hold()
		var told suite.Troubles
		var tries atomic.Int64
		ctx, stop := context.WithCancel(x.Ctx)
		ended, began := make(chan error, 1), time.Now()
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.HasPrefix(ev.SQL, "SELECT s.shard, (SELECT") {
				tries.Add(1)
			}
			return nil
		}}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.Observer()})
		go func() { ended <- f.RunPublisher(ctx) }()
		servesMeanwhile(x, 40)
		n, tried := told.Like("shard -2, -1, 0: its expired entries cannot be purged yet"), int(tries.Load())
		if n < 1 || n > tried || tried > minutes(began) || len(f.Problems()) > 0 {
			t.Errorf("the publisher tried %d times, reported %q and the problems %q", tried, told.Told, f.Problems())
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feed_events WHERE shard = 1 AND id < 40"); n != 1 {
			t.Errorf("%d entries of shard 1 are left", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		n, err := x.Feed.Admin().Purge(x.Ctx)
		if x.WantCode(err, rowfeed.Locked); n != 5 {
			t.Errorf("%d entries purged", n)
		}
		letGo()
		x.Purged(7)
	})
}

// TestReaderOfHeldShardIsRefused (M59): a transaction holds a shard. A fetch of it without a wait fails soon, and a
// fetch with a wait gets the entries once the shard is free. Readers of other shards are served. The sessions have
// their own bounds of waits again afterwards.
func TestReaderOfHeldShardIsRefused(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		letGo := hold()
		x.Appended(3, 0, time.Time{})
		x.Appended(4, 1, time.Time{})
		var tries atomic.Int64
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if err != nil && strings.Contains(ev.SQL, "rowfeed_shards") {
				tries.Add(1)
			}
			return err
		}})
		pool.SetMaxOpenConns(2)
		bounds := func() (all []string) {
			one, other := x.BeginOn(pool), x.BeginOn(pool)
			for _, tx := range []*sql.Tx{one, other} {
				all = append(all, x.WaitSetting(tx))
				x.Commit(tx)
			}
			return all
		}
		own := bounds()
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		at := x.Page(f, 0, rowfeed.Now, 10).Cursor
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), `feed "events", shard 0: `) ||
			!strings.Contains(err.Error(), "rowfeed unblock events --shard 0") {
			t.Error(err)
		}
		x.WantProblem(x.Served(rf).URL+"/_feeds/fetch/events?shard=0&after="+string(at), http.StatusServiceUnavailable,
			rowfeed.Locked, "1", "rowfeed unblock events --shard 0")
		if now := bounds(); !slices.Equal(now, own) {
			t.Errorf("sessions have the bounds %q, and had %q before the fetch", now, own)
		}
		x.WantIDs(x.Page(f, 1, x.Page(f, 1, rowfeed.Now, 10).Cursor, 10), false, 4)
		waiting := asking(x, f, rowfeed.Request{After: at, Shards: rowfeed.One(0), Wait: time.Hour})
		known := tries.Load()
		x.Eventually("the waiting fetch has tried several times", func() bool { return tries.Load() >= known+6 })
		letGo()
		x.WantIDs(answered(x, waiting), false, 3)
		x.WantSound(x.Feed)
	})
}

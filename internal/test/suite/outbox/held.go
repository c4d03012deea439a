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

// servesMeanwhile asserts that records of shard 1, from this id on, are moved one after the other
// while somebody has another shard.
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

// TestOutboxMoversBetween (M59, H1): between a mover's look at the records and its move nobody else
// moves any of the shard: a second mover is told to come later, and both see one order.
func TestOutboxMoversBetween(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{}) // who makes the row of a shard has it in any case
		at := x.Page(x.Feed, 0, "", 10).Cursor
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, time.Time{})
		held := testdb.Hold(suite.PlacesRecords)
		first := asking(x, still(x, testdb.Hooks{Before: held.Before}), rowfeed.Request{After: at, Shards: rowfeed.One(0)})
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

// minutes is how often a publisher has told of what is in its way, or has kept house, since a moment at most: once each minute.
func minutes(since time.Time) int { return 1 + int(time.Since(since)/time.Minute) }

// TestHeldShardPublisher (M59, H18): a shard that somebody has holds up no other: a publisher goes on with
// those, tells which one waits and what to do, and serves it when it is free. One call of
// Publish moves what can be moved, and says what could not.
func TestHeldShardPublisher(t *testing.T) {
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
		x.Eventually("it tells of the shard", func() bool {
			return told.Like(`feed "events", shard 0: `) > 0 && told.Like("rowfeed unblock events --shard 0") > 0
		})
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("others are served, and it has problems: %q", problems)
		}
		if _, shard := x.ShardStatus(0); x.Tells() == admin.HoldersAll && shard.Holder == nil {
			t.Errorf("status does not say who has the shard: %+v", shard)
		}
		if n := told.Like(""); n < 1 || n > minutes(began) {
			t.Errorf("told %q", told.Told)
		}
		letGo()
		x.Eventually("shard 0 is served again", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}

		letGo = hold()
		x.Appended(4, 0, time.Time{})
		x.Appended(20, 1, time.Time{})
		n, err := x.Feed.Publish(x.Ctx)
		if x.WantCode(err, rowfeed.Locked); n != 1 || !strings.Contains(err.Error(), "shard 0") {
			t.Errorf("%d moved, %v", n, err)
		}
		letGo()
		if n := x.Publish(x.Feed); n != 1 {
			t.Errorf("%d moved", n)
		}
		x.WantIDs(x.All(0), false, 1, 3, 4)
		x.WantSound(x.Feed)
	})
}

// TestHeldShardPurge (M59): nor does a shard that is to be purged, be it moved or not; it is
// told, and not tried again at every turn of the publisher.
func TestHeldShardPurge(t *testing.T) {
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
		var looks atomic.Int64
		ctx, stop := context.WithCancel(x.Ctx)
		ended, began := make(chan error, 1), time.Now()
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.HasPrefix(ev.SQL, "SELECT s.shard, (SELECT") {
				looks.Add(1)
			}
			return nil
		}}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.Observer()})
		go func() { ended <- f.RunPublisher(ctx) }()
		servesMeanwhile(x, 40)
		n, looked := told.Like("shard -2, -1, 0: its expired entries cannot be purged yet"), int(looks.Load())
		if n < 1 || n > looked || looked > minutes(began) || len(f.Problems()) > 0 {
			t.Errorf("looked %d times, told %q, problems %q", looked, told.Told, f.Problems())
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feed_events WHERE shard = 1 AND id < 40"); n != 1 {
			t.Errorf("%d entries of the other shard are left", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		n, err := x.Feed.Admin().Purge(x.Ctx)
		if x.WantCode(err, rowfeed.Locked); n != 5 {
			t.Errorf("%d purged", n)
		}
		letGo()
		x.Purged(7)
	})
}

// TestHeldShardReaders (M59): a reader without wait is told that its shard is held, soon; one that
// waits has time for that, too. Others read on. Whatever bounds the wait is gone with it.
func TestHeldShardReaders(t *testing.T) {
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
		if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), `feed "events", shard 0: `) || !strings.Contains(err.Error(), "rowfeed unblock events --shard 0") {
			t.Error(err)
		}
		x.WantProblem(x.Served(rf).URL+"/_feeds/fetch/events?shard=0&after="+string(at), http.StatusServiceUnavailable, rowfeed.Locked, "1", "rowfeed unblock events --shard 0")
		if now := bounds(); !slices.Equal(now, own) {
			t.Errorf("sessions wait for %q, and did for %q", now, own)
		}
		x.WantIDs(x.Page(f, 1, x.Page(f, 1, rowfeed.Now, 10).Cursor, 10), false, 4)
		waiting := asking(x, f, rowfeed.Request{After: at, Shards: rowfeed.One(0), Wait: time.Hour})
		known := tries.Load()
		x.Eventually("it has tried in vain", func() bool { return tries.Load() >= known+6 })
		letGo()
		x.WantIDs(answered(x, waiting), false, 3)
		x.WantSound(x.Feed)
	})
}

package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachHeld runs f on the engines that lock shards one by one, with records that have been moved
// in shards 0 and 1. hold has another transaction
// take shard 0, and those below it.
func eachHeld(t *testing.T, f func(x *events, hold func() (letGo func()))) {
	t.Helper()
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		x.appended(2, 1, time.Time{})
		x.publish(x.feed)
		f(x, func() func() {
			tx := x.begin(sql.LevelReadCommitted)
			x.in(tx, "SELECT * FROM rowfeed_shards WHERE shard <= 0 FOR UPDATE")
			return func() { x.commit(tx) }
		})
	})
}

// servesMeanwhile asserts that records of shard 1, from this id on, are moved one after the other
// while somebody has another shard.
func (x *events) servesMeanwhile(first int) {
	x.Helper()
	const rounds = 5
	x.appended(first, 1, time.Time{})
	n := 1
	x.eventually("shard 1 is served while shard 0 is held", func() bool {
		if x.scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 1") != 0 {
			return false
		}
		if n == rounds {
			return true
		}
		x.appended(first+n, 1, time.Time{})
		n++
		return false
	})
}

// troubles collects what an observer is told.
type troubles struct {
	mu   sync.Mutex
	told []string
}

func (t *troubles) observer() *rowfeed.Observer {
	return &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.told = append(t.told, e.Err.Error())
	}}
}

// like counts those with these words.
func (t *troubles) like(words string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range t.told {
		if strings.Contains(text, words) {
			n++
		}
	}
	return n
}

// TestOutboxMoversBetween (M59, H1): between a mover's look at the records and its move nobody else
// moves any of the shard: a second mover is told to come later, and both see one order.
func TestOutboxMoversBetween(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{}) // who makes the row of a shard has it in any case
		at := x.page(x.feed, 0, "", 10).Cursor
		x.appended(2, 0, time.Time{})
		x.appended(3, 0, time.Time{})
		held := testdb.Hold(placesRecords)
		first := x.asking(x.still(testdb.Hooks{Before: held.Before}), rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		<-held.Reached
		x.appended(4, 0, time.Time{})
		_, err := x.feed.Fetch(x.ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		x.wantCode(err, rowfeed.Locked)
		held.Release()
		page := x.answered(first)
		x.wantIDs(page, true, 2, 3)
		x.wantIDs(x.page(x.feed, 0, page.Cursor, 10), false, 4)
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 1, 2, 3, 4)
		x.wantSound(x.feed)
	})
}

// minutes is how often a publisher has told of what is in its way, or has kept house, since a moment at most: once each minute.
func minutes(since time.Time) int { return 1 + int(time.Since(since)/time.Minute) }

// TestHeldShardPublisher (M59, H18): a shard that somebody has holds up no other: a publisher goes on with
// those, tells which one waits and what to do, and serves it when it is free. One call of
// Publish moves what can be moved, and says what could not.
func TestHeldShardPublisher(t *testing.T) {
	testdb.Quick(t)
	eachHeld(t, func(x *events, hold func() func()) {
		letGo := hold()
		x.appended(3, 0, time.Time{})
		var told troubles
		ctx, stop := context.WithCancel(x.ctx)
		ended, began := make(chan error, 1), time.Now()
		f := x.other(testdb.Hooks{}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.observer()})
		go func() { ended <- f.RunPublisher(ctx) }()
		x.servesMeanwhile(10)
		x.eventually("it tells of the shard", func() bool {
			return told.like(`feed "events", shard 0: `) > 0 && told.like("rowfeed unblock events --shard 0") > 0
		})
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("others are served, and it has problems: %q", problems)
		}
		if _, shard := x.shardStatus(0); x.tells() == admin.HoldersAll && shard.Holder == nil {
			t.Errorf("status does not say who has the shard: %+v", shard)
		}
		if n := told.like(""); n < 1 || n > minutes(began) {
			t.Errorf("told %q", told.told)
		}
		letGo()
		x.eventually("shard 0 is served again", func() bool { return x.scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}

		letGo = hold()
		x.appended(4, 0, time.Time{})
		x.appended(20, 1, time.Time{})
		n, err := x.feed.Publish(x.ctx)
		if x.wantCode(err, rowfeed.Locked); n != 1 || !strings.Contains(err.Error(), "shard 0") {
			t.Errorf("%d moved, %v", n, err)
		}
		letGo()
		if n := x.publish(x.feed); n != 1 {
			t.Errorf("%d moved", n)
		}
		x.wantIDs(x.all(0), false, 1, 3, 4)
		x.wantSound(x.feed)
	})
}

// TestHeldShardPurge (M59): nor does a shard that is to be purged, be it moved or not; it is
// told, and not tried again at every turn of the publisher.
func TestHeldShardPurge(t *testing.T) {
	eachHeld(t, func(x *events, hold func() func()) {
		for id := 3; id <= 5; id++ {
			x.appended(id, 0, time.Time{})
			x.appended(id+10, 1, time.Time{})
			x.appended(id+20, -1, time.Time{})
			x.appended(id+30, -2, time.Time{})
		}
		x.publish(x.feed)
		x.retain(rowfeed.Retention{Count: 1})
		letGo := hold()
		var told troubles
		var looks atomic.Int64
		ctx, stop := context.WithCancel(x.ctx)
		ended, began := make(chan error, 1), time.Now()
		f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.HasPrefix(ev.SQL, "SELECT s.shard, (SELECT") {
				looks.Add(1)
			}
			return nil
		}}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.observer()})
		go func() { ended <- f.RunPublisher(ctx) }()
		x.servesMeanwhile(40)
		n, looked := told.like("shard -2, -1, 0: entries of it have expired"), int(looks.Load())
		if n < 1 || n > looked || looked > minutes(began) || len(f.Problems()) > 0 {
			t.Errorf("looked %d times, told %q, problems %q", looked, told.told, f.Problems())
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_feed_events WHERE shard = 1 AND id < 40"); n != 1 {
			t.Errorf("%d entries of the other shard are left", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		n, err := x.feed.Admin().Purge(x.ctx)
		if x.wantCode(err, rowfeed.Locked); n != 5 {
			t.Errorf("%d purged", n)
		}
		letGo()
		x.purged(7)
	})
}

// TestHeldShardReaders (M59): a reader without wait is told that its shard is held, soon; one that
// waits has time for that, too. Others read on. Whatever bounds the wait is gone with it.
func TestHeldShardReaders(t *testing.T) {
	eachHeld(t, func(x *events, hold func() func()) {
		letGo := hold()
		x.appended(3, 0, time.Time{})
		x.appended(4, 1, time.Time{})
		var tries atomic.Int64
		pool := x.db.OpenTapped(x.T, testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if err != nil && strings.Contains(ev.SQL, "rowfeed_shards") {
				tries.Add(1)
			}
			return err
		}})
		pool.SetMaxOpenConns(2)
		bounds := func() (all []string) {
			one, other := x.beginOn(pool), x.beginOn(pool)
			for _, tx := range []*sql.Tx{one, other} {
				all = append(all, x.waitSetting(tx))
				x.commit(tx)
			}
			return all
		}
		own := bounds()
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		at := x.page(f, 0, rowfeed.Now, 10).Cursor
		_, err = f.Fetch(x.ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		if x.wantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), `feed "events", shard 0: `) || !strings.Contains(err.Error(), "rowfeed unblock events --shard 0") {
			t.Error(err)
		}
		x.wantProblem(x.served(rf).URL+"/_feeds/fetch/events?shard=0&after="+string(at), http.StatusServiceUnavailable, rowfeed.Locked, "1", "rowfeed unblock events --shard 0")
		if now := bounds(); !slices.Equal(now, own) {
			t.Errorf("sessions wait for %q, and did for %q", now, own)
		}
		x.wantIDs(x.page(f, 1, x.page(f, 1, rowfeed.Now, 10).Cursor, 10), false, 4)
		waiting := x.asking(f, rowfeed.Request{After: at, Shards: rowfeed.One(0), Wait: time.Hour})
		known := tries.Load()
		x.eventually("it has tried in vain", func() bool { return tries.Load() >= known+6 })
		letGo()
		x.wantIDs(x.answered(waiting), false, 3)
		x.wantSound(x.feed)
	})
}

// lockedShard is a feed whose shard 5 others have.
type lockedShard struct{ *rowfeed.Feed }

func (s lockedShard) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if req.Shards == rowfeed.One(5) {
		return rowfeed.Page{}, &rowfeed.Error{Code: rowfeed.Locked, Cause: "somebody has it"}
	}
	return s.Feed.Fetch(ctx, req)
}

// TestHeldShardOnce (M59): who consumes to the heads once does so with all shards that are to be had, and is
// told of the one that is not.
func TestHeldShardOnce(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	eachOutbox(t, func(x *events) {
		r := x.taker(nil)
		c := r.consumer(lockedShard{x.feed}, x.rf)
		c.Retry.Backoff, c.Retry.MaxBackoff, c.Limit = 1, 1, 1
		x.appended(1, 5, time.Time{})
		want := "6:"
		for id := 10; id < 40; id++ {
			x.appended(id, 6, time.Time{})
			want += fmt.Sprint(" ", id)
		}
		x.wantCode(c.RunOnce(x.ctx), rowfeed.Locked)
		r.wantApplied(want)
	})
}

// TestHeldShardConsumer (M59): a worker whose shard somebody has goes on with its others.
func TestHeldShardConsumer(t *testing.T) {
	eachHeld(t, func(x *events, hold func() func()) {
		r := x.taker(nil)
		var told troubles
		c := r.consumer(x.feed, x.tappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: told.observer()}))
		r.once(c)
		letGo := hold()
		x.appended(3, 0, time.Time{})
		stop := r.run(c)
		for id := 10; id < 13; id++ {
			x.appended(id, 1, time.Time{})
		}
		r.awaitApplied("the other shard while one is held", "0: 1", "1: 2 10 11 12")
		x.eventually("it tells of the shard", func() bool { return told.like(`feed "events", shard 0: `) > 0 })
		letGo()
		r.awaitApplied("the shard that was held", "0: 1 3", "1: 2 10 11 12")
		if err := stop(); err != nil && err != context.Canceled {
			t.Fatal(err)
		}
	})
}

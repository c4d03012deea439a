package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// asksForChanges matches the question that comes before a publishing transaction.
func asksForChanges(ev testdb.TapEvent) bool {
	return !looks(ev) && strings.Contains(ev.SQL, "SELECT seq FROM (SELECT seq FROM ")
}

// published publishes in the background for as long as the test runs, and answers where it tells of
// what it has published.
func (x *env) published(feeds []*rowfeed.Feed, events chan rowfeed.PublishEvent) {
	x.Helper()
	ctx, cancel := context.WithCancel(x.ctx)
	var running sync.WaitGroup
	for _, f := range feeds {
		running.Go(func() {
			if err := f.RunPublisher(ctx); err != nil {
				x.Errorf("RunPublisher: %v", err)
			}
		})
	}
	x.Cleanup(func() {
		cancel()
		for {
			select {
			case <-events: // whoever is about to tell of something is not kept from its end
				continue
			default:
			}
			break
		}
		running.Wait()
	})
	x.eventually("publishers sleep", func() bool { return x.parked("watch.(*Watcher).Sleep(") == len(feeds) })
}

// TestPublishersSleep (M69): publishers and readers of a process that have nothing to do cost one statement at
// each look, however many they are, and a change wakes its feed's publisher.
func TestPublishersSleep(t *testing.T) {
	each(t, func(x *env) {
		var all, looked atomic.Int64
		events := make(chan rowfeed.PublishEvent, 100)
		pool := x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			all.Add(1)
			if looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{PublisherLease: rowfeed.NoLease, IdlePoll: 5 * time.Millisecond, WatchPoll: 5 * time.Millisecond, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { events <- e },
			Trouble:   func(e rowfeed.TroubleEvent) { x.Errorf("%v", e.Err) },
		}})
		if err != nil {
			x.Fatal(err)
		}
		var feeds []*rowfeed.Feed
		for i := range 3 {
			name := fmt.Sprintf("kv%d", i)
			x.exec("CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY)")
			f, err := rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: name, Table: name}, nil)
			if err != nil {
				x.Fatal(err)
			}
			x.exec("INSERT INTO " + name + " VALUES (0)")
			x.publish(f)
			<-events
			feeds = append(feeds, f)
		}
		asleep := time.Now()
		x.published(feeds, events)
		results := make(chan fetched, 1)
		x.crowd(x.ctx, 1, feeds[:1], results)
		x.eventually("publishers sleep", func() bool { return x.parked("watch.(*Watcher).Sleep(") == len(feeds) })
		before, then, began := all.Load(), looked.Load(), time.Now()
		x.eventually("it looks on", func() bool { return looked.Load() > then+100 })
		more := all.Load() - before - (looked.Load() - then)
		// Publishers ask now and then all the same: every ten seconds, and on a database that stamps commits more often.
		most := int64(1) + 2*int64(len(feeds))*int64(time.Since(asleep)/(10*time.Second))
		if x.dialect.Stamp() != "" {
			most += int64(len(feeds)) * int64(time.Since(began)/(3*time.Second)+2)
		}
		if more > most {
			x.Errorf("%d statements beside %d looks; want at most %d", more, looked.Load()-then, most)
		}
		for i, f := range feeds {
			then := looked.Load()
			x.exec(fmt.Sprintf("INSERT INTO %s VALUES (%d)", f.Name(), i+1))
			x.eventually("it is published, or slept over", func() bool { return len(events) > 0 || looked.Load() > then+1000 })
			if len(events) == 0 {
				x.Fatalf("the change of %s was slept over by 1,000 looks", f.Name())
			}
			if e := <-events; e.Feed != f.Name() || e.Keys != 1 {
				x.Fatalf("published %+v, want the change of %s", e, f.Name())
			}
		}
		if got := <-results; got.err != nil || len(got.page.Entries) != 1 {
			x.Errorf("the reader was answered %+v", got)
		}
	})
}

// TestSleepRace (M69): a change that is committed between a publisher's question and its going to sleep
// is not slept over, although the look that saw the commit found nobody asleep yet.
func TestSleepRace(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		x.addKV()
		x.add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		var armed, freed, wentOn atomic.Bool
		var looked atomic.Int64
		var still sync.RWMutex // nobody looks
		g := newGate()
		events := make(chan rowfeed.PublishEvent, 100)
		pool := x.db.OpenTapped(x.T, testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if looks(ev) {
					looked.Add(1)
					still.RLock()
					defer still.RUnlock()
				} else if freed.Load() && strings.Contains(ev.SQL, "_kv") {
					wentOn.Store(true)
				}
				return nil
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if armed.Load() && asksForChanges(ev) && strings.Contains(ev.SQL, "_kv") {
					g.pass()
				}
				return err
			},
		})
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{PublisherLease: rowfeed.NoLease, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { events <- e },
		}})
		if err != nil {
			x.Fatal(err)
		}
		kv, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		other, err := rf.Feed(x.ctx, "other")
		if err != nil {
			x.Fatal(err)
		}
		x.published([]*rowfeed.Feed{kv, other}, events)
		armed.Store(true)
		kv.Wake() // it asks, and is held with the answer that there is nothing
		<-g.reached
		x.exec("INSERT INTO kv VALUES (1, 'k', 0)")
		seen := looked.Load()
		x.eventually("looks have seen the commit", func() bool { return looked.Load() > seen+2 })
		x.eventually("the other publisher sleeps", func() bool { return x.parked("watch.(*Watcher).Sleep(") == 1 })
		if x.dialect.Stamp() != "" {
			still.Lock() // what has been seen is all there is to tell
			defer still.Unlock()
		}
		freed.Store(true)
		close(g.open)
		x.eventually("it goes on, or to sleep", func() bool { return wentOn.Load() || x.parked("watch.(*Watcher).Sleep(") == 2 })
		if x.dialect.Stamp() != "" && !wentOn.Load() { // it would ask again when it has slept for long
			x.Error("it went to sleep")
		}
		if e := <-events; e.Feed != "kv" || e.Keys != 1 {
			x.Fatalf("published %+v", e)
		}
	})
}

// TestStampedLooks (M69): what is committed while a look is under way is seen by the next one, and not
// taken for what that look has seen.
func TestStampedLooks(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		other := x.addKV() // of another DB: as good as another process
		x.fill(1)
		x.publish(other)
		var began atomic.Int64
		g := newGate()
		f := x.tapped(testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if looks(ev) {
					began.Add(1)
				}
				return nil
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if readsStandings(ev) {
					g.pass()
				}
				return err
			},
		}, nil)
		result := x.waiter(f, "1")
		<-g.reached
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.publish(other)
		before := began.Load()
		close(g.open)
		x.wantWoken(result, "2", kv(2, "k", 0))
		// A stamp and what it makes ask for; one more may have begun before the waiter had left.
		if n := began.Load() - before; n > 5 {
			x.Errorf("the commit was noticed after %d statements", n)
		}
	})
}

// TestStamp (M69): a database's stamp is another one after every commit, also of a transaction that is neither
// the oldest nor the newest. A standby, which does not know that much, has none.
func TestStamp(t *testing.T) {
	testdb.Quick(t)
	stampOf := func(x *env) (stamp string) {
		x.Helper()
		if err := x.db.Admin().QueryRowContext(x.ctx, x.dialect.Stamp()).Scan(&stamp); err != nil {
			x.Fatal(err)
		}
		return stamp
	}
	each(t, func(x *env) {
		if x.dialect.Stamp() == "" {
			if x.family() == "postgres" {
				x.Error("no stamp")
			}
			return
		}
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY)")
		seen := map[string]string{}
		changed := func(after string) {
			x.Helper()
			stamp := stampOf(x)
			if before, known := seen[stamp]; known {
				x.Errorf("after %s the stamp is %s, as after %s", after, stamp, before)
			}
			seen[stamp] = after
		}
		changed("the beginning")
		oldest, middle, newest := x.begin(sql.LevelReadCommitted), x.begin(sql.LevelReadCommitted), x.begin(sql.LevelReadCommitted)
		for i, tx := range []*sql.Tx{oldest, middle, newest} {
			x.in(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d)", i))
		}
		x.exec("INSERT INTO kv VALUES (10)")
		changed("a commit beside open transactions")
		x.commit(middle)
		changed("the commit of the middle one")
		x.commit(newest)
		changed("that of the newest one")
		x.commit(oldest)
		changed("that of the oldest one")
	})
	eachReplicated(t, func(x *replicated) {
		if x.dialect.Stamp() == "" {
			return
		}
		if y, _ := x.on(rowfeed.Config{Replica: true}); stampOf(y) != "" {
			x.Error("a standby has a stamp, although it does not say which transactions are under way")
		}
	})
}

// TestLooksAtAReplica (M69): who waits at a server that has no stamp is told of what a look finds, and
// not of what an earlier one has found.
func TestLooksAtAReplica(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		x.insertKV(1, 2)
		x.publish(x.feed)
		y, plain := x.on(rowfeed.Config{Replica: true})
		x.reaches(plain, "1")
		var looked atomic.Int64
		pool := y.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{Replica: true, WatchPoll: 5 * time.Millisecond})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for id := 2; id < 5; id++ {
			result := x.waiter(f, rowfeed.Cursor(fmt.Sprint(id-1)))
			began := looked.Load()
			x.eventually("it looks", func() bool { return looked.Load() > began+2 })
			x.insertKV(id, id+1)
			x.publish(x.feed)
			x.reaches(plain, rowfeed.Cursor(fmt.Sprint(id)))
			there := looked.Load()
			if got := <-result; got.err != nil || len(got.page.Entries) != 1 {
				x.Fatalf("%+v", got)
			}
			if n := looked.Load() - there; n > 100 {
				x.Errorf("entry %d was overlooked by %d looks", id, n)
			}
		}
	})
}

package page

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// asksForChanges matches the question that comes before a publishing transaction.
func asksForChanges(x *suite.Env, ev testdb.TapEvent) bool {
	return !x.Looks(ev) && strings.Contains(ev.SQL, "SELECT seq FROM (SELECT seq FROM ")
}

// published publishes in the background for as long as the test runs, and answers where it tells of
// what it has published.
func published(x *suite.Env, feeds []*rowfeed.Feed, events chan rowfeed.PublishEvent) {
	x.Helper()
	ctx, cancel := context.WithCancel(x.Ctx)
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
	x.Eventually("publishers sleep", func() bool { return x.Parked("watch.(*Watcher).Sleep(") == len(feeds) })
}

// TestPublishersSleep (M69): publishers and readers of a process that have nothing to do cost one statement at
// each look, however many they are, and a change wakes its feed's publisher.
func TestPublishersSleep(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var all, looked atomic.Int64
		events := make(chan rowfeed.PublishEvent, 100)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			all.Add(1)
			if x.Looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{PublisherLease: rowfeed.NoLease, IdlePoll: 5 * time.Millisecond, WatchPoll: 5 * time.Millisecond, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { events <- e },
			Trouble:   func(e rowfeed.TroubleEvent) { x.Errorf("%v", e.Err) },
		}})
		if err != nil {
			x.Fatal(err)
		}
		var feeds []*rowfeed.Feed
		for i := range 3 {
			name := fmt.Sprintf("kv%d", i)
			x.Exec("CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY)")
			f, err := rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name}, nil)
			if err != nil {
				x.Fatal(err)
			}
			x.Exec("INSERT INTO " + name + " VALUES (0)")
			x.Publish(f)
			<-events
			feeds = append(feeds, f)
		}
		asleep := time.Now()
		published(x, feeds, events)
		results := make(chan suite.Fetched, 1)
		crowd(x, x.Ctx, 1, feeds[:1], results)
		x.Eventually("publishers sleep", func() bool { return x.Parked("watch.(*Watcher).Sleep(") == len(feeds) })
		before, then, began := all.Load(), looked.Load(), time.Now()
		x.Eventually("it looks on", func() bool { return looked.Load() > then+100 })
		more := all.Load() - before - (looked.Load() - then)
		// Publishers ask now and then all the same: every ten seconds, and on a database that stamps commits more often.
		most := int64(1) + 2*int64(len(feeds))*int64(time.Since(asleep)/(10*time.Second))
		if x.Dialect.Stamp() != "" {
			most += int64(len(feeds)) * int64(time.Since(began)/(3*time.Second)+2)
		}
		if more > most {
			x.Errorf("%d statements beside %d looks; want at most %d", more, looked.Load()-then, most)
		}
		for i, f := range feeds {
			then := looked.Load()
			x.Exec(fmt.Sprintf("INSERT INTO %s VALUES (%d)", f.Name(), i+1))
			x.Eventually("it is published, or slept over", func() bool { return len(events) > 0 || looked.Load() > then+1000 })
			if len(events) == 0 {
				x.Fatalf("the change of %s was slept over by 1,000 looks", f.Name())
			}
			if e := <-events; e.Feed != f.Name() || e.Keys != 1 {
				x.Fatalf("published %+v, want the change of %s", e, f.Name())
			}
		}
		if got := <-results; got.Err != nil || len(got.Page.Entries) != 1 {
			x.Errorf("the reader was answered %+v", got)
		}
	})
}

// TestSleepRace (M69): a change that is committed between a publisher's question and its going to sleep
// is not slept over, although the look that saw the commit found nobody asleep yet.
func TestSleepRace(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		x.AddKV()
		x.Add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		var armed, freed, wentOn atomic.Bool
		var looked atomic.Int64
		var still sync.RWMutex // nobody looks
		g := suite.NewGate()
		events := make(chan rowfeed.PublishEvent, 100)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if x.Looks(ev) {
					looked.Add(1)
					still.RLock()
					defer still.RUnlock()
				} else if freed.Load() && strings.Contains(ev.SQL, "_kv") {
					wentOn.Store(true)
				}
				return nil
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if armed.Load() && asksForChanges(x, ev) && strings.Contains(ev.SQL, "_kv") {
					g.Pass()
				}
				return err
			},
		})
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{PublisherLease: rowfeed.NoLease, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { events <- e },
		}})
		if err != nil {
			x.Fatal(err)
		}
		kv, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		other, err := rf.Feed(x.Ctx, "other")
		if err != nil {
			x.Fatal(err)
		}
		published(x, []*rowfeed.Feed{kv, other}, events)
		armed.Store(true)
		kv.Wake() // it asks, and is held with the answer that there is nothing
		<-g.Reached
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		seen := looked.Load()
		x.Eventually("looks have seen the commit", func() bool { return looked.Load() > seen+2 })
		x.Eventually("the other publisher sleeps", func() bool { return x.Parked("watch.(*Watcher).Sleep(") == 1 })
		if x.Dialect.Stamp() != "" {
			still.Lock() // what has been seen is all there is to tell
			defer still.Unlock()
		}
		freed.Store(true)
		close(g.Open)
		x.Eventually("it goes on, or to sleep", func() bool { return wentOn.Load() || x.Parked("watch.(*Watcher).Sleep(") == 2 })
		if x.Dialect.Stamp() != "" && !wentOn.Load() { // it would ask again when it has slept for long
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
	suite.Each(t, func(x *suite.Env) {
		other := x.AddKV() // of another DB: as good as another process
		x.Fill(1)
		x.Publish(other)
		var began atomic.Int64
		g := suite.NewGate()
		f := x.Tapped(testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if x.Looks(ev) {
					began.Add(1)
				}
				return nil
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if suite.ReadsStandings(ev) {
					g.Pass()
				}
				return err
			},
		}, nil)
		result := waiter(x, f, "1")
		<-g.Reached
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(other)
		before := began.Load()
		close(g.Open)
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
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
	stampOf := func(x *suite.Env) (stamp string) {
		x.Helper()
		if err := x.DB.Admin().QueryRowContext(x.Ctx, x.Dialect.Stamp()).Scan(&stamp); err != nil {
			x.Fatal(err)
		}
		return stamp
	}
	suite.Each(t, func(x *suite.Env) {
		if x.Dialect.Stamp() == "" {
			if x.Family() == "postgres" {
				x.Error("no stamp")
			}
			return
		}
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY)")
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
		oldest, middle, newest := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
		for i, tx := range []*sql.Tx{oldest, middle, newest} {
			x.In(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d)", i))
		}
		x.Exec("INSERT INTO kv VALUES (10)")
		changed("a commit beside open transactions")
		x.Commit(middle)
		changed("the commit of the middle one")
		x.Commit(newest)
		changed("that of the newest one")
		x.Commit(oldest)
		changed("that of the oldest one")
	})
	suite.EachReplicated(t, func(x *suite.Replicated) {
		if x.Dialect.Stamp() == "" {
			return
		}
		if y, _ := x.On(rowfeed.Config{Replica: true}); stampOf(y) != "" {
			x.Error("a standby has a stamp, although it does not say which transactions are under way")
		}
	})
}

// TestLooksAtAReplica (M69): who waits at a server that has no stamp is told of what a look finds, and
// not of what an earlier one has found.
func TestLooksAtAReplica(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		x.InsertKV(1, 2)
		x.Publish(x.Feed)
		y, plain := x.On(rowfeed.Config{Replica: true})
		x.Reaches(plain, "1")
		var looked atomic.Int64
		pool := y.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Replica: true, WatchPoll: 5 * time.Millisecond})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for id := 2; id < 5; id++ {
			result := waiter(x.Env, f, rowfeed.Cursor(fmt.Sprint(id-1)))
			began := looked.Load()
			x.Eventually("it looks", func() bool { return looked.Load() > began+2 })
			x.InsertKV(id, id+1)
			x.Publish(x.Feed)
			x.Reaches(plain, rowfeed.Cursor(fmt.Sprint(id)))
			there := looked.Load()
			if got := <-result; got.Err != nil || len(got.Page.Entries) != 1 {
				x.Fatalf("%+v", got)
			}
			if n := looked.Load() - there; n > 100 {
				x.Errorf("entry %d was overlooked by %d looks", id, n)
			}
		}
	})
}

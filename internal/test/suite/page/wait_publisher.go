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

// asksForChanges matches the statement with which a publisher asks, before a transaction, whether there is a change.
func asksForChanges(x *suite.Env, ev testdb.TapEvent) bool {
	return !x.Looks(ev) && suite.AsksForFirst(ev, "seq")
}

// runPublishers runs a publisher of each feed until the test ends, and returns when all of them sleep. The feeds'
// Observer sends to events.
func runPublishers(x *suite.Env, feeds []*rowfeed.Feed, events chan rowfeed.PublishEvent) {
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
			case <-events: // a publisher that sends an event can then end
				continue
			default:
			}
			break
		}
		running.Wait()
	})
	x.Eventually("publishers sleep", func() bool { return x.Parked("watch.(*Watcher).sleep(") == len(feeds) })
}

// TestIdlePublishersShareOnePoll (M69): idle publishers and readers of a process cost one statement a poll, whatever
// their number. A change wakes the publisher of its feed.
func TestIdlePublishersShareOnePoll(t *testing.T) {
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
		const poll = 5 * time.Millisecond
		cfg := &rowfeed.Config{PublisherLease: rowfeed.NoLease, IdlePoll: poll, WatchPoll: poll,
			Observer: &rowfeed.Observer{
				Published: func(e rowfeed.PublishEvent) { events <- e },
				Trouble:   func(e rowfeed.TroubleEvent) { x.Errorf("a publisher reports: %v", e.Err) },
			}}
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, cfg)
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
		runPublishers(x, feeds, events)
		results := make(chan suite.Fetched, 1)
		crowd(x, x.Ctx, 1, feeds[:1], results)
		x.Eventually("publishers sleep", func() bool { return x.Parked("watch.(*Watcher).sleep(") == len(feeds) })
		before, then, began := all.Load(), looked.Load(), time.Now()
		x.Eventually("the watcher polls on", func() bool { return looked.Load() > then+100 })
		more := all.Load() - before - (looked.Load() - then)
		// Publishers also ask by themselves: every ten seconds, and more often on a database with commit stamps.
		most := int64(1) + 2*int64(len(feeds))*int64(time.Since(asleep)/(10*time.Second))
		if x.Dialect.Stamp != "" {
			most += int64(len(feeds)) * int64(time.Since(began)/(3*time.Second)+2)
		}
		if more > most {
			x.Errorf("%d statements besides %d polls, want at most %d", more, looked.Load()-then, most)
		}
		for i, f := range feeds {
			then := looked.Load()
			x.Exec(fmt.Sprintf("INSERT INTO %s VALUES (%d)", f.Name(), i+1))
			x.Eventually("the change is published, or the watcher has polled 1,000 times", func() bool {
				return len(events) > 0 || looked.Load() > then+1000
			})
			if len(events) == 0 {
				x.Fatalf("1,000 polls did not notice the change of %s", f.Name())
			}
			if e := <-events; e.Feed != f.Name() || e.Keys != 1 {
				x.Fatalf("published %+v, want the change of %s", e, f.Name())
			}
		}
		if got := <-results; got.Err != nil || len(got.Page.Entries) != 1 {
			x.Errorf("the reader got %+v", got)
		}
	})
}

// TestCommitBeforeSleepIsNoticed (M69): a change is committed after a publisher has found no change and before it
// sleeps. The publisher publishes the change, though the poll that saw the commit found no sleeping publisher.
func TestCommitBeforeSleepIsNoticed(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		x.AddKV()
		x.Add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		var armed, freed, continued atomic.Bool
		var looked atomic.Int64
		var still sync.RWMutex // its lock keeps the watcher from polling
		g := suite.NewGate()
		events := make(chan rowfeed.PublishEvent, 100)
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if x.Looks(ev) {
					looked.Add(1)
					still.RLock()
					defer still.RUnlock()
				} else if freed.Load() && strings.Contains(ev.SQL, "_kv") {
					continued.Store(true)
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
		observer := &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) { events <- e }}
		cfg := &rowfeed.Config{PublisherLease: rowfeed.NoLease, Observer: observer}
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, cfg)
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
		runPublishers(x, []*rowfeed.Feed{kv, other}, events)
		armed.Store(true)
		kv.Wake() // the publisher asks, and is held when it has found no change
		<-g.Reached
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		seen := looked.Load()
		x.Eventually("polls have seen the commit", func() bool { return looked.Load() > seen+2 })
		x.Eventually("the other publisher sleeps", func() bool { return x.Parked("watch.(*Watcher).sleep(") == 1 })
		if x.Dialect.Stamp != "" {
			still.Lock() // no further poll may wake the publisher
			defer still.Unlock()
		}
		freed.Store(true)
		close(g.Open)
		x.Eventually("the publisher continues, or sleeps", func() bool {
			return continued.Load() || x.Parked("watch.(*Watcher).sleep(") == 2
		})
		if x.Dialect.Stamp != "" && !continued.Load() { // it would ask again only after a long sleep
			x.Error("the publisher sleeps")
		}
		if e := <-events; e.Feed != "kv" || e.Keys != 1 {
			x.Fatalf("published %+v", e)
		}
	})
}

// TestCommitDuringPollIsNoticed (M69): a commit during a poll is seen by the next poll. It is not counted as seen by
// the poll that was in progress.
func TestCommitDuringPollIsNoticed(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		other := x.AddKV() // of another DB, as in another process
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
		// These are a poll for the stamp and one for watermarks. One more may have begun before the waiter returned.
		if n := began.Load() - before; n > 5 {
			x.Errorf("the commit was noticed after %d statements", n)
		}
	})
}

// TestStampChangesWithEveryCommit (M69): a database's commit stamp has a new value after every commit, also after that
// of a transaction that is neither the oldest nor the newest. A standby has no stamp, because its snapshots do not list
// the open transactions.
func TestStampChangesWithEveryCommit(t *testing.T) {
	testdb.Quick(t)
	stampOf := func(x *suite.Env) (stamp string) {
		x.Helper()
		if err := x.DB.Admin().QueryRowContext(x.Ctx, x.Dialect.Stamp).Scan(&stamp); err != nil {
			x.Fatal(err)
		}
		return stamp
	}
	suite.Each(t, func(x *suite.Env) {
		if x.Dialect.Stamp == "" {
			if x.Has.CommitStamps {
				x.Error("the dialect has no stamp")
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
		oldest, middle := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
		newest := x.Begin(sql.LevelReadCommitted)
		for i, tx := range []*sql.Tx{oldest, middle, newest} {
			x.In(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d)", i))
		}
		x.Exec("INSERT INTO kv VALUES (10)")
		changed("a commit while transactions are open")
		x.Commit(middle)
		changed("the commit of the middle transaction")
		x.Commit(newest)
		changed("the commit of the newest transaction")
		x.Commit(oldest)
		changed("the commit of the oldest transaction")
	})
	suite.EachReplicated(t, func(x *suite.Replicated) {
		if x.Dialect.Stamp == "" {
			return
		}
		if y, _ := x.On(rowfeed.Config{Replica: true}); stampOf(y) != "" {
			x.Error("a standby has a stamp")
		}
	})
}

// TestWaiterOnReplicaIsWoken (M69): a waiter on a replica, which has no commit stamp, gets each entry within a few
// polls of its arrival there.
func TestWaiterOnReplicaIsWoken(t *testing.T) {
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
			x.Eventually("the watcher polls", func() bool { return looked.Load() > began+2 })
			x.InsertKV(id, id+1)
			x.Publish(x.Feed)
			x.Reaches(plain, rowfeed.Cursor(fmt.Sprint(id)))
			there := looked.Load()
			if got := <-result; got.Err != nil || len(got.Page.Entries) != 1 {
				x.Fatalf("%+v", got)
			}
			if n := looked.Load() - there; n > 100 {
				x.Errorf("the waiter got entry %d after %d polls", id, n)
			}
		}
	})
}

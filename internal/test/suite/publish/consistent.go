package publish

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// consistent reads from a cursor to the head, beginning with a consistent page, and
// answers the latest entry of every key.
func consistent(x *suite.Env, f rowfeed.Source, after rowfeed.Cursor) (latest map[string]rowfeed.Entry, cursor rowfeed.Cursor) {
	x.Helper()
	latest = make(map[string]rowfeed.Entry)
	req := rowfeed.Request{After: after, Limit: 7, Consistent: true, Wait: time.Minute}
	for {
		page, err := f.Fetch(x.Ctx, req)
		if err != nil {
			x.Fatal(err)
		}
		for _, e := range page.Entries {
			latest[string(e.Key.AppendJSON(nil))] = e
		}
		req = rowfeed.Request{After: page.Cursor}
		if !page.More {
			return latest, page.Cursor
		}
	}
}

// TestConsistentBacklog (H14): with a backlog of many batches
// before it a write is shown all the same, to whoever asks for a consistent page and
// reads to the head; and with nothing waiting nothing is written.
func TestConsistentBacklog(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		passes := 0
		x.AddKV()
		f := x.Tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 10, Observer: &rowfeed.Observer{Published: func(rowfeed.PublishEvent) { passes++ }}})
		x.Fill(95)
		latest, cursor := consistent(x, f, "")
		if len(latest) != 95 || passes < 2 {
			x.Errorf("%d keys after %d passes, want 95 after several", len(latest), passes)
		}
		passes = 0
		consistent(x, f, cursor)
		if passes != 0 {
			x.Errorf("%d passes although nothing was waiting", passes)
		}
		x.Exec("UPDATE kv SET v = 8 WHERE id = 95", "DELETE FROM kv WHERE id = 94")
		latest, _ = consistent(x, f, cursor)
		if got := suite.Line(latest[`{"id":95}`]); got != suite.KV(95, "k", 8) || latest[`{"id":94}`].Op != rowfeed.Delete {
			x.Errorf("got %s and %s", got, suite.Line(latest[`{"id":94}`]))
		}
		x.WantSound(f)
	})
}

// TestConsistentAmongWriters (H14): while others change the same keys without
// pause, everyone sees what they themselves have committed, and the publishing before
// a page comes to an end. With capture "column" a row that is written again is out of
// the feed until it is published again; there the others change other keys.
func TestConsistentAmongWriters(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		others := 1
		if x.Capture == feedtype.CaptureColumn {
			others = 6
		}
		x.AddKV()
		x.Fill(10)
		x.Exec("ALTER TABLE kv ADD COLUMN noise BIGINT")
		// SQLite's one write lock may be the writers' for long.
		rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, testdb.Hooks{}, "_pragma=busy_timeout(60000)"), x.Dialect, &rowfeed.Config{BatchSize: 3})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		pool := patient(x)
		ctx, stop := context.WithCancel(x.Ctx)
		var writers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if _, err := pool.ExecContext(x.Ctx, x.SQL(fmt.Sprintf("UPDATE kv SET noise = %d WHERE id = %d", i, others+(i+w)%5))[0]); err != nil {
						x.Errorf("write: %v", err)
						return
					}
				}
			})
		}
		cursor := rowfeed.Cursor("")
		for i := range 25 {
			id := 1 + i%5
			if _, err := pool.ExecContext(x.Ctx, x.SQL(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", i, id))[0]); err != nil {
				x.Fatal(err)
			}
			var latest map[string]rowfeed.Entry
			latest, cursor = consistent(x, f, cursor)
			v, _ := latest[fmt.Sprintf(`{"id":%d}`, id)].Row.Get("v")
			if v != int64(i) {
				x.Errorf("wrote %d, read %v", i, v)
			}
		}
		stop()
		writers.Wait()
	})
}

// TestConsistentBesideAnOpenTransaction (H14): changes of a transaction that is open when the
// request arrives are neither seen nor waited for, also where they have the lower seqs
// and hold the same rows. On SQLite an open writer keeps the publisher out: then the
// request says so, unless there is nothing to publish; with capture "column" it says
// so while a row that it needs is held.
func TestConsistentBesideAnOpenTransaction(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := consistent(x, f, "")
		open := x.Begin(sql.LevelReadCommitted)
		x.In(open, "UPDATE kv SET v = 5 WHERE id = 1")
		if x.Family() == "sqlite" {
			consistent(x, f, cursor)
			x.Commit(open)
			return
		}
		x.Exec("UPDATE kv SET v = 6 WHERE id = 2") // behind the open one's seq
		if x.Capture == feedtype.CaptureColumn {
			latest, cursor := consistent(x, f, cursor)
			if len(latest) != 1 || suite.Line(latest[`{"id":2}`]) != suite.KV(2, "k", 6) {
				x.Errorf("got %v", latest)
			}
			x.Exec("UPDATE kv SET v = 8 WHERE id = 2")
			x.In(open, "UPDATE kv SET v = 7 WHERE id = 2")
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursor, Consistent: true, Wait: 100 * time.Millisecond})
			x.WantCode(err, rowfeed.NotConsistent)
			x.Commit(open)
			latest, _ = consistent(x, f, cursor)
			if len(latest) != 2 || suite.Line(latest[`{"id":2}`]) != suite.KV(2, "k", 7) {
				x.Errorf("got %v", latest)
			}
			return
		}
		x.In(open, "UPDATE kv SET v = 7 WHERE id = 2")
		latest, cursor := consistent(x, f, cursor)
		if len(latest) != 1 || suite.Line(latest[`{"id":2}`]) != suite.KV(2, "k", 6) {
			x.Errorf("got %v", latest)
		}
		x.Commit(open)
		latest, _ = consistent(x, f, cursor)
		if len(latest) != 2 || suite.Line(latest[`{"id":2}`]) != suite.KV(2, "k", 7) {
			x.Errorf("got %v", latest)
		}
	})
}

// TestNotConsistent (H14): when the publishing cannot be done in time the request is refused,
// with what to do; it is never answered with a page that is not what was asked for.
func TestNotConsistent(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(1)
		other := x.Begin(sql.LevelReadCommitted) // a publisher that stands still
		x.In(other, "UPDATE rowfeed_sequences SET version = version WHERE name = 'kv'")
		_, err := f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Wait: 50 * time.Millisecond})
		x.WantCode(err, rowfeed.NotConsistent)
		if e := err.Error(); !strings.Contains(e, "50ms") || !strings.Contains(e, "rowfeed status kv") {
			x.Errorf("it says: %v", err)
		}
		x.Commit(other)
		if latest, _ := consistent(x, f, ""); len(latest) != 1 {
			x.Errorf("got %v", latest)
		}
		replica := x.Tapped(testdb.Hooks{}, &rowfeed.Config{Replica: true})
		_, err = replica.Fetch(x.Ctx, rowfeed.Request{Consistent: true})
		x.WantCode(err, rowfeed.InvalidRequest)
		ctx, cancel := context.WithCancel(x.Ctx)
		cancel()
		if _, err := f.Fetch(ctx, rowfeed.Request{Consistent: true}); suite.IsCode(err, rowfeed.NotConsistent) || err == nil {
			x.Errorf("whoever goes away is told %v", err)
		}
	})
}

// TestConsistentTogether (H14): requests that arrive together share their publishing, but
// none has a part in what had begun before it asked: what it has just written is not
// in there.
func TestConsistentTogether(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		var catchUps atomic.Int64
		makePiecemeal(x)
		held := testdb.Hold(deletes) // the pass has read its changes
		if x.Family() == "sqlite" {  // and on SQLite it keeps writers out until it has committed
			held = testdb.Hold(func(ev testdb.TapEvent) bool { return strings.HasSuffix(ev.SQL, "ORDER BY seq DESC LIMIT 1") })
		}
		after := func(ctx context.Context, ev testdb.TapEvent, err error) error {
			if x.Family() == "sqlite" { // held behind the look at what is waiting
				_ = held.Before(ctx, ev)
			}
			return err
		}
		f := x.Tapped(testdb.Hooks{After: after, Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if strings.HasSuffix(ev.SQL, "ORDER BY seq DESC LIMIT 1") {
				catchUps.Add(1)
			}
			if x.Family() == "sqlite" {
				return nil
			}
			return held.Before(ctx, ev)
		}}, nil)
		first := make(chan error, 1)
		go func() {
			_, err := f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Wait: time.Minute})
			first <- err
		}()
		<-held.Reached
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		const n = 20
		pages := make(chan rowfeed.Page, n)
		for range n {
			go func() {
				page, err := f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Wait: time.Minute})
				if err != nil {
					x.Error(err)
				}
				pages <- page
			}()
		}
		x.Eventually("all have asked", func() bool { return x.Parked("store.(*Sharing[...]).Do(") == n+1 })
		held.Release()
		if err := <-first; err != nil {
			x.Error(err)
		}
		for range n {
			page := <-pages
			if !slices.ContainsFunc(page.Entries, func(e rowfeed.Entry) bool { return suite.Line(e) == suite.KV(2, "k", 0) }) {
				x.Errorf("a page up to %q lacks what was written before it was asked for", page.Cursor)
			}
		}
		if got := catchUps.Load(); got != 2 {
			x.Errorf("%d requests published %d times, want twice", n+1, got)
		}
	})
}

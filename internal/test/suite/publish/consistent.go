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

// consistent reads from a cursor to the head, beginning with a consistent page, and returns the latest entry of every
// key.
func consistent(x *suite.Env, f rowfeed.Source, after rowfeed.Cursor) (map[string]rowfeed.Entry, rowfeed.Cursor) {
	x.Helper()
	latest := make(map[string]rowfeed.Entry)
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

// TestConsistentPublishesBacklog (H14): a reader that asks for a consistent page and reads to the head gets every
// committed write, also behind a backlog of many batches. If there is no backlog, the request writes nothing.
func TestConsistentPublishesBacklog(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		passes := 0
		x.AddKV()
		f := x.Tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 10, Observer: &rowfeed.Observer{
			Published: func(rowfeed.PublishEvent) { passes++ },
		}})
		x.Fill(95)
		latest, cursor := consistent(x, f, "")
		if len(latest) != 95 || passes < 2 {
			x.Errorf("%d keys after %d passes, want 95 after several", len(latest), passes)
		}
		passes = 0
		consistent(x, f, cursor)
		if passes != 0 {
			x.Errorf("%d passes, though there was nothing to publish", passes)
		}
		x.Exec("UPDATE kv SET v = 8 WHERE id = 95", "DELETE FROM kv WHERE id = 94")
		latest, _ = consistent(x, f, cursor)
		updated, deleted := suite.Line(latest[`{"id":95}`]), latest[`{"id":94}`]
		if updated != suite.KV(95, "k", 8) || deleted.Op != rowfeed.Delete {
			x.Errorf("got %s and %s", updated, suite.Line(deleted))
		}
		x.WantSound(f)
	})
}

// TestConsistentShowsOwnWriteAmongWriters (H14): while other writers change the same keys without pause, a writer that
// asks for consistent pages sees each of its own commits, and the request ends. With capture "column" a row that is
// written again is out of the feed until it is published again, so there the others change other keys.
func TestConsistentShowsOwnWriteAmongWriters(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		others := 1 // the first id that other writers change
		if x.Capture == feedtype.CaptureColumn {
			others = 6
		}
		x.AddKV()
		x.Fill(10)
		x.Exec("ALTER TABLE kv ADD COLUMN noise BIGINT")
		reading := x.DB.OpenTapped(x.T, testdb.Hooks{}, x.Statements("publish.patient_parameters")...)
		rf, err := rowfeed.Open(x.Ctx, reading, x.Dialect, &rowfeed.Config{BatchSize: 3})
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
					update := fmt.Sprintf("UPDATE kv SET noise = %d WHERE id = %d", i, others+(i+w)%5)
					if _, err := pool.ExecContext(x.Ctx, x.SQL(update)[0]); err != nil {
						x.Errorf("write: %v", err)
						return
					}
				}
			})
		}
		cursor := rowfeed.Cursor("")
		for i := range 25 {
			id := 1 + i%5
			update := fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", i, id)
			if _, err := pool.ExecContext(x.Ctx, x.SQL(update)[0]); err != nil {
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

// TestConsistentIgnoresOpenTransaction (H14): a consistent request neither shows changes of an open transaction nor
// waits for them, even if they have lower seqs and lock the same rows. With one writer at a time, the request succeeds
// while there is nothing to publish. With capture "column" it is refused while a row that it must publish is locked.
func TestConsistentIgnoresOpenTransaction(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := consistent(x, f, "")
		open := x.Begin(sql.LevelReadCommitted)
		x.In(open, "UPDATE kv SET v = 5 WHERE id = 1")
		if x.Has.OneWriter {
			consistent(x, f, cursor)
			x.Commit(open)
			return
		}
		x.Exec("UPDATE kv SET v = 6 WHERE id = 2") // its seq is above that of the open transaction
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

// TestConsistentIsRefusedInTime (H14): a consistent request that cannot publish in time is refused, with the next step.
// It never gets a page that is not consistent.
func TestConsistentIsRefusedInTime(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(1)
		other := x.Begin(sql.LevelReadCommitted) // a publisher that makes no progress
		x.In(other, "UPDATE rowfeed_sequences SET version = version WHERE name = 'kv'")
		_, err := f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Wait: 50 * time.Millisecond})
		x.WantCode(err, rowfeed.NotConsistent)
		if e := err.Error(); !strings.Contains(e, "50ms") || !strings.Contains(e, "rowfeed status kv") {
			x.Errorf("the error is: %v", err)
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
		_, err = f.Fetch(ctx, rowfeed.Request{Consistent: true})
		if suite.IsCode(err, rowfeed.NotConsistent) || err == nil {
			x.Errorf("a request with a canceled context got %v", err)
		}
	})
}

// TestConsistentRequestsShareCatchUp (H14): consistent requests that arrive while another one publishes share one
// further run of passes. They do not use the run that had begun before them, because that lacks what they have just
// written.
func TestConsistentRequestsShareCatchUp(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		var catchUps atomic.Int64
		makePiecemeal(x)
		readsLast := func(ev testdb.TapEvent) bool { return strings.Contains(ev.SQL, "ORDER BY seq DESC ") }
		// The first request is held when its pass has read the changes. With one writer at a time that pass would lock
		// out the writer below, so there the request is held after it has read the last change.
		held := testdb.Hold(deletes)
		if x.Has.OneWriter {
			held = testdb.Hold(readsLast)
		}
		after := func(ctx context.Context, ev testdb.TapEvent, err error) error {
			if x.Has.OneWriter {
				_ = held.Before(ctx, ev)
			}
			return err
		}
		f := x.Tapped(testdb.Hooks{After: after, Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if readsLast(ev) {
				catchUps.Add(1)
			}
			if x.Has.OneWriter {
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
		x.Eventually("all requests wait", func() bool { return x.Parked("store.(*Sharing[...]).Do(") == n+1 })
		held.Release()
		if err := <-first; err != nil {
			x.Error(err)
		}
		for range n {
			page := <-pages
			written := func(e rowfeed.Entry) bool { return suite.Line(e) == suite.KV(2, "k", 0) }
			if !slices.ContainsFunc(page.Entries, written) {
				x.Errorf("a page up to %q lacks a row that was written before the request", page.Cursor)
			}
		}
		if got := catchUps.Load(); got != 2 {
			x.Errorf("%d requests published %d times, want 2", n+1, got)
		}
	})
}

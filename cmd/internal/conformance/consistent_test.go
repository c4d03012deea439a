package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// consistent reads from a cursor to the head, beginning with a consistent page, and
// answers the latest entry of every key.
func (x *env) consistent(f rowfeed.Source, after rowfeed.Cursor) (latest map[string]rowfeed.Entry, cursor rowfeed.Cursor) {
	x.Helper()
	latest = make(map[string]rowfeed.Entry)
	req := rowfeed.Request{After: after, Limit: 7, Consistent: true, Wait: time.Minute}
	for {
		page, err := f.Fetch(x.ctx, req)
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
	eachCapture(t, func(x *env) {
		passes := 0
		x.addKV()
		f := x.tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 10, Observer: &rowfeed.Observer{Published: func(rowfeed.PublishEvent) { passes++ }}})
		x.fill(95)
		latest, cursor := x.consistent(f, "")
		if len(latest) != 95 || passes < 2 {
			x.Errorf("%d keys after %d passes, want 95 after several", len(latest), passes)
		}
		passes = 0
		x.consistent(f, cursor)
		if passes != 0 {
			x.Errorf("%d passes although nothing was waiting", passes)
		}
		x.exec("UPDATE kv SET v = 8 WHERE id = 95", "DELETE FROM kv WHERE id = 94")
		latest, _ = x.consistent(f, cursor)
		if got := line(latest[`{"id":95}`]); got != kv(95, "k", 8) || latest[`{"id":94}`].Op != rowfeed.Delete {
			x.Errorf("got %s and %s", got, line(latest[`{"id":94}`]))
		}
		x.wantSound(f)
	})
}

// TestConsistentAmongWriters (H14): while others change the same keys without
// pause, everyone sees what they themselves have committed, and the publishing before
// a page comes to an end. With capture "column" a row that is written again is out of
// the feed until it is published again; there the others change other keys.
func TestConsistentAmongWriters(t *testing.T) {
	eachCapture(t, func(x *env) {
		others := 1
		if x.capture == feedtype.CaptureColumn {
			others = 6
		}
		x.addKV()
		x.fill(10)
		x.exec("ALTER TABLE kv ADD COLUMN noise BIGINT")
		// SQLite's one write lock may be the writers' for long.
		rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{}, "_pragma=busy_timeout(60000)"), x.dialect, &rowfeed.Config{BatchSize: 3})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		pool := x.patient()
		ctx, stop := context.WithCancel(x.ctx)
		var writers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if _, err := pool.ExecContext(x.ctx, x.sql(fmt.Sprintf("UPDATE kv SET noise = %d WHERE id = %d", i, others+(i+w)%5))[0]); err != nil {
						x.Errorf("write: %v", err)
						return
					}
				}
			})
		}
		cursor := rowfeed.Cursor("")
		for i := range 25 {
			id := 1 + i%5
			if _, err := pool.ExecContext(x.ctx, x.sql(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", i, id))[0]); err != nil {
				x.Fatal(err)
			}
			var latest map[string]rowfeed.Entry
			latest, cursor = x.consistent(f, cursor)
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
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(3)
		_, cursor := x.consistent(f, "")
		open := x.begin(sql.LevelReadCommitted)
		x.in(open, "UPDATE kv SET v = 5 WHERE id = 1")
		if x.family() == "sqlite" {
			x.consistent(f, cursor)
			x.commit(open)
			return
		}
		x.exec("UPDATE kv SET v = 6 WHERE id = 2") // behind the open one's seq
		if x.capture == feedtype.CaptureColumn {
			latest, cursor := x.consistent(f, cursor)
			if len(latest) != 1 || line(latest[`{"id":2}`]) != kv(2, "k", 6) {
				x.Errorf("got %v", latest)
			}
			x.exec("UPDATE kv SET v = 8 WHERE id = 2")
			x.in(open, "UPDATE kv SET v = 7 WHERE id = 2")
			_, err := f.Fetch(x.ctx, rowfeed.Request{After: cursor, Consistent: true, Wait: 100 * time.Millisecond})
			x.wantCode(err, rowfeed.NotConsistent)
			x.commit(open)
			latest, _ = x.consistent(f, cursor)
			if len(latest) != 2 || line(latest[`{"id":2}`]) != kv(2, "k", 7) {
				x.Errorf("got %v", latest)
			}
			return
		}
		x.in(open, "UPDATE kv SET v = 7 WHERE id = 2")
		latest, cursor := x.consistent(f, cursor)
		if len(latest) != 1 || line(latest[`{"id":2}`]) != kv(2, "k", 6) {
			x.Errorf("got %v", latest)
		}
		x.commit(open)
		latest, _ = x.consistent(f, cursor)
		if len(latest) != 2 || line(latest[`{"id":2}`]) != kv(2, "k", 7) {
			x.Errorf("got %v", latest)
		}
	})
}

// TestNotConsistent (H14): when the publishing cannot be done in time the request is refused,
// with what to do; it is never answered with a page that is not what was asked for.
func TestNotConsistent(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(1)
		other := x.begin(sql.LevelReadCommitted) // a publisher that stands still
		x.in(other, "UPDATE rowfeed_sequences SET version = version WHERE name = 'kv'")
		_, err := f.Fetch(x.ctx, rowfeed.Request{Consistent: true, Wait: 50 * time.Millisecond})
		x.wantCode(err, rowfeed.NotConsistent)
		if e := err.Error(); !strings.Contains(e, "50ms") || !strings.Contains(e, "rowfeed status kv") {
			x.Errorf("it says: %v", err)
		}
		x.commit(other)
		if latest, _ := x.consistent(f, ""); len(latest) != 1 {
			x.Errorf("got %v", latest)
		}
		replica := x.tapped(testdb.Hooks{}, &rowfeed.Config{Replica: true})
		_, err = replica.Fetch(x.ctx, rowfeed.Request{Consistent: true})
		x.wantCode(err, rowfeed.InvalidRequest)
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		if _, err := f.Fetch(ctx, rowfeed.Request{Consistent: true}); isCode(err, rowfeed.NotConsistent) || err == nil {
			x.Errorf("whoever goes away is told %v", err)
		}
	})
}

// TestConsistentTogether (H14): requests that arrive together share their publishing, but
// none has a part in what had begun before it asked: what it has just written is not
// in there.
func TestConsistentTogether(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		x.fill(1)
		var catchUps atomic.Int64
		x.piecemeal()
		held := testdb.Hold(deletes) // the pass has read its changes
		if x.family() == "sqlite" {  // and on SQLite it keeps writers out until it has committed
			held = testdb.Hold(func(ev testdb.TapEvent) bool { return strings.HasSuffix(ev.SQL, "ORDER BY seq DESC LIMIT 1") })
		}
		after := func(ctx context.Context, ev testdb.TapEvent, err error) error {
			if x.family() == "sqlite" { // held behind the look at what is waiting
				_ = held.Before(ctx, ev)
			}
			return err
		}
		f := x.tapped(testdb.Hooks{After: after, Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if strings.HasSuffix(ev.SQL, "ORDER BY seq DESC LIMIT 1") {
				catchUps.Add(1)
			}
			if x.family() == "sqlite" {
				return nil
			}
			return held.Before(ctx, ev)
		}}, nil)
		first := make(chan error, 1)
		go func() {
			_, err := f.Fetch(x.ctx, rowfeed.Request{Consistent: true, Wait: time.Minute})
			first <- err
		}()
		<-held.Reached
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)")
		const n = 20
		pages := make(chan rowfeed.Page, n)
		for range n {
			go func() {
				page, err := f.Fetch(x.ctx, rowfeed.Request{Consistent: true, Wait: time.Minute})
				if err != nil {
					x.Error(err)
				}
				pages <- page
			}()
		}
		x.eventually("all have asked", func() bool { return x.parked("store.(*Sharing[...]).Do(") == n+1 })
		held.Release()
		if err := <-first; err != nil {
			x.Error(err)
		}
		for range n {
			page := <-pages
			if !slices.ContainsFunc(page.Entries, func(e rowfeed.Entry) bool { return line(e) == kv(2, "k", 0) }) {
				x.Errorf("a page up to %q lacks what was written before it was asked for", page.Cursor)
			}
		}
		if got := catchUps.Load(); got != 2 {
			x.Errorf("%d requests published %d times, want twice", n+1, got)
		}
	})
}

// inside counts the goroutines that are in the function.
func (x *env) inside(function string) int { return strings.Count(stacks(), function) }

// parked counts the goroutines that a select of the function holds: they have done all
// that comes before it.
func (x *env) parked(function string) int {
	return len(regexp.MustCompile(`\[select[^\n]*\]:\n[^\n]*`+regexp.QuoteMeta(function)).FindAllStringIndex(stacks(), -1))
}

// stacks are those of all goroutines.
func stacks() string {
	text := make([]byte, 1<<20)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) {
			return string(text[:n])
		}
		text = make([]byte, 2*len(text))
	}
}

package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestBumpRefusesOldCursors (M74, H15): after a bump a feed refuses cursors of the old generation, with the next step.
// Its positions continue. A publisher that was opened before the bump publishes into the new generation.
func TestBumpRefusesOldCursors(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := x.Drain(f, "")
		other, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		last := f.Generation()
		for round, bump := range []func() int64{
			func() int64 {
				generation, err := f.Admin().Bump(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // possibly in the same second
				generation, err := f.Admin().Bump(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				return generation
			},
			func() int64 { // by the printed script
				steps, err := rowfeed.PrintBump(x.Dialect, nil, "kv", false)
				if err != nil {
					x.Fatal(err)
				}
				for _, s := range steps {
					if !strings.HasPrefix(s.SQL, "BEGIN") && s.SQL != "COMMIT" { // Admin is a pool
						x.Exec(s.SQL)
					}
				}
				return x.Scalar("SELECT generation FROM rowfeed_feeds")
			},
		} {
			generation := bump()
			if generation <= last || generation < 1_700_000_000 {
				x.Fatalf("round %d: generation %d after %d", round, generation, last)
			}
			last = generation
			for _, reader := range []*rowfeed.Feed{f, other} {
				_, err = reader.Fetch(x.Ctx, rowfeed.Request{After: cursor})
				x.WantCode(err, rowfeed.GenerationChanged)
				if !strings.Contains(err.Error(), `start again at the beginning (after="")`) {
					x.Errorf("no next step in %v", err)
				}
			}
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", 10+round))
			if n := x.Publish(other); n != 1 {
				x.Fatalf("round %d: %d keys published", round, n)
			}
			page := x.Fetch(f, rowfeed.Beginning, 0)
			if len(page.Entries) != 4+round || page.Entries[3+round].Position != fmt.Sprint(4+round) {
				x.Fatalf("round %d: %d entries", round, len(page.Entries))
			}
			cursor = page.Cursor
			if want := fmt.Sprintf("%d:%d", last, 4+round); string(cursor) != want {
				x.Fatalf("cursor %q, want %q", cursor, want)
			}
		}
		x.WantSound(f)
	})
}

// TestBumpWaitsForPass (M74): a bump waits until a publisher's pass has committed. The pass publishes into the old
// generation.
func TestBumpWaitsForPass(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		publisher := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		published := make(chan error, 1)
		go func() {
			_, err := publisher.Publish(x.Ctx)
			published <- err
		}()
		<-held.Reached
		bumped := make(chan error, 1)
		go func() {
			_, err := f.Admin().Bump(x.Ctx)
			bumped <- err
		}()
		if x.Has.ShowsLockWaits {
			x.Eventually("the bump waits", x.Waits)
		}
		held.Release()
		if err := errors.Join(<-published, <-bumped); err != nil {
			x.Fatal(err)
		}
		if page := x.Fetch(f, "", 0); len(page.Entries) != 1 || !strings.HasSuffix(string(page.Cursor), ":1") {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		if n := x.Publish(publisher); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.WantSound(f)
	})
}

// TestOtherDatabaseStopsPublisher (M74, H15): if the database's identity differs from the one in the feed's record, a
// publisher assigns no position and names the commands that help. It continues after one of them. A database without an
// identity has none in its records.
func TestOtherDatabaseStopsPublisher(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := x.Drain(f, "")
		identity := func() string {
			var id *string
			if err := x.DB.Admin().QueryRow("SELECT database_identity FROM rowfeed_feeds").Scan(&id); err != nil {
				x.Fatal(err)
			}
			if id == nil {
				return ""
			}
			return *id
		}
		if !x.Has.Identity {
			if id := identity(); id != "" {
				x.Errorf("identity %q", id)
			}
			if changed, err := f.Admin().AdoptDatabase(x.Ctx); err != nil || changed {
				x.Errorf("adopted: %v, %v", changed, err)
			}
			return
		}
		own := identity()
		if own == "" {
			x.Fatal("the feed's record has no identity")
		}
		move := func() { x.Exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'") }
		move()
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
		fresh, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for range 2 {
			_, err := fresh.Publish(x.Ctx)
			x.WantCode(err, rowfeed.DatabaseChanged)
			for _, want := range []string{
				own, "the one before", "`rowfeed feed bump kv`", "`rowfeed feed bump kv --adopt-database`",
			} {
				if !strings.Contains(err.Error(), want) {
					x.Errorf("%v does not name %s", err, want)
				}
			}
		}
		// Readers still get what is published.
		if page := x.Fetch(f, rowfeed.Beginning, 0); len(page.Entries) != 3 || page.Cursor != cursor {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}

		running := x.RunPublisher()
		x.Eventually("the publisher reports a problem", func() bool { return len(running.Feed.Problems()) > 0 })
		if p := running.Feed.Problems()[0]; !strings.Contains(p, "feed bump kv") {
			x.Errorf("problem %q", p)
		}
		x.Exec("DELETE FROM kv WHERE id = 4") // readers have never got it
		if changed, err := f.Admin().AdoptDatabase(x.Ctx); err != nil || !changed {
			x.Fatalf("adopted: %v, %v", changed, err)
		}
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.Eventually("the publisher continues", func() bool { return len(x.Fetch(f, cursor, 0).Entries) == 1 })
		x.Eventually("the publisher reports no problem", func() bool { return len(running.Feed.Problems()) == 0 })

		move()
		if _, err := f.Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if id := identity(); id != own {
			x.Errorf("identity %q after a bump", id)
		}
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: cursor})
		x.WantCode(err, rowfeed.GenerationChanged)
		running.Stop()

		// The record of a feed that a printed script has made has no identity: its publisher stores it.
		x.Exec("UPDATE rowfeed_feeds SET database_identity = NULL")
		running = x.RunPublisher()
		x.Eventually("the identity is stored", func() bool { return identity() == own })
	})
}

// TestReloadedDumpStopsPublisher (M74): on PostgreSQL a publisher notices that a dump was loaded into the database from
// which it came. The tables are new ones, though they have the same rows.
func TestReloadedDumpStopsPublisher(t *testing.T) {
	testdb.Postgres15.Require(t)
	x := suite.NewEnv(t, testdb.Postgres15, nil)
	x.Migrate()
	f := x.AddKV()
	x.Fill(2)
	x.Publish(f)
	x.Exec(x.Statements("page.reload_sequences")...)
	x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
	_, err := f.Publish(x.Ctx)
	x.WantCode(err, rowfeed.DatabaseChanged)
	if _, err := f.Admin().Bump(x.Ctx); err != nil {
		x.Fatal(err)
	}
	if n := x.Publish(f); n != 1 {
		x.Errorf("%d keys published", n)
	}
}

// TestPublisherSeesAdoption (M74): a publisher that was opened before its database was adopted publishes after the
// adoption.
func TestPublisherSeesAdoption(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("UPDATE rowfeed_feeds SET database_identity = 'the one before'")
		moved, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Admin().AdoptDatabase(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if n := x.Publish(moved); n != 1 {
			x.Errorf("%d keys published", n)
		}
	})
}

// reader is a consumer that keeps reading, as in another process. It records its entries and the last refusal.
type reader struct {
	mu      sync.Mutex
	cursor  rowfeed.Cursor
	lines   []string // "position key" of the entries
	refused error
}

func newReader(x *suite.Env) *reader {
	x.Helper()
	own := suite.OpenEnv(x.T, x.DB, nil)
	f, err := own.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	r := &reader{}
	ctx, cancel := context.WithCancel(x.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.step(ctx, f)
		}
	}()
	x.Cleanup(func() { cancel(); <-done })
	return r
}

// step reads a page.
func (r *reader) step(ctx context.Context, f *rowfeed.Feed) {
	r.mu.Lock()
	after := r.cursor
	r.mu.Unlock()
	page, err := f.Fetch(ctx, rowfeed.Request{After: after})
	r.mu.Lock()
	if err == nil {
		r.cursor = page.Cursor
		for _, e := range page.Entries {
			r.lines = append(r.lines, e.Position+" "+string(e.Key.AppendJSON(nil)))
		}
	} else if !errors.Is(err, rowfeed.Unavailable) {
		r.refused = err
	}
	r.mu.Unlock()
	suite.Rest(ctx, time.Millisecond)
}

// has returns a condition: the reader has so many entries.
func (r *reader) has(n int) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.lines) == n
	}
}

// refusal returns the last error that is not Unavailable.
func (r *reader) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// startOver forgets everything and starts at the beginning, as a consumer does that was refused.
func (r *reader) startOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cursor, r.lines, r.refused = rowfeed.Beginning, nil, nil
}

// TestRestoredBackupIsNoticed (M74, H15): an older backup is restored while a publisher and a consumer run. Only their
// memory shows that the database was set back. Both stop and report it, so no position is assigned twice. After a bump
// the consumer gets the rows of the restored database.
func TestRestoredBackupIsNoticed(t *testing.T) {
	restored := func(t *testing.T, e testdb.Engine, capture feedtype.Capture) {
		var x *suite.Env
		if e.HasServer() {
			x = suite.OpenEnv(t, e.Dedicated(t).NewDatabase(t), nil)
		} else {
			x = suite.NewEnv(t, e, nil)
		}
		x.Capture = capture
		x.Migrate()
		f := x.AddKV()
		publisher, consumer := x.RunPublisher(), newReader(x)
		x.Fill(3)
		x.Eventually("three entries", consumer.has(3))
		restore := x.DB.Backup(t)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.Eventually("six entries", consumer.has(6))
		restore()
		x.Eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		err := consumer.refusal()
		if !suite.IsCode(err, rowfeed.DatabaseChanged) || !strings.Contains(err.Error(), "`rowfeed feed bump kv`") {
			x.Errorf("refused with %v", err)
		}
		x.Exec("INSERT INTO kv VALUES (7, 'k', 0), (8, 'k', 0)") // these would get positions 4 and 5
		x.Eventually("the publisher reports the problem", func() bool {
			names := func(p string) bool { return strings.Contains(p, "feed bump kv") }
			return slices.ContainsFunc(publisher.Feed.Problems(), names)
		})
		if n := x.Scalar("SELECT value FROM rowfeed_sequences"); n != 3 {
			x.Errorf("the head is %d: positions were assigned twice", n)
		}
		// A new process notices it by the consumer's cursor.
		fresh, err := suite.OpenEnv(t, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = fresh.Fetch(x.Ctx, rowfeed.Request{After: consumer.cursor})
		x.WantCode(err, rowfeed.CursorAhead)

		x.Eventually("the feed is bumped", func() bool { // f's pool may have to reach the server again, too
			_, err := f.Admin().Bump(x.Ctx)
			return err == nil
		})
		x.Eventually("the consumer is refused because of the generation", func() bool {
			return suite.IsCode(consumer.refusal(), rowfeed.GenerationChanged)
		})
		if !consumer.has(6)() {
			x.Errorf("received %q", consumer.lines)
		}
		consumer.startOver()
		x.Eventually("five entries", consumer.has(5))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`, `4 {"id":7}`, `5 {"id":8}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		x.Eventually("the publisher reports no problem", func() bool { return len(publisher.Feed.Problems()) == 0 })
		x.WantSound(f)
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Run("trigger", func(t *testing.T) { restored(t, e, feedtype.CaptureTrigger) })
		if e != testdb.Postgres18 && e != testdb.MySQL { // their servers stop slowly
			t.Run("column", func(t *testing.T) { restored(t, e, feedtype.CaptureColumn) })
		}
	})
}

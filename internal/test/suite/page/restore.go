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
				x.RunScript(steps)
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
			if want := rowfeed.Cursor(fmt.Sprintf("%d:%d", last, 4+round)); suite.Place(cursor) != want {
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
		page := x.Fetch(f, "", 0)
		if len(page.Entries) != 1 || !strings.HasSuffix(string(suite.Place(page.Cursor)), ":1") {
			x.Errorf("%d entries, cursor %q", len(page.Entries), page.Cursor)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		if n := x.Publish(publisher); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.WantSound(f)
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

// TestRestoredBackupIsNoticed (M74, H15): an older backup is restored while a publisher and a consumer run, whose
// connections end. The publisher goes on. The consumer, which has seen what was lost, is refused until it starts over.
// Then it gets the rows of the restored database.
func TestRestoredBackupIsNoticed(t *testing.T) {
	onRestorableServer(t, func(x *suite.Env) {
		f := x.AddKV()
		publisher, consumer := x.RunPublisher(), newReader(x)
		x.Fill(3)
		x.Eventually("three entries", consumer.has(3))
		restore := x.DB.Backup(x.T)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.Eventually("six entries", consumer.has(6))
		restore()
		x.Eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		err := consumer.refusal()
		if !suite.IsCode(err, rowfeed.HistoryLost) || !strings.Contains(err.Error(), `start again at the beginning`) {
			x.Errorf("refused with %v", err)
		}
		x.Exec("INSERT INTO kv VALUES (7, 'k', 0), (8, 'k', 0), (9, 'k', 0), (10, 'k', 0)") // at positions 4 to 7
		headIs(x, 7)
		x.Eventually("the publisher reports no problem", func() bool { return len(publisher.Feed.Problems()) == 0 })
		wantHistoryLost(x, anotherProcess(x), consumer.cursor)
		if !consumer.has(6)() {
			x.Errorf("received %q", consumer.lines)
		}
		consumer.startOver()
		x.Eventually("seven entries", consumer.has(7))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`,
			`4 {"id":7}`, `5 {"id":8}`, `6 {"id":9}`, `7 {"id":10}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		x.Found(f)
		x.WantSound(f)
	})
}

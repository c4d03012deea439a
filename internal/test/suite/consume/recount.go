package consume

import (
	"context"
	"errors"
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

// recounts recognizes the statements that change a consumer's shard count.
func recounts(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Exec && ev.InTx && strings.Contains(ev.SQL, "rowfeed_cursors") &&
		strings.Contains(ev.SQL, "SET shard_count")
}

// recountHeld holds the first COMMIT after a change of the shard count.
func recountHeld() (*testdb.Held, testdb.Hooks) {
	var mu sync.Mutex
	recounting := map[int64]bool{}
	held := testdb.Hold(func(ev testdb.TapEvent) bool {
		mu.Lock()
		defer mu.Unlock()
		if recounts(ev) {
			recounting[ev.Conn] = true
		}
		return commits(ev) && recounting[ev.Conn]
	})
	return held, testdb.Hooks{Before: held.Before}
}

// partsOf returns, for each of dataShards data shards, which of n parts has it. It computes this by the definition, and
// not with the library.
func partsOf(dataShards, n int) (parts []int) {
	for i := range n {
		for range (i+1)*dataShards/n - i*dataShards/n {
			parts = append(parts, i)
		}
	}
	return parts
}

// TestNewShardsBeginAtLowestCursor (M22, H2): the shard count grows and shrinks under load, while the former instance
// still works and its shards are at different positions. Each entry comes once, and once more for each change that
// moved the cursor of its data shard back. A new shard begins at the lowest of the cursors that it overlaps, and no
// lower. Former instances end with a conflict.
func TestNewShardsBeginAtLowestCursor(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 24
		f, r := x.AddShards(dataShards), x.Receiver()
		load, loaded := make(chan struct{}), make(chan error, 1)
		stopLoad := sync.OnceFunc(func() { close(load) })
		x.Cleanup(stopLoad)
		var allowed atomic.Int64 // rows that the writer may have inserted; the test raises it
		go func() {              // rows are never changed, so positions stay
			for id := int64(1); ; id++ {
				for wait := true; wait; wait = id > allowed.Load() {
					select {
					case <-load:
						loaded <- nil
						return
					default:
						suite.Rest(x.Ctx, time.Millisecond)
					}
				}
				_, err := x.DB.Admin().ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
				if err == nil && id%3 == 0 {
					_, err = f.Publish(x.Ctx)
				}
				if err != nil {
					loaded <- err
					return
				}
			}
		}()
		start := func(rf *rowfeed.DB, count int) (cancel func(), ended chan error) {
			c := r.ShardsOf(f, rf, count)
			c.Options.Limit = 3
			ctx, cancel := context.WithCancel(x.Ctx)
			x.Cleanup(cancel)
			ended = make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			return cancel, ended
		}
		type setBack struct{ low, high int64 } // the positions that come again, for each data shard
		var changes [][]setBack
		_, ended := start(x.RF, 1)
		counts := []int{1, 4, 3, 8, 2, 1}
		var cancel func()
		for i, count := range counts[1:] {
			before := counts[i]
			allowed.Add(80)
			x.Eventually("every shard has come somewhere", func() bool {
				at, n := x.Positions("test")
				return n == before && slices.Min(at) > int64(20*i)
			})
			// One shard is behind the others.
			if before > 1 {
				if n, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(i%before)); n != 1 || err != nil {
					x.Fatal(n, err)
				}
				allowed.Add(80)
				x.Eventually("the others continue", func() bool {
					at, _ := x.Positions("test")
					return slices.Max(at) > at[i%before]+10
				})
			}
			allowed.Add(80) // rows are written and published while the count changes
			held, hooks := recountHeld()
			next, nextEnded := start(x.TappedDB(hooks, nil), count)
			<-held.Reached // from here on no other instance moves a cursor
			old, n := x.Positions("test")
			if n != before {
				x.Fatalf("the change can be seen before it is committed: %d shards", n)
			}
			was, is := partsOf(dataShards, before), partsOf(dataShards, count)
			change := make([]setBack, dataShards)
			for s := range change {
				change[s] = setBack{low: old[was[s]], high: old[was[s]]}
				for other := range dataShards {
					if is[other] == is[s] {
						change[s].low = min(change[s].low, old[was[other]])
					}
				}
			}
			changes = append(changes, change)
			held.Release()
			err := <-ended
			x.WantCode(err, rowfeed.Conflict)
			want := fmt.Sprintf("its cursors are of %d shards, and this instance is to work on %d", count, before)
			if !strings.Contains(err.Error(), want) {
				x.Errorf("the former instance does not say why it ends: %v", err)
			}
			if _, err := x.RF.Admin().ResumeConsumer(x.Ctx, suite.TestConsumer); err != nil {
				x.Fatal(err)
			}
			cancel, ended = next, nextEnded
		}
		stopLoad()
		if err := <-loaded; err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		x.Eventually("the head is reached", func() bool { at, _ := x.Positions("test"); return slices.Min(at) == head })
		cancel()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		times := map[string]int{}
		for _, l := range r.Applied() {
			times[strings.Fields(l)[0]]++
		}
		again := 0
		for _, e := range x.Fetch(f, "", feedtype.MaxLimit).Entries {
			want := 1
			for _, change := range changes {
				if p := suite.PositionOf(e); change[e.Shard].low < p && p <= change[e.Shard].high {
					want++
				}
			}
			if times[e.Position] != want {
				x.Errorf("position %s of data shard %d came %d times, want %d", e.Position, e.Shard, times[e.Position],
					want)
			}
			again += want - 1
		}
		if again == 0 {
			x.Error("no change has set a cursor back: nothing was shown")
		}
		x.Logf("%d entries, %d of them again", head, again)
	})
}

// gated is a source that keeps its pages until open is closed.
type gated struct {
	rowfeed.Source
	reached func()        // called when a page is requested
	open    chan struct{} // closed when pages may be answered
}

func (g *gated) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	g.reached()
	select {
	case <-g.open:
		return g.Source.Fetch(ctx, req)
	case <-ctx.Done():
		return rowfeed.Page{}, ctx.Err()
	}
}

// asked is a source that remembers the part of the last request.
type asked struct {
	rowfeed.Source
	mu   sync.Mutex
	part rowfeed.Shards
}

func (a *asked) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := a.Source.Fetch(ctx, req)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.part = req.Shards
	return page, err
}

func (a *asked) last() rowfeed.Shards {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.part
}

// TestLateWriteKeepsNewCursor (H2): a worker of shard 1 of 2 handles a page, and is held before each of its statements
// in turn, while the consumer gets 4 shards. Shard 1 of 4 is another part of the feed, so the late write must not move
// its cursor. A worker that is held before its COMMIT comes first, and the new cursors begin behind its page.
func TestLateWriteKeepsNewCursor(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 8
		f, r := x.AddShards(dataShards), x.Receiver()
		r.Once(r.ShardsOf(f, x.RF, 2))
		first := int64(1)
		for name, at := range map[string]func(testdb.TapEvent) bool{
			"BEGIN": begins, "the cursor": stores, "COMMIT": commits,
		} {
			if x.Has.OneWriter && name != "BEGIN" {
				continue // from BEGIN on the other instance waits
			}
			x.Exec("DELETE FROM applied", "DELETE FROM rowfeed_cursors")
			r.Once(r.ShardsOf(f, x.RF, 2))
			x.Exec("DELETE FROM applied")
			low, high := suite.IDsOf(first, 3, dataShards, 2, 4), suite.IDsOf(first, 3, dataShards, 4, 8)
			first = max(low[2], high[2]) + 1
			x.InsertIDs(append(low, high...)...)
			x.Publish(f)
			before, _ := x.Positions("test")
			head := before[0] + 6
			if _, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(0)); err != nil { // only shard 1 handles a page
				x.Fatal(err)
			}
			source := &asked{Source: f}
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return source.last() == rowfeed.Part(1, 2) && at(ev) })
			slow, slowEnded := &suite.Receiver{Env: x}, make(chan error, 1)
			go func() {
				slowEnded <- slow.ShardsOf(source, x.TappedDB(testdb.Hooks{Before: held.Before}, nil), 2).RunOnce(x.Ctx)
			}()
			<-held.Reached
			if _, err := x.RF.Admin().ResumeConsumer(x.Ctx, shardID(0)); err != nil {
				x.Fatal(err)
			}
			reached := make(chan struct{})
			gate := &gated{Source: f, reached: sync.OnceFunc(func() { close(reached) }), open: make(chan struct{})}
			quick, quickEnded := &suite.Receiver{Env: x}, make(chan error, 1)
			go func() { quickEnded <- quick.ShardsOf(gate, x.RF, 4).RunOnce(x.Ctx) }()
			want := []int64{before[0], before[0], before[0], before[0]}
			if name == "COMMIT" {
				x.Eventually("the change of shards waits for the page", x.Waits)
				want[2], want[3] = head, head
				held.Release()
				if err := <-slowEnded; err == nil {
					x.Errorf("%s: shard 0 of 2 continues among 4 shards", name)
				}
			}
			<-reached
			check := func(when string) {
				x.Helper()
				if got, _ := x.Positions("test"); !slices.Equal(got, want) {
					x.Fatalf("held before %s, %s: the cursors are at %v, want %v", name, when, got, want)
				}
			}
			check("shards changed")
			if name != "COMMIT" {
				held.Release()
				err := <-slowEnded
				x.WantCode(err, rowfeed.Conflict)
				if !strings.Contains(err.Error(), "shard 1 of 2") || len(takeHanded(slow)) != 3 ||
					len(r.Applied()) != 0 {
					x.Errorf("held before %s, the late write: %v; %q is applied", name, err, r.Applied())
				}
			}
			check("the page of before has come to its end")
			close(gate.open)
			if err := <-quickEnded; err != nil {
				x.Fatal(err)
			}
			if n := x.Scalar("SELECT count(DISTINCT id) FROM applied"); n != 6 || len(r.Applied()) != 6 {
				x.Errorf("held before %s: of 6 keys %d were applied: %q", name, n, r.Applied())
			}
		}
	})
}

// TestConcurrentShardCountChanges (M22, H2): two instances start at the same time with another shard count: one changes
// it, the other finds it changed. With two different counts, one ends with a conflict. All cursors are always of one
// count.
func TestConcurrentShardCountChanges(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 11)
		x.Publish(f)
		r.Once(r.Consumer(f, x.RF))
		x.InsertKV(11, 21)
		x.Publish(f)
		held, hooks := recountHeld()
		ended := make(chan error, 2)
		go func() { ended <- r.ShardsOf(f, x.TappedDB(hooks, nil), 4).RunOnce(x.Ctx) }()
		<-held.Reached
		var mu sync.Mutex
		changed := 0
		second := &suite.Receiver{Env: x}
		go func() {
			count := func(_ context.Context, ev testdb.TapEvent) error {
				mu.Lock()
				defer mu.Unlock()
				if recounts(ev) {
					changed++
				}
				return nil
			}
			ended <- second.ShardsOf(f, x.TappedDB(testdb.Hooks{Before: count}, nil), 4).RunOnce(x.Ctx)
		}()
		if x.Has.ShowsLockWaits {
			x.Eventually("the second instance waits", x.Waits)
		}
		held.Release()
		if err := errors.Join(<-ended, <-ended); err != nil {
			x.Fatal(err)
		}
		if changed != 0 {
			x.Errorf("the second one has changed %d cursors again", changed)
		}
		x.WantCursors("test", "0/4 20", "1/4 20", "2/4 20", "3/4 20")
		if n := x.Scalar("SELECT count(DISTINCT id) FROM applied"); n != 20 || len(r.Applied()) != 20 {
			x.Errorf("%d effects of %d keys, want 20 of 20", len(r.Applied()), n)
		}

		for round := range 6 {
			x.Exec("DELETE FROM applied")
			if round < 3 {
				x.Exec("DELETE FROM rowfeed_cursors") // a new consumer
			}
			counts := []int{2, 4 + round%2}
			for _, count := range counts {
				other := &suite.Receiver{Env: x}
				go func() { ended <- other.ShardsOf(f, x.RF, count).RunOnce(x.Ctx) }()
			}
			conflicts := 0
			for range counts {
				if err := <-ended; errors.Is(err, rowfeed.Conflict) {
					conflicts++
				} else if err != nil {
					x.Fatal(err)
				}
			}
			at, n := x.Positions("test")
			if conflicts == 2 || !slices.Contains(counts, n) || slices.Min(at) != 20 {
				x.Errorf("round %d: %d conflicts, %d shards at %v", round, conflicts, n, at)
			}
			if n := x.Scalar("SELECT count(DISTINCT id) FROM applied"); round < 3 && n != 20 {
				x.Errorf("round %d: %d keys of 20 were applied", round, n)
			}
		}
	})
}

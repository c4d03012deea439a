package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
)

// sinkFunc is a sink that consists of one function.
type sinkFunc func(batch []sink.Entry) []sink.Result

func (f sinkFunc) Deliver(_ context.Context, batch []sink.Entry) []sink.Result { return f(batch) }
func (sinkFunc) Close() error                                                  { return nil }

func positions(batch []sink.Entry) (all []string) {
	for _, e := range batch {
		all = append(all, e.Position)
	}
	return all
}

func newWindow(f sinkFunc) *window {
	return &window{relay: &Relay{Name: "test", Sink: f}, feed: "kv", epoch: 7, memory: &memory{}, quiet: &quiet{}}
}

func entries(all ...sink.Entry) (plain []rowfeed.Entry) {
	for _, e := range all {
		plain = append(plain, e.Entry)
	}
	return plain
}

var errOff = errors.New("switched off")

// TestRequestedPauseIsKept (S6): a receiver that asks for a pause gets it, and the consumer's function returns at least
// once a second meanwhile. The time is virtual.
func TestRequestedPauseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		started := time.Now()
		w := newWindow(func(batch []sink.Entry) []sink.Result {
			asked = append(asked, time.Since(started))
			if len(asked) == 1 {
				return []sink.Result{sink.Retry(90*time.Second, errOff), sink.Retry(20*time.Second, errOff)}
			}
			return sink.All(batch, sink.Accept())
		})
		page := entries(sinktest.Upsert(t, 1, 1, "a"), sinktest.Upsert(t, 2, 2, "b"))
		calls := 0
		for {
			calls++
			before := time.Now()
			refused, err := w.deliver(t.Context(), page)
			if took := time.Since(before); took > rest {
				t.Errorf("a call took %s", took)
			}
			if err == nil {
				if len(refused) > 0 {
					t.Errorf("refused: %v", refused)
				}
				break
			}
		}
		if !slices.Equal(asked, []time.Duration{0, 90 * time.Second}) {
			t.Errorf("the sink was asked after %v", asked)
		}
		if calls != 91 {
			t.Errorf("%d calls", calls)
		}
		// Cancelled during the pause.
		w.quiet.after(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.deliver(ctx, page); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestPauseAppliesToAllShards: if a receiver asks the worker of one shard for a pause, all workers pause.
func TestPauseAppliesToAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		started := time.Now()
		r := &Relay{Name: "test", ShardCount: 2, Sink: sinkFunc(func(batch []sink.Entry) []sink.Result {
			asked = append(asked, time.Since(started))
			if len(asked) == 1 {
				return []sink.Result{sink.Retry(time.Minute, errOff)}
			}
			return sink.All(batch, sink.Accept())
		})}
		c := r.consumer("kv", 0)
		first, second := c.DeliverShard(0, 3), c.DeliverShard(1, 5)
		if _, err := first(t.Context(), entries(sinktest.Upsert(t, 1, 1, "a"))); !errors.Is(err, errOff) {
			t.Errorf("the first: %v", err)
		}
		for {
			if _, err := second(t.Context(), entries(sinktest.Upsert(t, 2, 2, "b"))); err == nil {
				break
			}
		}
		if !slices.Equal(asked, []time.Duration{0, time.Minute}) {
			t.Errorf("the sink was asked after %v", asked)
		}
	})
}

// TestLaterVersionWaits (S6): if a key occurs twice, its second version waits until the first is decided, even while
// the first is retried and other entries are accepted.
func TestLaterVersionWaits(t *testing.T) {
	var handed [][]string
	answers := [][]sink.Result{
		{sink.Accept(), sink.Retry(0, errOff)},
		{sink.Accept()},
		{sink.Accept(), sink.Reject(errOff)},
		{sink.Accept()},
	}
	w := newWindow(func(batch []sink.Entry) []sink.Result {
		handed = append(handed, positions(batch))
		answer := answers[len(handed)-1]
		return answer
	})
	page := entries(sinktest.Upsert(t, 1, 1, "a"), sinktest.Upsert(t, 2, 2, "a"), sinktest.Upsert(t, 3, 2, "b"),
		sinktest.Upsert(t, 4, 3, "a"), sinktest.Delete(t, 5, 2))
	if _, err := w.deliver(t.Context(), page); !errors.Is(err, errOff) {
		t.Errorf("undecided: %v", err)
	}
	refused, err := w.deliver(t.Context(), page)
	if err != nil || len(refused) != 1 || refused[0].Entry != 3 || !errors.Is(refused[0].Err, errOff) {
		t.Errorf("refused: %v, %v", refused, err)
	}
	if want := "[[1 2] [2] [3 4] [5]]"; fmt.Sprint(handed) != want {
		t.Errorf("handed over %v, want %s", handed, want)
	}
}

// TestInvalidSinkResultsLoseNothing: a sink that violates its contract causes delays, but no loss.
func TestInvalidSinkResultsLoseNothing(t *testing.T) {
	page := entries(sinktest.Upsert(t, 1, 1, "a"))
	for name, results := range map[string][]sink.Result{
		"none": nil, "too many": {sink.Accept(), sink.Accept()}, "no reason": {{}},
		"rejected without a reason": {{State: sink.Rejected}},
	} {
		refused, err := newWindow(func([]sink.Entry) []sink.Result { return results }).deliver(t.Context(), page)
		if name == "rejected without a reason" {
			if err != nil || len(refused) != 1 || refused[0].Err == nil {
				t.Errorf("%s: %v, %v", name, refused, err)
			}
		} else if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestMemoryIsBounded: accepted entries are remembered for incomplete batches, and for the most recent complete ones. A
// relay of many shards does not keep a batch of each.
func TestMemoryIsBounded(t *testing.T) {
	sent := map[string]int{}
	refuse := true
	m := &memory{}
	all := make([]*window, 3*mostRemembered)
	page := entries(sinktest.Upsert(t, 1, 1, "a"), sinktest.Upsert(t, 2, 2, "b"))
	for i := range all {
		all[i] = newWindow(func(batch []sink.Entry) []sink.Result {
			results := sink.All(batch, sink.Accept())
			for n, e := range batch {
				if sent[fmt.Sprint(i, " ", e.Position)]++; refuse && i == 0 && e.Position == "2" {
					results[n] = sink.Reject(errOff)
				}
			}
			return results
		})
		all[i].memory = m
		if refused, err := all[i].deliver(t.Context(), page); err != nil || (len(refused) > 0) != (i == 0) {
			t.Fatal(refused, err)
		}
	}
	kept := 0
	for _, w := range all[1:] {
		if w.accepted != nil {
			kept++
		}
	}
	if kept != mostRemembered {
		t.Errorf("of %d batches that are through %d are remembered", len(all)-1, kept)
	}
	refuse = false
	last := len(all) - 1
	for _, i := range []int{0, last, last} { // a partly refused batch, and batches whose cursor was not stored
		if _, err := all[i].deliver(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	if sent["0 1"] != 1 || sent["0 2"] != 2 || sent[fmt.Sprint(last, " 1")] != 1 {
		t.Errorf("sent again: %d %d %d", sent["0 1"], sent["0 2"], sent[fmt.Sprint(last, " 1")])
	}
	if len(m.done) > mostRemembered {
		t.Errorf("%d are remembered", len(m.done))
	}
}

// Package sinktest is the suite that every sink passes. A sink's own test hands it a
// Receiver: how to open the sink on a receiver of its own, how to disturb that, and what
// it has received.
package sinktest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Receiver is a sink with an empty receiver.
type Receiver struct {
	Sink sink.Sink
	// Received returns what the receiver has, in the order of arrival. If the receiver stores only the latest version
	// of each key, it returns only those.
	Received func() []Delivery
	// Down makes the receiver unavailable. Up makes it available again, with what it had. After is the pause that it
	// asks for while it is down, or 0.
	Down, Up func()
	After    time.Duration
	// Refuse makes the receiver refuse the entries of one key. It is nil if the receiver cannot refuse entries.
	Refuse func(id int64)
	// Idempotent says that the receiver has an entry once, even if it was delivered twice.
	Idempotent bool
	// Large is the size in bytes of a value that arrives. TooLarge, unless 0, is the size of a value that the
	// receiver refuses.
	Large, TooLarge int
}

// Delivery is an entry that the receiver has.
type Delivery struct {
	ID  string // the idempotency key; empty if the receiver does not get it
	Key int64  // the column id
	V   string // the column v; empty for a delete
	Op  feedtype.Op
}

// Info describes the feed of the suite's entries: a table with the columns id and v.
var Info = feedtype.Info{
	Name: "kv", Generation: 1,
	Key: []feedtype.Column{{Name: "id", Type: "bigint", Kind: feedtype.Integer}},
	Columns: []feedtype.Column{{Name: "id", Type: "bigint", Kind: feedtype.Integer},
		{Name: "v", Type: "text", Kind: feedtype.Text}},
}

// Upsert returns an entry with a row.
func Upsert(t testing.TB, position, id int64, v string) sink.Entry {
	t.Helper()
	return entry(t, map[string]any{"position": fmt.Sprint(position), "shard": 0, "op": "upsert",
		"key": map[string]any{"id": id}, "row": map[string]any{"id": id, "v": v}})
}

// Delete returns an entry without a row.
func Delete(t testing.TB, position, id int64) sink.Entry {
	t.Helper()
	return entry(t,
		map[string]any{"position": fmt.Sprint(position), "shard": 0, "op": "delete", "key": map[string]any{"id": id}})
}

func entry(t testing.TB, wire map[string]any) sink.Entry {
	t.Helper()
	data, err := json.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	e, ok, err := feedtype.ParseEntry(data, 1, &Info)
	if err != nil || !ok {
		t.Fatalf("entry %s: %v, %v", data, ok, err)
	}
	return sink.Entry{Entry: e, Feed: "kv", Epoch: 7}
}

// Run runs the suite. open is called for each test.
func Run(t *testing.T, open func(t *testing.T) Receiver) {
	each := func(name string, test func(*suite)) {
		t.Run(name, func(t *testing.T) {
			s := &suite{T: t, Receiver: open(t)}
			t.Cleanup(func() { s.Sink.Close() })
			test(s)
		})
	}
	each("Accepts", (*suite).accepts)
	each("OrderPerKey", (*suite).orderPerKey)
	each("Deletes", (*suite).deletes)
	each("PartialFailure", (*suite).partialFailure)
	each("Down", (*suite).down)
	each("Redelivery", (*suite).redelivery)
	each("Large", (*suite).large)
	each("TooLarge", (*suite).tooLarge)
	each("Cancelled", (*suite).cancelled)
	each("Shards", (*suite).shards)
	each("Closed", (*suite).closed)
}

type suite struct {
	*testing.T
	Receiver
}

// deliver checks that there is a valid result for every entry.
func (s *suite) deliver(batch ...sink.Entry) []sink.Result {
	s.Helper()
	return s.deliverWithin(s.Context(), batch...)
}

func (s *suite) deliverWithin(ctx context.Context, batch ...sink.Entry) []sink.Result {
	s.Helper()
	results := s.Sink.Deliver(ctx, batch)
	if len(results) != len(batch) {
		s.Fatalf("%d results for %d entries", len(results), len(batch))
	}
	for i, r := range results {
		if (r.State == sink.Accepted) != (r.Err == nil) {
			s.Errorf("entry %d is %s with error %v", i, r.State, r.Err)
		}
	}
	return results
}

func (s *suite) wantAll(results []sink.Result, want sink.State) {
	s.Helper()
	for i, r := range results {
		if r.State != want {
			s.Fatalf("entry %d is %s (%v), want %s", i, r.State, r.Err, want)
		}
	}
}

// wantState checks the latest version of each key that was received.
func (s *suite) wantState(want map[int64]string) {
	s.Helper()
	got := map[int64]string{}
	for _, d := range s.Received() {
		if got[d.Key] = d.V; d.Op == feedtype.Delete {
			delete(got, d.Key)
		}
	}
	if !maps.Equal(got, want) {
		s.Errorf("the receiver has %v, want %v", short(got), short(want))
	}
}

func short(state map[int64]string) map[int64]string {
	state = maps.Clone(state)
	for id, v := range state {
		if len(v) > 40 {
			state[id] = fmt.Sprintf("%s… (%d bytes)", v[:20], len(v))
		}
	}
	return state
}

func (s *suite) accepts() {
	s.wantAll(s.deliver(), sink.Accepted) // an empty batch has no results
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, "b\nß"), Upsert(s, 3, 3, "")), sink.Accepted)
	s.wantState(map[int64]string{1: "a", 2: "b\nß", 3: ""})
	for _, d := range s.Received() {
		if d.ID != "" && d.ID != fmt.Sprintf("kv:1:0:%d", d.Key) {
			s.Errorf("entry of key %d has the idempotency key %q", d.Key, d.ID)
		}
	}
}

// orderPerKey: the versions of a key arrive in the order of their positions.
func (s *suite) orderPerKey() {
	const keys, versions = 40, 10
	want := map[int64]string{}
	for version := range int64(versions) {
		var batch []sink.Entry
		for id := range int64(keys) {
			want[id] = fmt.Sprint(version)
			batch = append(batch, Upsert(s, version*keys+id+1, id, want[id]))
		}
		s.wantAll(s.deliver(batch...), sink.Accepted)
	}
	s.wantState(want)
	seen := map[int64]string{}
	for _, d := range s.Received() {
		if d.V < seen[d.Key] {
			s.Fatalf("key %d: version %s after %s", d.Key, d.V, seen[d.Key])
		}
		seen[d.Key] = d.V
	}
}

func (s *suite) deletes() {
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, "b")), sink.Accepted)
	s.wantAll(s.deliver(Delete(s, 3, 1), Delete(s, 4, 99)), sink.Accepted) // the receiver never had key 99
	s.wantState(map[int64]string{2: "b"})
	s.wantAll(s.deliver(Upsert(s, 5, 1, "again")), sink.Accepted)
	s.wantState(map[int64]string{1: "again", 2: "b"})
}

// partialFailure: the refused entry is reported, and the others arrive.
func (s *suite) partialFailure() {
	if s.Refuse == nil {
		s.Skip("the receiver takes every entry")
	}
	s.Refuse(3)
	var batch []sink.Entry
	for id := range int64(5) {
		batch = append(batch, Upsert(s, id+1, id, "x"))
	}
	results := s.deliver(batch...)
	for i, r := range results {
		want := sink.Accepted
		if i == 3 {
			want = sink.Rejected
		}
		if r.State != want {
			s.Errorf("entry %d is %s (%v), want %s", i, r.State, r.Err, want)
		}
	}
	s.wantState(map[int64]string{0: "x", 1: "x", 2: "x", 4: "x"})
}

// down: while the receiver is unavailable, nothing is accepted or rejected. Afterwards deliveries work again. A pause
// that the receiver asks for is reported.
func (s *suite) down() {
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a")), sink.Accepted)
	s.Down()
	results := s.deliver(Upsert(s, 2, 1, "b"), Upsert(s, 3, 2, "b"))
	s.wantAll(results, sink.Undecided)
	for i, r := range results {
		if r.After != s.After {
			s.Errorf("entry %d is to rest for %s, want %s", i, r.After, s.After)
		}
	}
	s.Up()
	// A connection may need a moment, so retry.
	for results = s.deliver(Upsert(s, 2, 1, "b"), Upsert(s, 3, 2, "b")); results[0].State == sink.Undecided ||
		results[1].State == sink.Undecided; {
		results = s.deliver(Upsert(s, 2, 1, "b"), Upsert(s, 3, 2, "b"))
	}
	s.wantAll(results, sink.Accepted)
	s.wantState(map[int64]string{1: "b", 2: "b"})
}

// redelivery: an entry that was delivered before is accepted again.
func (s *suite) redelivery() {
	batch := []sink.Entry{Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, "b"), Delete(s, 3, 3)}
	for range 3 {
		s.wantAll(s.deliver(batch...), sink.Accepted)
	}
	s.wantState(map[int64]string{1: "a", 2: "b"})
	if !s.Idempotent {
		return
	}
	times := map[string]int{}
	for _, d := range s.Received() {
		if times[fmt.Sprint(d.ID, d.Key)]++; times[fmt.Sprint(d.ID, d.Key)] > 1 {
			s.Errorf("the receiver has entry %q of key %d more than once", d.ID, d.Key)
		}
	}
}

func (s *suite) large() {
	big := strings.Repeat("wide ", s.Large/5)
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, big), Upsert(s, 3, 3, "c")), sink.Accepted)
	s.wantState(map[int64]string{1: "a", 2: big, 3: "c"})
}

func (s *suite) tooLarge() {
	if s.TooLarge == 0 {
		s.Skip("the receiver names no limit")
	}
	results := s.deliver(Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, strings.Repeat("wide ", s.TooLarge/5)),
		Upsert(s, 3, 3, "c"))
	if got := states(results); !slices.Equal(got, []sink.State{sink.Accepted, sink.Rejected, sink.Accepted}) {
		s.Errorf("results: %v (%v)", got, results[1].Err)
	}
	s.wantState(map[int64]string{1: "a", 3: "c"})
}

func states(results []sink.Result) (all []sink.State) {
	for _, r := range results {
		all = append(all, r.State)
	}
	return all
}

// cancelled: a delivery whose context has ended leaves entries undecided, and the next delivery works.
func (s *suite) cancelled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	s.wantAll(s.deliverWithin(ctx, Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, "b")), sink.Undecided)
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a"), Upsert(s, 2, 2, "b")), sink.Accepted)
	s.wantState(map[int64]string{1: "a", 2: "b"})
}

// shards: a relay with several shards delivers them concurrently, each in its own order.
func (s *suite) shards() {
	const shards, keys, versions = 4, 10, 8
	want := map[int64]string{}
	for id := range int64(shards * keys) {
		want[id] = fmt.Sprint(versions - 1)
	}
	var working sync.WaitGroup
	for shard := range int64(shards) {
		working.Go(func() {
			for version := range int64(versions) {
				var batch []sink.Entry
				for id := shard * keys; id < (shard+1)*keys; id++ {
					e := Upsert(s, version*shards*keys+id+1, id, fmt.Sprint(version))
					e.Shard = int(shard)
					batch = append(batch, e)
				}
				for len(batch) > 0 { // a relay delivers undecided entries again
					results := s.Sink.Deliver(s.Context(), batch)
					if len(results) != len(batch) || s.Context().Err() != nil {
						s.Errorf("%d results for %d entries", len(results), len(batch))
						return
					}
					var rest []sink.Entry
					for i, r := range results {
						switch r.State {
						case sink.Undecided:
							rest = append(rest, batch[i])
						case sink.Rejected:
							s.Errorf("an entry of shard %d is rejected: %v", shard, r.Err)
						}
					}
					batch = rest
				}
			}
		})
	}
	working.Wait()
	s.wantState(want)
	seen := map[int64]string{}
	for _, d := range s.Received() {
		if d.V < seen[d.Key] {
			s.Fatalf("key %d: version %s after %s", d.Key, d.V, seen[d.Key])
		}
		seen[d.Key] = d.V
	}
}

func (s *suite) closed() {
	s.wantAll(s.deliver(Upsert(s, 1, 1, "a")), sink.Accepted)
	for range 2 {
		if err := s.Sink.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	}
	s.wantAll(s.deliver(Upsert(s, 2, 2, "b")), sink.Undecided)
	s.wantState(map[int64]string{1: "a"})
}

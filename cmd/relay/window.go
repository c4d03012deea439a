package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedtype"
)

// rest is the maximum time that a call of deliver waits when the receiver has asked for a pause. The consumer must
// read its cursor meanwhile, because an operator may have paused or moved it.
const rest = time.Second

// window is the batch that is being delivered. It remembers what the sink has accepted, so that an entry is not
// delivered again because another entry was not accepted.
type window struct {
	relay *Relay
	feed  string
	shard int
	epoch int64

	accepted map[string]bool // idempotency keys of entries of the last batch
	memory   *memory
	quiet    *quiet
}

// mostRemembered is the number of shards whose last batch is remembered after it was accepted completely.
const mostRemembered = 64

// memory limits what is remembered of completed batches, whose cursors may not have been stored yet. It keeps the
// most recent ones. The limit bounds the memory: a feed may have one shard for each of many customers.
type memory struct {
	mu   sync.Mutex
	done []*window // the most recent last
}

// recall returns what was accepted of the last batch of a window.
func (m *memory) recall(w *window) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = slices.DeleteFunc(m.done, func(other *window) bool { return other == w })
	return w.accepted
}

// remember stores what was accepted. done says that the whole batch was accepted.
func (m *memory) remember(w *window, accepted map[string]bool, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.accepted = accepted; !done {
		return
	}
	if m.done = append(m.done, w); len(m.done) > mostRemembered {
		m.done[0].accepted = nil
		m.done = slices.Delete(m.done, 0, 1)
	}
}

// quiet is the time until which the receiver asked this process to pause, for all shards.
type quiet struct {
	mu    sync.Mutex
	until time.Time
}

// deliver implements Deliver of rowfeed.Consumer: one attempt with the entries that are not accepted yet. It returns
// an error while any entry is undecided.
func (w *window) deliver(ctx context.Context, entries []rowfeed.Entry) (refused []rowfeed.Refusal, err error) {
	if err := w.quiet.wait(ctx); err != nil {
		return nil, err
	}
	all := sink.Of(w.feed, w.epoch, entries)
	before, accepted := w.memory.recall(w), make(map[string]bool, len(all))
	defer func() { w.memory.remember(w, accepted, err == nil && len(refused) == 0) }()
	var undecided error
	for _, part := range distinct(all) {
		var batch []sink.Entry
		var at []int
		for _, i := range part {
			if id := all[i].ID(); before[id] {
				accepted[id] = true
			} else {
				batch, at = append(batch, all[i]), append(at, i)
			}
		}
		if undecided != nil || len(batch) == 0 {
			continue // a later version of a key must not go first
		}
		results, err := w.attempt(ctx, batch)
		if err != nil {
			return nil, err
		}
		for n, r := range results {
			switch r.State {
			case sink.Accepted:
				accepted[batch[n].ID()] = true
			case sink.Rejected:
				refused = append(refused, rowfeed.Refusal{Entry: at[n], Err: r.Err})
			default:
				undecided = undecidedError(batch[n].ID(), r.Err)
				w.quiet.after(r.After)
			}
		}
	}
	if undecided != nil {
		return nil, undecided
	}
	return refused, nil
}

// undecidedError is the error of an entry that must be delivered again. A next step of the sink's error stays.
func undecidedError(id string, err error) error {
	if known := (*rowfeed.Error)(nil); errors.As(err, &known) && known.Next != "" {
		return fmt.Errorf("entry %s: %w", id, err)
	}
	return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "entry " + id, Cause: "the receiver did not accept it",
		Err: err, Next: "check that the receiver runs, can be reached, and accepts the relay's login"}
}

// attempt calls the sink once. It returns a result for every entry, and every entry that was not accepted has an
// error.
func (w *window) attempt(ctx context.Context, batch []sink.Entry) ([]sink.Result, error) {
	started := time.Now()
	ctx, end := feedtype.StartSpan(ctx, nil, feedtype.Span{Op: feedtype.SpanDeliver, Feed: w.feed,
		Consumer: w.relay.Name, Shard: w.shard, ShardCount: w.relay.ShardCount})
	results := w.relay.Sink.Deliver(ctx, batch)
	if len(results) != len(batch) {
		end(feedtype.SpanEnd{})
		return nil, fmt.Errorf("the sink returned %d results for %d entries", len(results), len(batch))
	}
	e := Event{Kind: Delivered, Relay: w.relay.Name, Feed: w.feed, Shard: w.shard, Epoch: w.epoch, Batch: len(batch),
		Took: time.Since(started)}
	for i := range results {
		r := &results[i]
		if r.State != sink.Accepted && r.Err == nil {
			r.Err = errors.New("the sink gave no reason why the entry was not accepted")
		}
		switch r.State {
		case sink.Accepted:
			e.Accepted++
		case sink.Rejected:
			e.Rejected++
			e.Err = r.Err
		default:
			e.Err = r.Err
		}
	}
	end(feedtype.SpanEnd{Entries: e.Accepted, Err: e.Err})
	w.relay.observe(e)
	return results, nil
}

// after stores that the receiver asked for a pause.
func (q *quiet) after(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if until := time.Now().Add(d); d > 0 && until.After(q.until) {
		q.until = until
	}
}

func (q *quiet) end() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.until
}

// wait waits until the pause of the receiver is over, or for at most rest; then it returns an error.
func (q *quiet) wait(ctx context.Context) error {
	until := q.end()
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(min(left, rest))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	}
	if left > rest {
		return fmt.Errorf("the receiver asks for no requests until %s", until.UTC().Format(time.RFC3339))
	}
	return nil
}

// distinct splits entries, as indexes, into consecutive parts in which each key occurs once. A page of a feed has
// each key once, but a page of another source may not.
func distinct(entries []sink.Entry) [][]int {
	parts, seen := [][]int{nil}, map[string]bool{}
	for i, e := range entries {
		key := string(e.Key.AppendJSON(nil))
		if seen[key] {
			parts, seen = append(parts, nil), map[string]bool{}
		}
		seen[key] = true
		parts[len(parts)-1] = append(parts[len(parts)-1], i)
	}
	return parts
}

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

// rest bounds how long a call of deliver waits because the receiver has asked for that:
// the consumer is to look at its cursor meanwhile, whether it was paused or moved.
const rest = time.Second

// window is the batch under way. What the sink has accepted of it is remembered, so that
// an entry is not delivered again because another one was not accepted.
type window struct {
	relay *Relay
	feed  string
	shard int
	epoch int64

	accepted map[string]bool // idempotency keys among the last batch's entries
	memory   *memory
	quiet    *quiet
}

// mostRemembered is of how many shards the last batch is remembered that was accepted as a whole.
const mostRemembered = 64

// memory bounds what is remembered of batches that nothing is wanted of any more, but that their
// cursors may not have been stored: of the last ones. There may be as many shards as customers.
type memory struct {
	mu   sync.Mutex
	done []*window // the latest last
}

// recall is what was accepted of a window's last batch.
func (m *memory) recall(w *window) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = slices.DeleteFunc(m.done, func(other *window) bool { return other == w })
	return w.accepted
}

// remember keeps what was accepted; done says that it is the whole batch.
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

// quiet is when the receiver wants to hear of this process again, whatever shard it has.
type quiet struct {
	mu    sync.Mutex
	until time.Time
}

// deliver is rowfeed.Consumer's Deliver: one attempt with those of the entries that are
// not accepted yet. It answers an error while any of them is undecided.
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
			continue // no later version of a key goes first
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
				undecided = fmt.Errorf("entry %s: %w", batch[n].ID(), r.Err)
				w.quiet.after(r.After)
			}
		}
	}
	if undecided != nil {
		return nil, undecided
	}
	return refused, nil
}

// attempt is one call of the sink, with a result for every entry and an error for every
// one that was not accepted.
func (w *window) attempt(ctx context.Context, batch []sink.Entry) ([]sink.Result, error) {
	started := time.Now()
	ctx, end := feedtype.StartSpan(ctx, nil, feedtype.Span{Op: feedtype.SpanDeliver, Feed: w.feed,
		Consumer: w.relay.Name, Shard: w.shard, ShardCount: w.relay.ShardCount})
	results := w.relay.Sink.Deliver(ctx, batch)
	if len(results) != len(batch) {
		end(feedtype.SpanEnd{})
		return nil, fmt.Errorf("the sink answered %d results for %d entries", len(results), len(batch))
	}
	e := Event{Kind: Delivered, Relay: w.relay.Name, Feed: w.feed, Shard: w.shard, Epoch: w.epoch, Batch: len(batch),
		Took: time.Since(started)}
	for i := range results {
		r := &results[i]
		if r.State != sink.Accepted && r.Err == nil {
			r.Err = errors.New("the sink does not say why it was not accepted")
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

// after notes that the receiver wants to be left alone.
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

// wait does so until the receiver wants to hear of us, or for a while; then it answers
// an error.
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
		return fmt.Errorf("the receiver asks to be left alone until %s", until.UTC().Format(time.RFC3339))
	}
	return nil
}

// distinct splits entries, by their indexes, into parts without a key twice, in order. A
// feed's page has each key once; that of another source may not.
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

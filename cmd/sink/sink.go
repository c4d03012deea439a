// Package sink is the seam between a relay and what it delivers to. A Sink takes a
// batch of entries and says of each what became of it; the relay keeps the order, tries
// again, sets aside, and remembers how far it has come.
package sink

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Entry is one key at its position, as a sink delivers it.
type Entry struct {
	feedtype.Entry
	// Feed is the name of the feed.
	Feed string
	// Epoch is the epoch of the lease under which the entry is delivered, or 0 without a lease. A relay that was
	// paused may deliver late. A receiver is safe from that if it stores the highest generation (Entry.Generation),
	// and the highest epoch of each data shard (Entry.Shard), and refuses lower ones.
	Epoch int64
}

// ID returns the idempotency key, see [rowfeed.Entry.ID].
func (e Entry) ID() string { return e.Entry.ID(e.Feed) }

// Sink delivers entries to a receiver. A relay delivers a later version of a key only after the earlier versions were
// decided. A relay with several shards calls Deliver concurrently: at most one call per shard, and never with the
// same key in two calls. The Sink itself enforces limits of the receiver, such as a rate.
type Sink interface {
	// Deliver delivers a batch, in which each key occurs once. It returns a result for each entry, at the same index,
	// once all results are known. Accepted means that the receiver has stored the entry. Deliver limits its own wait,
	// and ends when ctx does. An entry whose result is then unknown is Undecided.
	Deliver(ctx context.Context, batch []Entry) []Result
	// Close closes connections. It may be called twice. After it, Deliver accepts nothing.
	Close() error
}

// State is the result of delivering an entry.
type State int

const (
	// Undecided means that the receiver does not have the entry, or may not have it, and that the entry is not the
	// cause. It must be delivered again.
	Undecided State = iota
	// Accepted means that the receiver has the entry.
	Accepted
	// Rejected means that the receiver refuses the entry, and would refuse it again.
	Rejected
)

func (s State) String() string { return [...]string{"undecided", "accepted", "rejected"}[s] }

// Result is the result of one entry. The zero value is Undecided.
type Result struct {
	State State
	// After is the pause that the receiver has asked for before the entry is delivered again. 0 leaves it to the
	// relay.
	After time.Duration
	// Err is the reason why an entry was not accepted.
	Err error
}

// Accept returns the result of an accepted entry.
func Accept() Result { return Result{State: Accepted} }

// Reject returns the result of a rejected entry.
func Reject(err error) Result { return Result{State: Rejected, Err: err} }

// Retry returns the result of an entry that must be delivered again, after the given time at the earliest.
func Retry(after time.Duration, err error) Result { return Result{After: after, Err: err} }

// All returns the same result for every entry of a batch.
func All(batch []Entry, r Result) []Result {
	all := make([]Result, len(batch))
	for i := range all {
		all[i] = r
	}
	return all
}

// Of converts entries of a feed's page to entries for sinks.
func Of(feed string, epoch int64, entries []feedtype.Entry) []Entry {
	all := make([]Entry, len(entries))
	for i, e := range entries {
		all[i] = Entry{Entry: e, Feed: feed, Epoch: epoch}
	}
	return all
}

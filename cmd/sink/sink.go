// Package sink is the seam between a relay and what it delivers to. A Sink takes a
// batch of entries and says of each what became of it; the relay keeps the order, tries
// again, sets aside, and remembers how far it has come.
package sink

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Entry is one key at its position, on its way out.
type Entry struct {
	feedtype.Entry
	// Feed is its name.
	Feed string
	// Epoch is that of the lease under which the entry is delivered; 0 without one. A
	// relay that was paused may deliver late: a receiver that keeps the highest generation
	// (Entry.Generation), and the highest epoch of each data shard (Entry.Shard), and refuses
	// what is lower in either is safe from it.
	Epoch int64
}

// ID is the idempotency key, see [rowfeed.Entry.ID].
func (e Entry) ID() string { return e.Entry.ID(e.Feed) }

// Sink delivers entries to a receiver. A relay calls Deliver with later versions of a key
// only after the earlier ones were decided. One of several shards calls it for all that
// this process has at once: for each from one goroutine at a time, and no two of them
// ever deliver the same key. What is the receiver's, such as a rate, is the Sink's to
// bound.
type Sink interface {
	// Deliver hands a batch over, which holds no key twice, and answers a result for each
	// of its entries, at the same index. It returns when every result is known: what it
	// calls accepted the receiver has, and keeps. It bounds its own waiting, and gives up
	// when ctx ends; what it cannot tell then is Undecided.
	Deliver(ctx context.Context, batch []Entry) []Result
	// Close gives up connections. It may be called twice. Nothing is accepted after it.
	Close() error
}

// State is what became of an entry.
type State int

const (
	// Undecided is an entry that the receiver does not have, or may not have, through no
	// fault of the entry: it is to be delivered again.
	Undecided State = iota
	// Accepted is an entry that the receiver has.
	Accepted
	// Rejected is an entry that the receiver does not take, and would not the next time.
	Rejected
)

func (s State) String() string { return [...]string{"undecided", "accepted", "rejected"}[s] }

// Result is what became of one entry. The zero value is Undecided.
type Result struct {
	State State
	// After is how long an undecided entry should rest, as the receiver has asked; 0
	// leaves it to the relay.
	After time.Duration
	// Err says why an entry was not accepted.
	Err error
}

// Accept is the result of an entry that the receiver has.
func Accept() Result { return Result{State: Accepted} }

// Reject is the result of an entry that the receiver does not take.
func Reject(err error) Result { return Result{State: Rejected, Err: err} }

// Retry is the result of an entry that is to be delivered again, no sooner than after
// the given time.
func Retry(after time.Duration, err error) Result { return Result{After: after, Err: err} }

// All gives every entry of a batch the same result.
func All(batch []Entry, r Result) []Result {
	all := make([]Result, len(batch))
	for i := range all {
		all[i] = r
	}
	return all
}

// Of makes entries for sinks of those of a feed's page.
func Of(feed string, epoch int64, entries []feedtype.Entry) []Entry {
	all := make([]Entry, len(entries))
	for i, e := range entries {
		all[i] = Entry{Entry: e, Feed: feed, Epoch: epoch}
	}
	return all
}

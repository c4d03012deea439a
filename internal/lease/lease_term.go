package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Term is one holding of a Lease, from an acquire to its end. Two terms never share an
// owner, and a later one has a higher epoch; a term that has ended never comes back.
// It is safe for concurrent use.
type Term struct {
	lease *Lease
	owner string
	epoch int64

	ctx context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
}

func newTerm(l *Lease, owner string, epoch int64) *Term {
	t := &Term{lease: l, owner: owner, epoch: epoch}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

// begin starts the term's clock; asked is a moment before the database looked at its own.
func (t *Term) begin(asked time.Time) error {
	t.mu.Lock()
	t.timer = time.AfterFunc(t.lease.TTL, t.runOut)
	t.mu.Unlock()
	return t.extend(asked)
}

// extend sets the local deadline: a tenth of the ttl is left for clocks that run at
// different speeds and for the way between a look at the context and the deed.
func (t *Term) extend(asked time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadline = asked.Add(t.lease.TTL - t.lease.TTL/10)
	if t.ctx.Err() == nil && !time.Now().Before(t.deadline) {
		t.lose("the database answered too late")
	}
	if t.ctx.Err() != nil { // a term that has ended does not come back
		return context.Cause(t.ctx)
	}
	t.timer.Reset(time.Until(t.deadline))
	return nil
}

// runOut ends the term at its deadline.
func (t *Term) runOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(t.deadline); left > 0 { // it was renewed in this moment
		t.timer.Reset(left)
		return
	}
	t.lose("it was not renewed in time")
}

// lose ends the term, which nobody has released. One that is over stays so.
func (t *Term) lose(why string) *feedtype.Error {
	lost := t.lost(why)
	t.end(lost)
	if context.Cause(t.ctx) == error(lost) {
		t.lease.store.Observer.Term(feedtype.TermEvent{Lease: t.lease.Name, Epoch: t.epoch, Kind: feedtype.TermLost})
	}
	return lost
}

func (t *Term) lost(why string) *feedtype.Error {
	return &feedtype.Error{Code: feedtype.LeaseLost, Object: leaseObject(t.lease.Name),
		Cause: fmt.Sprintf("the term with epoch %d is over: %s", t.epoch, why),
		Next:  "stop what it guarded, roll back what is not committed, and acquire it again"}
}

// Epoch is the term's number: 1 at first, higher with every acquire.
func (t *Term) Epoch() int64 { return t.epoch }

// Owner is unlike that of any other term. It begins with the host and the process id.
func (t *Term) Owner() string { return t.owner }

// Deadline is when the term ends unless it is renewed before, on this process's
// monotonic clock and somewhat earlier than in the database.
func (t *Term) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline
}

// halfway is ctx until half of what is left of terms has passed, of the first that ends: a
// statement that hangs, on a connection that is dead, leaves time for another. Without terms
// it is ctx.
func halfway(ctx context.Context, terms ...*Term) (context.Context, context.CancelFunc) {
	if len(terms) == 0 {
		return ctx, func() {}
	}
	left := time.Until(terms[0].Deadline())
	for _, t := range terms[1:] {
		left = min(left, time.Until(t.Deadline()))
	}
	return context.WithTimeout(ctx, left/2)
}

// Context ends when the term does: at its deadline, when a renewal finds it lost, at
// its release. context.Cause then tells which, as an error with the code LeaseLost.
func (t *Term) Context() context.Context { return t.ctx }

// own is the condition that the row is this term's.
func (t *Term) own(b *dialect.Builder) string {
	return "name = " + b.Arg(t.lease.Name) + " AND owner = " + b.Arg(t.owner) + " AND epoch = " + b.Arg(t.epoch)
}

// anyOf is the condition that a row is one of the terms'. The list of names is for the
// database to find the rows by their key: of the other conditions alone PostgreSQL makes a
// scan of the table, or a bitmap, which the settings of these transactions price so high
// that it compiles each one.
func anyOf(b *dialect.Builder, terms []*Term) string {
	names, all := make([]string, len(terms)), make([]string, len(terms))
	for i, t := range terms {
		names[i] = b.Arg(t.lease.Name)
	}
	for i, t := range terms {
		all[i] = t.own(b)
	}
	return "name IN (" + strings.Join(names, ", ") + ") AND (" + strings.Join(all, " OR ") + ")"
}

// Renew moves the term's end to a full ttl from now. An error with the code LeaseLost
// says that the term is over; after any other the old deadline stands, and it may be
// tried again.
func (t *Term) Renew(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, t.Deadline())
	defer cancel()
	asked, n, err := t.lease.prolong(bounded, t)
	if err != nil {
		return t.lease.store.Fail(leaseObject(t.lease.Name), "renew it", err)
	}
	if n != 1 {
		t.lose("it has expired, or somebody else has acquired or released it")
		return context.Cause(t.ctx)
	}
	return t.extend(asked)
}

// Assert asks, inside the caller's transaction, whether the term still holds on the
// database's clock, and keeps its row locked until the transaction ends: whoever takes
// over waits for the COMMIT. An error with the code LeaseLost says that it does not
// hold; roll back. This is what fences effects in the leases' own database.
//
// Call it last, right before the COMMIT: renewals wait for the row as well. It is made
// for READ COMMITTED; at stricter levels it fails with a serialization failure when the
// term was renewed since the transaction began.
func (t *Term) Assert(ctx context.Context, tx dialect.Querier) error {
	b := dialect.NewBuilder(t.lease.store.Dialect)
	// A write that changes nothing anybody reads: SQLite has no other lock than that for
	// writing, and a plain read may be of an old snapshot.
	n, err := tx.Exec(ctx, "UPDATE "+t.lease.store.Table("leases")+" SET renewals = renewals + 1 WHERE "+t.own(b)+
		" AND expires_at > "+t.lease.store.Dialect.Now(), b.Args()...)
	if err != nil {
		return t.lease.store.Fail(leaseObject(t.lease.Name), "assert it", err)
	}
	if n != 1 {
		return t.lose("it has expired, or somebody else has acquired or released it")
	}
	return nil
}

// Release ends the term and lets the next holder in at its next look. The code
// LeaseLost says that it had ended before; nothing of another term is touched.
func (t *Term) Release(ctx context.Context) error {
	t.end(t.lost("it was released"))
	st, object := t.lease.store, leaseObject(t.lease.Name)
	n, err := freeLease(ctx, st, t.own)
	if err == nil && n == 1 {
		return nil
	}
	if err == nil {
		return t.lost("it had expired, or somebody else has acquired or released it")
	}
	// The COMMIT may have taken effect. Once more, then: it frees nothing of others.
	again, unknown := freeLease(ctx, st, t.own)
	if unknown == nil && again == 1 {
		return nil
	}
	if unknown == nil {
		if seen, failed := Look(ctx, st, st.On(), t.lease.Name); failed == nil && seen.Epoch == t.epoch &&
			seen.Owner == "" {
			return nil
		}
	}
	return st.Fail(object, "release it", err)
}

// letGo frees a lease as well as it can, also after ctx has ended: without it the next
// holder waits for the term's end.
func (t *Term) letGo(ctx context.Context) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), PartingTimeout)
	defer cancel()
	return t.Release(after)
}

// Hold runs fn under the term; see Lease.Hold.
func (t *Term) Hold(ctx context.Context, fn func(context.Context, *Term) error) (err error) {
	work, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(t.ctx, func() { stop(context.Cause(t.ctx)) })()
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		t.keep(work)
	}()
	defer func() { // also when fn panics
		stop(nil)
		<-renewing
		lost := t.ctx.Err() != nil
		released := t.letGo(ctx)
		switch {
		case lost && (err == nil || errors.Is(err, context.Canceled)):
			err = context.Cause(t.ctx)
		case err == nil && errors.Is(released, feedtype.LeaseLost):
			err = released
		}
	}()
	return fn(work, t)
}

// keep renews until ctx ends or the term does.
func (t *Term) keep(ctx context.Context) {
	failures := 0
	for {
		wait := t.lease.TTL / 3
		if failures > 0 {
			wait = min(store.Backoff(failures), wait)
		}
		if store.Pause(ctx, wait) != nil {
			return
		}
		bounded, cancel := halfway(ctx, t)
		err := t.Renew(bounded)
		cancel()
		if errors.Is(err, feedtype.LeaseLost) {
			return
		}
		failures++
		if err == nil {
			failures = 0
		}
	}
}

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

// lostToOthers is why a term no longer has its row.
const lostToOthers = "it expired, another holder acquired the lease, or an operator released it"

// Term is a holder's claim on a Lease, from its acquisition to its end. Two terms never share an owner, and a later
// term has a higher epoch. A term that has ended never holds again. It is safe for concurrent use.
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

// start starts the term's local clock. Asked is a moment before the database read its clock.
func (t *Term) start(asked time.Time) error {
	t.mu.Lock()
	t.timer = time.AfterFunc(t.lease.TTL, t.expire)
	t.mu.Unlock()
	return t.extend(asked)
}

// extend sets the local deadline. It leaves a tenth of the ttl for clocks of different speeds, and for the time between
// the holder's check of the context and its effect.
func (t *Term) extend(asked time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deadline = asked.Add(t.lease.TTL - t.lease.TTL/10)
	if t.ctx.Err() == nil && !time.Now().Before(t.deadline) {
		t.lose("the database answered too late")
	}
	if t.ctx.Err() != nil { // a term that has ended never holds again
		return context.Cause(t.ctx)
	}
	t.timer.Reset(time.Until(t.deadline))
	return nil
}

// expire ends the term at its deadline.
func (t *Term) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left := time.Until(t.deadline); left > 0 { // it was renewed meanwhile
		t.timer.Reset(left)
		return
	}
	t.lose("it was not renewed in time")
}

// lose ends a term that was not released. A term that is over stays over.
func (t *Term) lose(why string) *feedtype.Error {
	lost := t.lost(why)
	t.end(lost)
	if context.Cause(t.ctx) == error(lost) {
		t.lease.store.Observer.Term(feedtype.TermEvent{Lease: t.lease.Name, Epoch: t.epoch, Kind: feedtype.TermLost})
	}
	return lost
}

func (t *Term) lost(why string) *feedtype.Error {
	return &feedtype.Error{
		Code:   feedtype.LeaseLost,
		Object: leaseObject(t.lease.Name),
		Cause:  fmt.Sprintf("the term with epoch %d is over: %s", t.epoch, why),
		Next:   "stop the work that the lease guards, roll back its open transactions, and acquire the lease again",
	}
}

// Epoch is the term's number: 1 for the first term, higher for every later one.
func (t *Term) Epoch() int64 { return t.epoch }

// Owner is unique to the term. It begins with the host and the process id.
func (t *Term) Owner() string { return t.owner }

// Deadline is when the term ends unless it is renewed before, on this process's monotonic clock. It is a tenth of the
// ttl earlier than in the database.
func (t *Term) Deadline() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline
}

// halfway ends ctx when half of the time to the earliest deadline has passed. So a statement that hangs on a dead
// connection leaves time for another statement. Without terms it is ctx.
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

// Context ends with the term: at its deadline, when a renewal finds it lost, or at its release. context.Cause then
// answers the reason, an error with the code LeaseLost.
func (t *Term) Context() context.Context { return t.ctx }

// own is the condition that a row is this term's.
func (t *Term) own(b *dialect.Builder) string {
	return "name = " + b.Arg(t.lease.Name) + " AND owner = " + b.Arg(t.owner) + " AND epoch = " + b.Arg(t.epoch)
}

// anyOf is the condition that a row is one of the terms'. The list of names lets the database find the rows by their
// key. Without it PostgreSQL plans a scan or a bitmap, whose cost under these transactions' settings starts its JIT
// compiler.
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

// Renew moves the term's end to a full ttl from now. An error with the code LeaseLost means that the term is over.
// After any other error the old deadline stands, and Renew may be tried again.
func (t *Term) Renew(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, t.Deadline())
	defer cancel()
	asked, n, err := t.lease.renewTerms(bounded, t)
	if err != nil {
		return t.lease.store.Fail(leaseObject(t.lease.Name), "renew it", err)
	}
	if n != 1 {
		t.lose(lostToOthers)
		return context.Cause(t.ctx)
	}
	return t.extend(asked)
}

// Assert checks, inside the caller's transaction, that the term still holds on the database's clock. It keeps the
// term's row locked until the transaction ends, so the next holder waits for the COMMIT. If the error has the code
// LeaseLost the term does not hold, and the caller must roll back. Assert fences effects in the database that has the
// lease.
//
// Call it last, right before the COMMIT, since renewals wait for the row as well. It is made for READ COMMITTED. At
// stricter levels it fails with a serialization failure if the term was renewed since the transaction began.
func (t *Term) Assert(ctx context.Context, tx dialect.Querier) error {
	b := dialect.NewBuilder(t.lease.store.Dialect)
	// A write, because a plain read may see an old snapshot, and SQLite has no lock but that for writing.
	n, err := tx.Exec(ctx, "UPDATE "+t.lease.store.Table("leases")+" SET renewals = renewals + 1 WHERE "+t.own(b)+
		" AND expires_at > "+t.lease.store.Dialect.Now(), b.Args()...)
	if err != nil {
		return t.lease.store.Fail(leaseObject(t.lease.Name), "assert it", err)
	}
	if n != 1 {
		return t.lose(lostToOthers)
	}
	return nil
}

// Release ends the term, so that the next holder can acquire the lease. If the error has the code LeaseLost the term
// had ended before. Release never affects another term.
func (t *Term) Release(ctx context.Context) error {
	t.end(t.lost("it was released"))
	st, object := t.lease.store, leaseObject(t.lease.Name)
	n, err := releaseRow(ctx, st, t.own)
	if err == nil && n == 1 {
		return nil
	}
	if err == nil {
		return t.lost(lostToOthers)
	}
	// The COMMIT may have taken effect. A second try cannot release the term of another holder.
	again, unknown := releaseRow(ctx, st, t.own)
	if unknown == nil && again == 1 {
		return nil
	}
	if unknown == nil {
		seen, failed := Look(ctx, st, st.On(), t.lease.Name)
		if failed == nil && seen.Epoch == t.epoch && seen.Owner == "" {
			return nil
		}
	}
	return st.Fail(object, "release it", err)
}

// releaseLeftover tries to release the term, also after ctx has ended. If it fails the next holder waits for the term's
// end.
func (t *Term) releaseLeftover(ctx context.Context) error {
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
		t.renewInBackground(work)
	}()
	defer func() { // also when fn panics
		stop(nil)
		<-renewing
		lost := t.ctx.Err() != nil
		released := t.releaseLeftover(ctx)
		switch {
		case lost && (err == nil || errors.Is(err, context.Canceled)):
			err = context.Cause(t.ctx)
		case err == nil && errors.Is(released, feedtype.LeaseLost):
			err = released
		}
	}()
	return fn(work, t)
}

// renewInBackground renews the term until ctx or the term ends.
func (t *Term) renewInBackground(ctx context.Context) {
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

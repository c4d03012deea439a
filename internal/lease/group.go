package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Group shares a number of jobs among its members, in any number of processes. A member is a call of Run. Each job has
// a lease of its own, and a single member does it at a time. Within three times the ttl of any change the numbers of
// jobs of two members differ by at most one. If there are more members than jobs, some stand by.
//
// A job is guarded as any work under a lease is; see Lease and Job.Claim.
type Group struct {
	store *store.Store
	name  string
	jobs  int
	ttl   time.Duration
	// Above, if set, is Lease.Above of a job.
	Above func(ctx context.Context, job int) (int64, error)
}

const (
	// MaxGroupName leaves room for "/65536/seat/65535" in the name of a lease.
	MaxGroupName = 83
	// maxTakenAtOnce is the maximum number of jobs that a member acquires between two reads of the group.
	maxTakenAtOnce = 4
)

// NewGroup makes a group without asking the database. The names of its leases begin with name, 1 to 83 printable ASCII
// characters without blanks, and the number of jobs. So groups of different numbers share no lease. A killed member is
// replaced at most ttl later.
func NewGroup(st *store.Store, name string, jobs int, ttl time.Duration) *Group {
	return &Group{store: st, name: name, jobs: jobs, ttl: ttl}
}

// Job is a group's job that this member has.
type Job struct {
	number   int
	claim    *Claim
	handOver chan struct{}
	asked    time.Time // when it was asked to hand over; zero while it was not
}

// Number is the number of the job, at least 0 and less than the number of jobs.
func (j *Job) Number() int { return j.number }

// Claim is the claim of the job's lease.
func (j *Job) Claim() *Claim { return j.claim }

// HandOver is closed when another member is to have the job. The work then completes what it has begun and returns.
// Until it returns the job stays with this member.
func (j *Job) HandOver() <-chan struct{} { return j.handOver }

func (j *Job) handsOver() bool { return !j.asked.IsZero() }

// JobLease is the name of the lease of a job of a group.
func JobLease(group string, jobs, job int) string {
	return fmt.Sprintf("%s%d", GroupPrefix(group, jobs), job)
}

// GroupPrefix begins the names of a group's leases.
func GroupPrefix(group string, jobs int) string { return fmt.Sprintf("%s/%d/", group, jobs) }

func seatLease(group string, jobs, seat int) string {
	return fmt.Sprintf("%sseat/%d", GroupPrefix(group, jobs), seat)
}

func groupObject(name string) string { return fmt.Sprintf("group %q", name) }

func (g *Group) validate() error {
	switch {
	case !leaseNamePattern.MatchString(g.name) || len(g.name) > MaxGroupName:
		return feedtype.Invalid("group",
			"%q is not a valid name: it needs 1 to %d printable ASCII characters without blanks",
			g.name, MaxGroupName)
	case g.jobs < 1 || g.jobs > feedtype.MaxDataShards:
		return feedtype.Invalid("jobs", "%d must be from 1 to %d", g.jobs, feedtype.MaxDataShards)
	}
	return New(g.store, g.name, g.ttl).validate()
}

// Run does this member's share of the jobs, each in a goroutine of its own, until ctx ends. It then returns nil. The
// function do does a job until its context ends or Job.HandOver is closed. The context ends with ctx or with the job's
// claim. If do returns earlier the job is done again, by this member or another one. If do fails Run returns its error,
// unless the claim was lost. Run survives an outage of the database, during which its claims end. It returns when every
// do has returned.
func (g *Group) Run(ctx context.Context, do func(ctx context.Context, j *Job) error) error {
	if err := g.validate(); err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	m := &member{g: g, ctx: inner, do: do, instance: newOwner(), jobs: map[int]*Job{}, ended: make(chan endedJob)}
	err := m.run()
	stop()
	m.leave()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// member is a Run of a group.
type member struct {
	g        *Group
	ctx      context.Context
	do       func(context.Context, *Job) error
	instance string // the beginning of the owners of all its claims

	seat  *Claim       // nil while the member stands by
	jobs  map[int]*Job // the jobs whose do has not returned, also if their claim is over
	ended chan endedJob

	failures   int  // failed beats in a row
	shortBeats int  // beats in a row that left the member with less than its share
	known      bool // rowfeed's tables are known to have this version
	standsBy   bool // the Observer knows that the member has no seat
}

// endedJob is a job whose do has returned.
type endedJob struct {
	job  *Job
	err  error
	lost bool
}

func (m *member) run() error {
	for {
		wait, err := m.beat()
		if err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		for waiting := true; waiting; {
			select {
			case <-m.ctx.Done():
				timer.Stop()
				return nil
			case e := <-m.ended:
				if err := m.end(e); err != nil {
					timer.Stop()
					return err
				}
			case <-timer.C:
				waiting = false
			}
		}
	}
}

// end removes a job that this member no longer does.
func (m *member) end(e endedJob) error {
	delete(m.jobs, e.job.number)
	event := m.event(e.job, feedtype.JobEnded)
	switch {
	case e.lost || errors.Is(e.err, feedtype.LeaseLost):
		event.Kind = feedtype.JobLost
	case e.err != nil && m.ctx.Err() == nil:
		m.g.store.Observer.Job(event)
		return e.err
	case e.job.handsOver():
		event.Kind = feedtype.JobHandedOver
	}
	m.g.store.Observer.Job(event)
	return nil
}

// event is what the Observer is told of a job.
func (m *member) event(j *Job, kind feedtype.JobEventKind) feedtype.JobEvent {
	return feedtype.JobEvent{Group: m.g.name, Jobs: m.g.jobs, Job: j.number, Owner: j.claim.owner, Epoch: j.claim.epoch,
		Kind: kind}
}

// leave releases everything, so that other members need not wait for the end of a claim. The seat comes first, since a
// job may take its time to return.
func (m *member) leave() {
	if m.seat != nil {
		_ = m.seat.releaseLeftover(m.ctx)
	}
	for len(m.jobs) > 0 {
		_ = m.end(<-m.ended)
	}
}

// start does a job in the background, and releases it when do has returned.
func (m *member) start(number int, c *Claim) {
	j := &Job{number: number, claim: c, handOver: make(chan struct{})}
	m.jobs[number] = j
	m.g.store.Observer.Job(m.event(j, feedtype.JobBegun))
	work, stop := context.WithCancelCause(m.ctx)
	detach := context.AfterFunc(c.ctx, func() { stop(context.Cause(c.ctx)) })
	go func() {
		err := m.do(work, j)
		detach()
		stop(nil)
		e := endedJob{job: j, err: err, lost: c.ctx.Err() != nil}
		_ = c.releaseLeftover(m.ctx)
		m.ended <- e
	}()
}

// beat renews the member's claims, reads the group's leases, and corrects the member's share. It returns the time until
// the next beat. Between two beats the member sends no statement.
func (m *member) beat() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.g.ttl)
	defer cancel()
	short, err := m.balance(ctx)
	if m.ctx.Err() != nil {
		return 0, nil
	}
	if err != nil {
		err = m.g.store.Fail(groupObject(m.g.name), "renew its leases and read the group", err)
		for _, fatal := range []feedtype.Code{
			feedtype.NotInitialized, feedtype.SchemaVersion, feedtype.Refused, feedtype.InvalidRequest,
		} {
			if errors.Is(err, fatal) {
				return 0, err
			}
		}
		m.failures++
		m.g.store.Observer.Trouble(feedtype.TroubleEvent{Err: err})
		return store.Jitter(min(store.Outage(m.failures), m.g.ttl/4)), nil
	}
	m.failures = 0
	// The wait is somewhat less than a third of the ttl, so that two beats in a row may fail. halfway ends a beat that
	// hangs.
	wait := m.g.ttl/4 + store.Jitter(m.g.ttl/24)
	if !short {
		m.shortBeats = 0
		return wait, nil
	}
	// Other members are about to hand over jobs. Their work may take its time, so the member asks less and less often.
	m.shortBeats++
	return min(wait, store.Jitter(m.g.ttl/24<<min(m.shortBeats-1, 8))), nil
}

// balance is a beat's work. Short means that the member has less than its share.
func (m *member) balance(ctx context.Context) (short bool, err error) {
	if !m.known {
		if err := m.g.store.RequireSchema(ctx, m.g.store.On()); err != nil {
			return false, err
		}
		m.known = true
	}
	unconfirmed, err := m.renew(ctx)
	if err != nil {
		return false, err
	}
	// Acquiring jobs ends before a claim comes near its end.
	for until := time.Now().Add(m.g.ttl / 8); ; {
		bounded, cancel := halfway(ctx, m.claims()...)
		all, err := m.g.Read(bounded)
		cancel()
		if err != nil {
			return false, err
		}
		all.confirm(unconfirmed)
		unconfirmed = nil
		if m.seat == nil || m.seat.ctx.Err() != nil {
			seated, err := m.takeSeat(ctx, all)
			if err != nil || !seated {
				return false, err // a member that stands by has no share
			}
			continue
		}
		took, missing, err := m.rebalance(ctx, all)
		if err != nil {
			return false, err
		}
		if took > 0 {
			m.shortBeats = 0
		}
		if missing <= 0 || took == 0 || time.Now().After(until) {
			return missing > 0, nil
		}
	}
}

// renew renews all claims, up to 100 in a statement. If a statement affects fewer rows than it has claims, some of
// these are lost or were just released. It returns such claims as unconfirmed.
func (m *member) renew(ctx context.Context) (unconfirmed []*Claim, err error) {
	const most = 100 // each has four parameters
	for some := range slices.Chunk(m.claims(), most) {
		bounded, cancel := halfway(ctx, some...)
		asked, n, err := New(m.g.store, m.g.name, m.g.ttl).renewClaims(bounded, some...)
		cancel()
		if err != nil {
			return nil, err
		}
		if n == int64(len(some)) {
			for _, c := range some {
				_ = c.extend(asked)
			}
		} else {
			unconfirmed = append(unconfirmed, some...)
		}
	}
	return unconfirmed, nil
}

// claims are the claims that hold, as far as the member knows.
func (m *member) claims() (claims []*Claim) {
	if m.seat != nil && m.seat.ctx.Err() == nil {
		claims = append(claims, m.seat)
	}
	for _, number := range slices.Sorted(maps.Keys(m.jobs)) {
		if c := m.jobs[number].claim; c.ctx.Err() == nil {
			claims = append(claims, c)
		}
	}
	return claims
}

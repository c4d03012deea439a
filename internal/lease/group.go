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

// Group shares a number of jobs among all who run it, in any number of processes: each
// job is done by one of them at a time, under a lease of its own, and the numbers of jobs
// of any two differ by one at most within three terms of whatever happened to them. More
// of them than jobs stand by.
//
// What a lease guards it guards here; see Lease and Job.Term.
type Group struct {
	store *store.Store
	name  string
	jobs  int
	ttl   time.Duration
	// Above, where it is set, is Lease.Above of a job.
	Above func(ctx context.Context, job int) (int64, error)
}

const (
	// MaxGroupName leaves room for "/65536/seat/65535" in the name of a lease.
	MaxGroupName = 83
	// takenAtOnce is how many jobs are taken between two looks at what others do.
	takenAtOnce = 4
)

// Group names a group; nothing is asked of the database yet. Its leases begin with name,
// 1 to 83 printable ASCII characters without blanks, and the number of jobs: groups of
// different numbers have nothing in common. ttl is a lease's: one who was killed is
// replaced that much later, at most.
func NewGroup(st *store.Store, name string, jobs int, ttl time.Duration) *Group {
	return &Group{store: st, name: name, jobs: jobs, ttl: ttl}
}

// Job is one of a group's while this member of it has it.
type Job struct {
	number   int
	term     *Term
	handOver chan struct{}
	asked    time.Time // when it was asked to hand over; zero while it was not
}

// Number is from 0 to the number of jobs, exclusively.
func (j *Job) Number() int { return j.number }

// Term is that of the job's lease.
func (j *Job) Term() *Term { return j.term }

// HandOver is closed when somebody else is to have the job: whoever does it finishes what
// is in hand and returns. The job stays its own until then.
func (j *Job) HandOver() <-chan struct{} { return j.handOver }

func (j *Job) handsOver() bool { return !j.asked.IsZero() }

// JobLease is the name of the lease of a job of a group.
func JobLease(group string, jobs, job int) string {
	return fmt.Sprintf("%s%d", GroupPrefix(group, jobs), job)
}

func GroupPrefix(group string, jobs int) string { return fmt.Sprintf("%s/%d/", group, jobs) }

func seatLease(group string, jobs, seat int) string {
	return fmt.Sprintf("%sseat/%d", GroupPrefix(group, jobs), seat)
}

func groupObject(name string) string { return fmt.Sprintf("group %q", name) }

func (g *Group) validate() error {
	switch {
	case !leaseNamePattern.MatchString(g.name) || len(g.name) > MaxGroupName:
		return feedtype.Invalid("group", "%q is no name of a group: 1 to %d printable ASCII characters without blanks",
			g.name, MaxGroupName)
	case g.jobs < 1 || g.jobs > feedtype.MaxDataShards:
		return feedtype.Invalid("jobs", "%d must be from 1 to %d", g.jobs, feedtype.MaxDataShards)
	}
	return New(g.store, g.name, g.ttl).validate()
}

// Run does its share of the jobs, each in a goroutine of its own, until ctx ends, then
// answers nil. do does a job until its context ends, which it does with ctx or when the
// job's term is lost, or until Job.HandOver says that somebody else is to have it. One
// that returns otherwise is done again, here or elsewhere. Its error ends Run with that
// error, unless the term was lost. Run outlives databases that go away, without one its
// terms run out, and it returns when every do has.
func (g *Group) Run(ctx context.Context, do func(ctx context.Context, j *Job) error) error {
	if err := g.validate(); err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	m := &member{g: g, ctx: inner, do: do, instance: newOwner(), jobs: map[int]*Job{}, ended: make(chan ending)}
	err := m.run()
	stop()
	m.leave()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// member is one Run of a group.
type member struct {
	g        *Group
	ctx      context.Context
	do       func(context.Context, *Job) error
	instance string // the beginning of the owners of all its terms

	seat  *Term        // nil while it has none
	jobs  map[int]*Job // that are done; also such whose term is over, while do does not return
	ended chan ending

	failures int // of the database, in a row
	hungry   int // beats in a row that left it with less than its share
	known    bool
	standsBy bool // without a seat, and has said so
}

// ending is a job whose do has returned.
type ending struct {
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

// end forgets a job that is not done here any more.
func (m *member) end(e ending) error {
	delete(m.jobs, e.job.number)
	event := feedtype.JobEvent{Group: m.g.name, Jobs: m.g.jobs, Job: e.job.number, Owner: e.job.term.owner,
		Epoch: e.job.term.epoch, Kind: feedtype.JobEnded}
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

// leave lets go of everything, so that nobody waits for the end of a term: of the seat
// first, since others may have to wait for a job.
func (m *member) leave() {
	if m.seat != nil {
		_ = m.seat.letGo(m.ctx)
	}
	for len(m.jobs) > 0 {
		_ = m.end(<-m.ended)
	}
}

// begin does a job in the background, and releases it when that is over.
func (m *member) begin(number int, t *Term) {
	j := &Job{number: number, term: t, handOver: make(chan struct{})}
	m.jobs[number] = j
	m.g.store.Observer.Job(feedtype.JobEvent{Group: m.g.name, Jobs: m.g.jobs, Job: number, Owner: t.owner,
		Epoch: t.epoch, Kind: feedtype.JobBegun})
	work, stop := context.WithCancelCause(m.ctx)
	detach := context.AfterFunc(t.ctx, func() { stop(context.Cause(t.ctx)) })
	go func() {
		err := m.do(work, j)
		detach()
		stop(nil)
		e := ending{job: j, err: err, lost: t.ctx.Err() != nil}
		_ = t.letGo(m.ctx)
		m.ended <- e
	}()
}

// beat renews what the member has, looks at what all have, and mends the difference; it
// answers how long until the next one. Between two of them nothing is sent.
func (m *member) beat() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.g.ttl)
	defer cancel()
	short, err := m.balance(ctx)
	if m.ctx.Err() != nil {
		return 0, nil
	}
	if err != nil {
		err = m.g.store.Fail(groupObject(m.g.name), "renew and look", err)
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
	// Somewhat before a third of the term, so that two beats may fail; see halfway for those
	// that hang.
	wait := m.g.ttl/4 + store.Jitter(m.g.ttl/24)
	if !short {
		m.hungry = 0
		return wait, nil
	}
	// Others are on their way to hand over; or they are not, since what they have in hand
	// takes its time: that is asked for ever less often.
	m.hungry++
	return min(wait, store.Jitter(m.g.ttl/24<<min(m.hungry-1, 8))), nil
}

// balance is a beat's work; short says that the member has less than its share.
func (m *member) balance(ctx context.Context) (short bool, err error) {
	if !m.known {
		if err := m.g.store.RequireSchema(ctx, m.g.store.On()); err != nil {
			return false, err
		}
		m.known = true
	}
	doubtful, err := m.renew(ctx)
	if err != nil {
		return false, err
	}
	// Taking is for less long than it takes a term to be in danger.
	for until := time.Now().Add(m.g.ttl / 8); ; {
		bounded, cancel := halfway(ctx, m.terms()...)
		all, err := m.g.Look(bounded)
		cancel()
		if err != nil {
			return false, err
		}
		all.judge(doubtful)
		doubtful = nil
		if m.seat == nil || m.seat.ctx.Err() != nil {
			seated, err := m.sit(ctx, all)
			if err != nil || !seated {
				return false, err // who stands by is not short of anything
			}
			continue
		}
		took, missing, err := m.settle(ctx, all)
		if err != nil {
			return false, err
		}
		if took > 0 {
			m.hungry = 0
		}
		if missing <= 0 || took == 0 || time.Now().After(until) {
			return missing > 0, nil
		}
	}
}

// renew renews all terms by one statement. It answers those of which that may not be true:
// when fewer rows are affected than there are terms some are lost, or were released just
// now.
func (m *member) renew(ctx context.Context) (doubtful []*Term, err error) {
	const most = 100 // of which each has four parameters
	for some := range slices.Chunk(m.terms(), most) {
		bounded, cancel := halfway(ctx, some...)
		asked, n, err := New(m.g.store, m.g.name, m.g.ttl).prolong(bounded, some...)
		cancel()
		if err != nil {
			return nil, err
		}
		if n == int64(len(some)) {
			for _, t := range some {
				_ = t.extend(asked)
			}
		} else {
			doubtful = append(doubtful, some...)
		}
	}
	return doubtful, nil
}

// terms are those that hold, as far as the member knows.
func (m *member) terms() (terms []*Term) {
	if m.seat != nil && m.seat.ctx.Err() == nil {
		terms = append(terms, m.seat)
	}
	for _, number := range slices.Sorted(maps.Keys(m.jobs)) {
		if t := m.jobs[number].term; t.ctx.Err() == nil {
			terms = append(terms, t)
		}
	}
	return terms
}

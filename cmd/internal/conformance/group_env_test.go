package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	groupJobs = 13
	// groupTTL is long enough for a busy machine: who was killed is replaced after it.
	groupTTL = 2 * time.Second
	// stuckTTL is the term of a member that is to lose nothing while the test holds it up: longer
	// than a machine stands still.
	stuckTTL = 20 * time.Second
	// threeTerms in beats of a member, of which there are at most four to a term. A
	// machine that is slow is slow about these, too.
	threeTerms = 12
)

// player is a member of the group "g" in a process of its own, as far as the database
// can tell. Its jobs do nothing until they are over.
type player struct {
	*env
	stop  context.CancelFunc
	ended chan error
	cut   atomic.Bool // nothing reaches the database any more
	sent  atomic.Int64
	wrote atomic.Int64 // statements that change something

	mu     sync.Mutex
	has    map[int]*rowfeed.Job
	freed  []testdb.TapEvent // leases that it has released
	lost   int
	doubts []string
	// do, where it is set, is what a job does. It is called with the job's number.
	do map[int]func(ctx context.Context, j *rowfeed.Job) error
}

// join begins a member; do may be nil.
func (x *env) join(jobs int, do map[int]func(ctx context.Context, j *rowfeed.Job) error) *player {
	x.Helper()
	p := &player{env: x, ended: make(chan error, 1), has: map[int]*rowfeed.Job{}, do: do}
	pool := x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if p.cut.Load() {
			return testdb.ErrInjected
		}
		if ev.SQL != "" {
			p.sent.Add(1)
			if ev.Kind == testdb.Exec {
				p.wrote.Add(1)
			}
		}
		if strings.Contains(ev.SQL, "SET owner = '', expires_at = NULL") {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.freed = append(p.freed, ev)
		}
		return nil
	}})
	rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		if e.Kind == rowfeed.JobLost {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost++
		}
	}}})
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(x.ctx)
	p.stop = stop
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.ended <- rf.Group("g", jobs, groupTTL).Run(ctx, p.work)
	}()
	x.Cleanup(func() {
		stop()
		if !x.Failed() { // of a test that has, jobs may wait for it for ever
			<-over
		}
	})
	return p
}

func (p *player) work(ctx context.Context, j *rowfeed.Job) error {
	p.mu.Lock()
	if p.has[j.Number()] != nil {
		p.Errorf("job %d is begun twice", j.Number())
	}
	p.has[j.Number()] = j
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.has, j.Number())
	}()
	if do := p.do[j.Number()]; do != nil {
		return do(ctx, j)
	}
	return untilAsked(ctx, j)
}

// untilAsked is a job without anything in hand, ever.
func untilAsked(ctx context.Context, j *rowfeed.Job) error {
	select {
	case <-ctx.Done():
	case <-j.HandOver():
	}
	return nil
}

// hasReleased tells whether it has released a job, lost or not.
func (p *player) hasReleased(jobs, job int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.freed, func(ev testdb.TapEvent) bool { return hasArg(ev, admin.JobLease("g", jobs, job)) })
}

// unlessLost is an error of the test, unless the member has lost a term, as it may on a
// machine that is slow. That is known for certain when it has ended: the table of leases
// tells it earlier than the member.
func (p *player) unlessLost(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubts = append(p.doubts, fmt.Sprintf(format, args...))
}

// end stops it and waits for its end.
func (p *player) end() {
	p.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		p.Errorf("Run: %v", err)
	}
	if p.losses() == 0 {
		for _, doubt := range p.doubts {
			p.Error(doubt)
		}
	}
}

func (p *player) numbers() (all []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.has {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

func (p *player) losses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// standing is how the group stands in the table of leases.
type standing struct {
	shares   map[string]int // jobs of every instance that has a seat
	seats    map[string]*rowfeed.LeaseStatus
	owners   map[int]string // instances, by job
	epochs   map[int]int64  // by job
	takeOver int64          // the sum of all jobs' epochs: one more with every take-over
}

func (x *env) standing(group string, jobs int) standing {
	x.Helper()
	all, err := x.rf.Admin().Leases(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	s := standing{shares: map[string]int{}, seats: map[string]*rowfeed.LeaseStatus{}, owners: map[int]string{}, epochs: map[int]int64{}}
	prefix := fmt.Sprintf("%s/%d/", group, jobs)
	instance := func(owner string) string { return owner[:strings.LastIndexByte(owner, '/')] }
	for _, l := range all {
		if strings.HasPrefix(l.Name, prefix+"seat/") && l.State == rowfeed.LeaseHeld {
			s.shares[instance(l.Owner)] += 0
			s.seats[instance(l.Owner)] = l
		}
	}
	for job := range jobs {
		for _, l := range all {
			if l.Name != admin.JobLease(group, jobs, job) {
				continue
			}
			s.epochs[job] = l.Epoch
			s.takeOver += l.Epoch
			if l.State == rowfeed.LeaseHeld {
				s.owners[job] = instance(l.Owner)
				s.shares[instance(l.Owner)]++
			}
		}
	}
	return s
}

// balanced tells whether every job is held, by so many members, in shares that differ by
// one at most.
func (s standing) balanced(jobs, members int) bool {
	if len(s.owners) != jobs || len(s.seats) != members || len(s.shares) != members {
		return false
	}
	least, most := jobs, 0
	for _, n := range s.shares {
		least, most = min(least, n), max(most, n)
	}
	return most-least <= 1
}

// beats are those of a member since.
func (s standing) beatsOf(instance string, since standing) int64 {
	seat, was := s.seats[instance], since.seats[instance]
	switch {
	case seat == nil:
		return 0
	case was == nil || was.Name != seat.Name || was.Epoch != seat.Epoch:
		return seat.Renewals // it has taken the seat since
	}
	return seat.Renewals - was.Renewals
}

// beats is the number of beats that each member has had since, at least.
func (s standing) beats(since standing) int64 {
	if len(s.seats) == 0 {
		return 0
	}
	least := int64(math.MaxInt64)
	for instance := range s.seats {
		least = min(least, s.beatsOf(instance, since))
	}
	return least
}

// awaitBalance waits for it, and asserts that it came within three terms of the event
// before which the group stood as given: what counts is when it was last seen out of balance,
// since a test that stands still sees the balance late.
func (x *env) awaitBalance(group string, jobs, members int, since standing) standing {
	x.Helper()
	var s standing
	var late int64
	x.eventually(fmt.Sprintf("%d jobs are balanced among %d members", jobs, members), func() bool {
		s = x.standing(group, jobs)
		if s.balanced(jobs, members) {
			return true
		}
		if len(s.seats) == members { // else somebody is yet to come, or to go
			late = s.beats(since)
		}
		return false
	})
	if late > threeTerms {
		x.Errorf("not balanced among %d members after %d beats, want %d at most", members, late, threeTerms)
	}
	return s
}

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/testdb"
)

const (
	groupJobs = 13
	// groupTTL is long enough for a busy machine: who was killed is replaced after it.
	groupTTL = 2 * time.Second
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

	mu   sync.Mutex
	has  map[int]*rowfeed.Job
	lost int
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
	go func() { p.ended <- rf.Group("g", jobs, groupTTL).Run(ctx, p.work) }()
	x.Cleanup(func() { stop(); p.mu.Lock(); defer p.mu.Unlock() })
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

// end stops it and waits for its end.
func (p *player) end() {
	p.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		p.Errorf("Run: %v", err)
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
	all, err := x.rf.Leases(x.ctx)
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
			if l.Name != rowfeed.JobLease(group, jobs, job) {
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

// beats is the greatest number of beats that a member has had since.
func (s standing) beats(since standing) (n int64) {
	for instance, seat := range s.seats {
		if was := since.seats[instance]; was != nil {
			n = max(n, seat.Renewals-was.Renewals)
		}
	}
	return n
}

// awaitBalance waits for it, and asserts that it came within three terms of the event
// before which the group stood as given.
func (x *env) awaitBalance(group string, jobs, members int, since standing) standing {
	x.Helper()
	var s standing
	x.eventually(fmt.Sprintf("%d jobs are balanced among %d members", jobs, members), func() bool {
		s = x.standing(group, jobs)
		return s.balanced(jobs, members)
	})
	if n := s.beats(since); n > threeTerms {
		x.Errorf("balanced among %d members after %d beats, want %d at most", members, n, threeTerms)
	}
	return s
}

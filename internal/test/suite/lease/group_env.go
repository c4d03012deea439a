package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// player is a member of the group "g" in a process of its own, as far as the database
// can tell. Its jobs do nothing until they are over.
type player struct {
	*suite.Env
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
func join(x *suite.Env, jobs int, do map[int]func(ctx context.Context, j *rowfeed.Job) error) *player {
	x.Helper()
	p := &player{Env: x, ended: make(chan error, 1), has: map[int]*rowfeed.Job{}, do: do}
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		if e.Kind == rowfeed.JobLost {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost++
		}
	}}})
	if err != nil {
		x.Fatal(err)
	}
	ctx, stop := context.WithCancel(x.Ctx)
	p.stop = stop
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.ended <- rf.Group("g", jobs, suite.GroupTTL).Run(ctx, p.work)
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
	return suite.UntilAsked(ctx, j)
}

// hasReleased tells whether it has released a job, lost or not.
func (p *player) hasReleased(jobs, job int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.freed, func(ev testdb.TapEvent) bool { return suite.HasArg(ev, admin.JobLease("g", jobs, job)) })
}

// unlessLost is an error of the test, unless the member has lost a claim, as it may on a
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

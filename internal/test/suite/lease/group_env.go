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

// player is a member of the group "g" with a database pool of its own. By default its jobs wait for their end.
type player struct {
	*suite.Env
	stop  context.CancelFunc
	ended chan error
	cut   atomic.Bool // no statement reaches the database any more
	sent  atomic.Int64
	wrote atomic.Int64 // statements that write

	mu     sync.Mutex
	has    map[int]*rowfeed.Job
	freed  []testdb.TapEvent // the leases that the member has released
	lost   int
	doubts []string
	// do, if set, is the work of a job, by the job's number.
	do map[int]func(ctx context.Context, j *rowfeed.Job) error
}

// join starts a member. do may be nil.
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
	counts := &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		if e.Kind == rowfeed.JobLost {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost++
		}
	}}
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Observer: counts})
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
		if !x.Failed() { // jobs of a failed test may wait for ever
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

// hasReleased reports whether the member has released a job.
func (p *player) hasReleased(jobs, job int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.freed, func(ev testdb.TapEvent) bool {
		return suite.HasArg(ev, admin.JobLease("g", jobs, job))
	})
}

// unlessLost reports an error, unless the member has lost a claim, which can happen on a slow machine. The test knows
// that only when the member has ended, because the table of leases shows it earlier than the member.
func (p *player) unlessLost(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doubts = append(p.doubts, fmt.Sprintf(format, args...))
}

// end stops the member and waits for its end.
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

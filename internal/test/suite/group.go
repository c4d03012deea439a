package suite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	GroupJobs = 13
	// groupTTL is long enough for a busy machine: who was killed is replaced after it.
	GroupTTL = 2 * time.Second
	// StuckTTL is that of a member that is to lose nothing while the test holds it up: longer
	// than a machine stands still.
	StuckTTL = 20 * time.Second
	// threeTTLs in beats of a member, of which there are at most four to a ttl. A
	// machine that is slow is slow about these, too.
	threeTTLs = 12
)

// UntilAsked is a job without anything in hand, ever.
func UntilAsked(ctx context.Context, j *rowfeed.Job) error {
	select {
	case <-ctx.Done():
	case <-j.HandOver():
	}
	return nil
}

// Standing is how the group stands in the table of leases.
type Standing struct {
	Shares   map[string]int // jobs of every instance that has a seat
	Seats    map[string]*rowfeed.LeaseStatus
	Owners   map[int]string // instances, by job
	Epochs   map[int]int64  // by job
	TakeOver int64          // the sum of all jobs' epochs: one more with every take-over
}

func (x *Env) Standing(group string, jobs int) Standing {
	x.Helper()
	all, err := x.RF.Admin().Leases(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	s := Standing{Shares: map[string]int{}, Seats: map[string]*rowfeed.LeaseStatus{}, Owners: map[int]string{}, Epochs: map[int]int64{}}
	prefix := fmt.Sprintf("%s/%d/", group, jobs)
	instance := func(owner string) string { return owner[:strings.LastIndexByte(owner, '/')] }
	for _, l := range all {
		if strings.HasPrefix(l.Name, prefix+"seat/") && l.State == rowfeed.LeaseHeld {
			s.Shares[instance(l.Owner)] += 0
			s.Seats[instance(l.Owner)] = l
		}
	}
	for job := range jobs {
		for _, l := range all {
			if l.Name != admin.JobLease(group, jobs, job) {
				continue
			}
			s.Epochs[job] = l.Epoch
			s.TakeOver += l.Epoch
			if l.State == rowfeed.LeaseHeld {
				s.Owners[job] = instance(l.Owner)
				s.Shares[instance(l.Owner)]++
			}
		}
	}
	return s
}

// Balanced tells whether every job is held, by so many members, in shares that differ by
// one at most.
func (s Standing) Balanced(jobs, members int) bool {
	if len(s.Owners) != jobs || len(s.Seats) != members || len(s.Shares) != members {
		return false
	}
	least, most := jobs, 0
	for _, n := range s.Shares {
		least, most = min(least, n), max(most, n)
	}
	return most-least <= 1
}

// beats are those of a member since.
func (s Standing) BeatsOf(instance string, since Standing) int64 {
	seat, was := s.Seats[instance], since.Seats[instance]
	switch {
	case seat == nil:
		return 0
	case was == nil || was.Name != seat.Name || was.Epoch != seat.Epoch:
		return seat.Renewals // it has taken the seat since
	}
	return seat.Renewals - was.Renewals
}

// Beats is the number of beats that each member has had since, at least.
func (s Standing) Beats(since Standing) int64 {
	if len(s.Seats) == 0 {
		return 0
	}
	least := int64(math.MaxInt64)
	for instance := range s.Seats {
		least = min(least, s.BeatsOf(instance, since))
	}
	return least
}

// AwaitBalance waits for it, and asserts that it came within three times the ttl of the event
// before which the group stood as given: what counts is when it was last seen out of balance,
// since a test that stands still sees the balance late.
func (x *Env) AwaitBalance(group string, jobs, members int, since Standing) Standing {
	x.Helper()
	var s Standing
	var late int64
	x.Eventually(fmt.Sprintf("%d jobs are balanced among %d members", jobs, members), func() bool {
		s = x.Standing(group, jobs)
		if s.Balanced(jobs, members) {
			return true
		}
		if len(s.Seats) == members { // else somebody is yet to come, or to go
			late = s.Beats(since)
		}
		return false
	})
	if late > threeTTLs {
		x.Errorf("not balanced among %d members after %d beats, want %d at most", members, late, threeTTLs)
	}
	return s
}

// Leasing opens the database of the environment for a child.
func Leasing(work func(context.Context, *sql.DB, *rowfeed.DB) error) error {
	url := os.Getenv("URL")
	pool, err := testdb.OpenURL(url, (&quiet{file: os.Getenv("QUIET")}).hooks())
	if err != nil {
		return err
	}
	defer pool.Close()
	d, err := DialectOf(url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	rf, err := rowfeed.Open(ctx, pool, d, nil)
	if err != nil {
		return err
	}
	return work(ctx, pool, rf)
}

func (x *Env) AllPublished() bool { return x.Scalar("SELECT count(*) FROM rowfeed_changes_kv") == 0 }

// Long is the ttl of a claim that does not expire during a test.
const Long = time.Hour

// standbys collects what an instance in a process of its own says of its jobs, and how
// often it has looked at leases.
type standbys struct {
	Looks atomic.Int64
	mu    sync.Mutex
	told  []rowfeed.JobEvent
}

func (s *standbys) Of(kind rowfeed.JobEventKind) (all []rowfeed.JobEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

func (x *Env) Standby() (*rowfeed.DB, *standbys) {
	x.Helper()
	s := &standbys{}
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases") {
			s.Looks.Add(1)
		}
		return nil
	}}), x.Dialect, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, e)
	}}})
	if err != nil {
		x.Fatal(err)
	}
	return rf, s
}

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
	// GroupTTL is the ttl of members of groups: long enough for a busy machine. A killed member is replaced after it.
	GroupTTL = 2 * time.Second
	// StuckTTL is the ttl of a member that must lose no lease while the test delays it. It is longer than a busy
	// machine stops a process.
	StuckTTL = 20 * time.Second
	// threeTTLs is the number of a member's renewals in three ttls: at most four to a ttl. Counting renewals makes the
	// test independent of the machine's speed.
	threeTTLs = 12
)

// UntilAsked is a job that runs until it is asked to hand over, and hands over at once.
func UntilAsked(ctx context.Context, j *rowfeed.Job) error {
	select {
	case <-ctx.Done():
	case <-j.HandOver():
	}
	return nil
}

// Standing is the state of a group in the table of leases.
type Standing struct {
	Shares   map[string]int // number of jobs, by instance that holds a seat
	Seats    map[string]*rowfeed.LeaseStatus
	Owners   map[int]string // instances, by job
	Epochs   map[int]int64  // by job
	TakeOver int64          // the sum of all jobs' epochs: every take-over adds one
}

// Standing reads the state of a group with so many jobs.
func (x *Env) Standing(group string, jobs int) Standing {
	x.Helper()
	all, err := x.RF.Admin().Leases(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	s := Standing{
		Shares: map[string]int{}, Seats: map[string]*rowfeed.LeaseStatus{},
		Owners: map[int]string{}, Epochs: map[int]int64{},
	}
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

// Balanced tells whether every job is held, by so many members, and their numbers of jobs differ by at most one.
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

// BeatsOf returns how often a member has renewed its seat since an earlier state.
func (s Standing) BeatsOf(instance string, since Standing) int64 {
	seat, was := s.Seats[instance], since.Seats[instance]
	switch {
	case seat == nil:
		return 0
	case was == nil || was.Name != seat.Name || was.Epoch != seat.Epoch:
		return seat.Renewals // it has acquired the seat since
	}
	return seat.Renewals - was.Renewals
}

// Beats returns how often every member has renewed its seat since an earlier state: the smallest number.
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

// AwaitBalance waits until the group is balanced, and asserts that this took at most three ttls. It counts from the
// state before the event that disturbed the balance, until the group was last seen unbalanced: a slow test sees the
// balance late.
func (x *Env) AwaitBalance(group string, jobs, members int, since Standing) Standing {
	x.Helper()
	var s Standing
	var late int64
	x.Eventually(fmt.Sprintf("%d jobs are balanced among %d members", jobs, members), func() bool {
		s = x.Standing(group, jobs)
		if s.Balanced(jobs, members) {
			return true
		}
		if len(s.Seats) == members { // otherwise a member has yet to join or to leave
			late = s.Beats(since)
		}
		return false
	})
	if late > threeTTLs {
		x.Errorf("not balanced among %d members after %d beats, want %d at most", members, late, threeTTLs)
	}
	return s
}

// Leasing runs work on the database that the environment of a child process names.
func Leasing(work func(context.Context, *sql.DB, *rowfeed.DB) error) error {
	url := os.Getenv("URL")
	pool, err := testdb.OpenURL(url, (&pause{file: os.Getenv("PAUSE")}).hooks())
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

// AllPublished tells whether the feed kv has no change left to publish.
func (x *Env) AllPublished() bool { return x.Scalar("SELECT count(*) FROM rowfeed_changes_kv") == 0 }

// Long is the ttl of a claim that does not expire during a test.
const Long = time.Hour

// standbys collects the events of an instance's jobs, and counts its reads of leases.
type standbys struct {
	Looks atomic.Int64
	mu    sync.Mutex
	told  []rowfeed.JobEvent
}

// Of returns the events of a kind.
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

// Standby opens rowfeed as another process does, and collects the events of its jobs.
func (x *Env) Standby() (*rowfeed.DB, *standbys) {
	x.Helper()
	s := &standbys{}
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases") {
			s.Looks.Add(1)
		}
		return nil
	}})
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Observer: &rowfeed.Observer{
		Job: func(e rowfeed.JobEvent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.told = append(s.told, e)
		},
	}})
	if err != nil {
		x.Fatal(err)
	}
	return rf, s
}

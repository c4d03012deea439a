package lease

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("group member", func() {
		err := suite.Leasing(func(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
			return rf.Group("g", suite.GroupJobs, suite.GroupTTL).
				Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
					fmt.Println("begun", j.Number(), j.Claim().Epoch())
					defer fmt.Println("over", j.Number(), j.Claim().Epoch())
					return suite.UntilAsked(ctx, j)
				})
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestGroupSharesJobsEvenly (M24, M58): members join, leave and are killed. Within three times the TTL all members have
// the same number of jobs, give or take one, by the table of leases. How many jobs move meanwhile is tested by
// TestFewestJobsMove: if statements are slow, two members may act on the same state.
func TestGroupSharesJobsEvenly(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		var players []*player
		var was suite.Standing
		for members := 1; members <= 4; members++ {
			players = append(players, join(x, suite.GroupJobs, nil))
			was = x.AwaitBalance("g", suite.GroupJobs, members, was)
		}
		for len(players) < 7 {
			players = append(players, join(x, suite.GroupJobs, nil))
		}
		was = x.AwaitBalance("g", suite.GroupJobs, 7, was)

		// A member in another process joins, and is killed with SIGKILL.
		child := testdb.CrashChild(x.T, "group member", "URL="+x.DB.URL)
		x.AwaitBalance("g", suite.GroupJobs, 8, was)
		child.Kill()
		was = x.Standing("g", suite.GroupJobs)
		x.AwaitBalance("g", suite.GroupJobs, 7, was)

		for len(players) > 3 {
			players[0].end()
			players = players[1:]
		}
		x.AwaitBalance("g", suite.GroupJobs, 3, x.Standing("g", suite.GroupJobs))
		for _, p := range players {
			p.end()
		}
		if s := x.Standing("g", suite.GroupJobs); len(s.Owners) != 0 || len(s.Seats) != 0 {
			x.Errorf("left behind: %+v", s)
		}
	})
}

// TestPausedMemberGivesUpItsJobs (M54, H3): a member is stopped with SIGSTOP until other members have its jobs. When it
// continues, it gives up its jobs and joins again.
func TestPausedMemberGivesUpItsJobs(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		paused, stop, goOn := x.Stoppable("group member")
		was := x.AwaitBalance("g", suite.GroupJobs, 1, suite.Standing{})
		first := x.Standing("g", suite.GroupJobs)
		p := join(x, suite.GroupJobs, nil)
		was = x.AwaitBalance("g", suite.GroupJobs, 2, was)
		stop()
		now := x.AwaitBalance("g", suite.GroupJobs, 1, was)
		goOn()
		// The member reports that it has lost each of its claims.
		for job, owner := range was.Owners {
			if owner == first.Owners[job] {
				x.WaitFor(paused, regexp.MustCompile(fmt.Sprintf("over %d %d\n", job, was.Epochs[job])))
			}
		}
		x.AwaitBalance("g", suite.GroupJobs, 2, now)
		p.end()
	})
}

// TestRebalanceWaitsForRunningJob (M58): a job that is to move stays with its member until its current work has ended,
// and no other member has it meanwhile, although that takes longer than the TTL. All other jobs move.
func TestRebalanceWaitsForRunningJob(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 4
		asked, done := make(chan int, 1), make(chan struct{})
		hang := func(ctx context.Context, j *rowfeed.Job) error {
			select {
			case <-ctx.Done():
			case <-j.HandOver():
				select {
				case asked <- j.Number():
				case <-done: // a later call
				}
				<-done
			}
			return nil
		}
		first := join(x, jobs, map[int]func(context.Context, *rowfeed.Job) error{jobs - 1: hang})
		was := x.AwaitBalance("g", jobs, 1, suite.Standing{})
		second := join(x, jobs, nil)
		hung := <-asked
		was2 := x.AwaitBalance("g", jobs, 2, was)
		x.Eventually("twice the TTL passes", func() bool { return x.Standing("g", jobs).Beats(was2) > 8 })
		if first.hasReleased(jobs, hung) {
			x.Errorf("job %d is released while it is done", hung)
		}
		now := x.Standing("g", jobs)
		if now.Epochs[hung] != was.Epochs[hung] || now.Owners[hung] != was.Owners[hung] {
			first.unlessLost("job %d had epoch %d of %s, and has %d of %s",
				hung, was.Epochs[hung], was.Owners[hung], now.Epochs[hung], now.Owners[hung])
		}
		if one, two := first.numbers(), second.numbers(); (len(one) != 2 || len(two) != 2) && second.losses() == 0 {
			first.unlessLost("while a job hangs, the members have %v and %v", one, two)
		}
		now = x.Standing("g", jobs)
		close(done)
		x.Eventually("the job is free for others", func() bool {
			return x.Standing("g", jobs).Epochs[hung] > was.Epochs[hung]
		})
		x.AwaitBalance("g", jobs, 2, now)
		if !first.hasReleased(jobs, hung) {
			first.unlessLost("job %d was not released when it was done", hung)
		}
		first.end()
		second.end()
	})
}

// TestNewMemberPollsLessWhileJobsHang (M53): while no job of another member ends, a new member has no job, and polls
// less and less often.
func TestNewMemberPollsLessWhileJobsHang(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 2
		done := make(chan struct{})
		// A job that begins after done is closed does not end, so that the balance stays.
		hang := func(ctx context.Context, j *rowfeed.Job) error { <-done; return suite.UntilAsked(ctx, j) }
		first := join(x, jobs, map[int]func(context.Context, *rowfeed.Job) error{0: hang, 1: hang})
		was := x.AwaitBalance("g", jobs, 1, suite.Standing{})
		second := join(x, jobs, nil)
		x.Eventually("the new member has a seat", func() bool { return len(x.Standing("g", jobs).Seats) == 2 })
		// The beats of the member that has the jobs.
		before, sent := x.Standing("g", jobs), second.sent.Load()
		beats := func(s suite.Standing) int64 { return s.BeatsOf(was.Owners[0], before) }
		x.Eventually("twice the TTL passes", func() bool { return beats(x.Standing("g", jobs)) >= 8 })
		// A beat is a poll, a renewal, and perhaps a setting of its transaction. A member that did not slow down would
		// poll at every beat. The statements are counted before the beats, because the test may stall in between.
		n := second.sent.Load() - sent
		now := x.Standing("g", jobs)
		if n > 6*(beats(now)+4) {
			first.unlessLost("the member that waits for a job has sent %d statements in %d beats", n, beats(now))
		}
		if now.TakeOver != was.TakeOver {
			first.unlessLost("epochs %v were %v before the newcomer came", now.Epochs, was.Epochs)
		}
		close(done)
		x.AwaitBalance("g", jobs, 2, now)
		first.end()
		second.end()
	})
}

// TestLostJobEndsAndOthersContinue (M54): a job whose claim is lost ends at once, with the reason, and the other jobs
// continue. The job is claimed again under a higher epoch, and not before its work has returned.
func TestLostJobEndsAndOthersContinue(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 3
		causes, go1 := make(chan error, 8), make(chan struct{})
		watch := func(ctx context.Context, j *rowfeed.Job) error {
			if err := suite.UntilAsked(ctx, j); ctx.Err() == nil {
				return err
			}
			causes <- context.Cause(ctx)
			<-go1
			return ctx.Err()
		}
		p := join(x, jobs, map[int]func(context.Context, *rowfeed.Job) error{1: watch})
		was := x.AwaitBalance("g", jobs, 1, suite.Standing{})
		if _, err := x.RF.Admin().ReleaseLease(x.Ctx, admin.JobLease("g", jobs, 1), 0); err != nil {
			x.Fatal(err)
		}
		x.Eventually("the job is notified", func() bool { return len(causes) > 0 })
		x.WantCode(<-causes, rowfeed.LeaseLost)
		now := x.Standing("g", jobs)
		x.Eventually("four beats", func() bool { return x.Standing("g", jobs).Beats(now) >= 4 })
		if s := x.Standing("g", jobs); s.Epochs[1] != was.Epochs[1] {
			x.Error("a job is claimed again while its work still runs")
		}
		close(go1)
		now = x.AwaitBalance("g", jobs, 1, x.Standing("g", jobs))
		if lost := p.losses(); now.Epochs[1] == was.Epochs[1] ||
			lost == 1 && (now.Epochs[0] != was.Epochs[0] || now.Epochs[2] != was.Epochs[2]) {
			x.Errorf("epochs %v were %v before one of them was lost", now.Epochs, was.Epochs)
		}
		// A seat that is lost is claimed again, too, and nothing else happens.
		for name := range map[string]bool{now.Seats[now.Owners[0]].Name: true} {
			if _, err := x.RF.Admin().ReleaseLease(x.Ctx, name, 0); err != nil {
				x.Fatal(err)
			}
		}
		after := x.AwaitBalance("g", jobs, 1, x.Standing("g", jobs))
		if p.losses() == 1 && after.TakeOver != now.TakeOver {
			x.Errorf("epochs %v were %v before the seat was lost", after.Epochs, now.Epochs)
		}
		p.end()
	})
}

// TestMembersBeyondJobsStandBy (M58): if a group has more members than jobs, the other members stand by and write
// nothing. If a member leaves, one of them replaces it.
func TestMembersBeyondJobsStandBy(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 2
		var players []*player
		for range 4 {
			players = append(players, join(x, jobs, nil))
		}
		x.AwaitBalance("g", jobs, jobs, suite.Standing{})
		// Members that have polled before the seats were claimed finish soon.
		was := x.Standing("g", jobs)
		x.Eventually("the TTL passes", func() bool { return x.Standing("g", jobs).Beats(was) >= 4 })
		var idle, busy []*player
		x.Eventually("two members have a job each", func() bool {
			was, idle, busy = x.Standing("g", jobs), nil, nil
			for _, p := range players {
				if len(p.numbers()) == 0 {
					idle = append(idle, p)
				} else {
					busy = append(busy, p)
				}
			}
			return was.Balanced(jobs, jobs) && len(idle) == 2
		})
		wrote := map[*player]int64{}
		for _, p := range idle {
			wrote[p] = p.wrote.Load()
		}
		x.Eventually("twice the TTL passes", func() bool { return x.Standing("g", jobs).Beats(was) >= 8 })
		for _, p := range idle {
			wrote[p] = p.wrote.Load() - wrote[p]
		}
		now := x.Standing("g", jobs)
		lost := 0
		for _, p := range busy {
			p.end()
			lost += p.losses()
		}
		for _, p := range idle {
			if lost == 0 && wrote[p] > 0 { // otherwise there was a job to claim
				x.Errorf("a member that stands by has written %d times", wrote[p])
			}
		}
		x.AwaitBalance("g", jobs, jobs, now)
		for _, p := range idle {
			x.Eventually("the member that stood by has a job", func() bool { return len(p.numbers()) == 1 })
			p.end()
		}
	})
}

// TestGroupSurvivesOutage (M54, M57): a member that loses the database stops its jobs when their claims end, and other
// members get them. If all members lose it, no member has a job. All recover by themselves.
func TestGroupSurvivesOutage(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		first, second := join(x, suite.GroupJobs, nil), join(x, suite.GroupJobs, nil)
		was := x.AwaitBalance("g", suite.GroupJobs, 2, suite.Standing{})
		first.cut.Store(true)
		x.AwaitBalance("g", suite.GroupJobs, 1, was)
		x.Eventually("the member without a database has stopped", func() bool { return len(first.numbers()) == 0 })
		was = x.Standing("g", suite.GroupJobs)
		first.cut.Store(false)
		x.AwaitBalance("g", suite.GroupJobs, 2, was)
		first.cut.Store(true)
		second.cut.Store(true)
		x.Eventually("no member has a job", func() bool { return len(first.numbers())+len(second.numbers()) == 0 })
		was = x.Standing("g", suite.GroupJobs)
		first.cut.Store(false)
		second.cut.Store(false)
		x.AwaitBalance("g", suite.GroupJobs, 2, was)
		// The database's clock leaps ahead: all claims are lost, and acquired again.
		now := x.Standing("g", suite.GroupJobs)
		leapClock(x, time.Hour)
		x.Eventually("every job runs again", func() bool {
			s := x.Standing("g", suite.GroupJobs)
			return s.Balanced(suite.GroupJobs, 2) && s.TakeOver >= now.TakeOver+suite.GroupJobs
		})
		first.end()
		second.end()
	})
}

// TestErrorOfJobEndsMember (M24): the error of a job ends its member, and the other members get its jobs at once.
func TestErrorOfJobEndsMember(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		fail := make(chan struct{})
		fails := func(ctx context.Context, j *rowfeed.Job) error {
			select {
			case <-ctx.Done():
			case <-j.HandOver():
			case <-fail:
				return suite.ErrOff
			}
			return nil
		}
		first := join(x, suite.GroupJobs, map[int]func(context.Context, *rowfeed.Job) error{0: fails})
		was := x.AwaitBalance("g", suite.GroupJobs, 1, suite.Standing{})
		close(fail)
		if err := <-first.ended; err != suite.ErrOff {
			x.Errorf("Run: %v", err)
		}
		second := join(x, suite.GroupJobs, nil)
		x.AwaitBalance("g", suite.GroupJobs, 1, was)
		second.end()
		for _, g := range []*rowfeed.Group{
			x.RF.Group("two words", 1, suite.GroupTTL), x.RF.Group("g", 0, suite.GroupTTL), x.RF.Group("g", 1, 0),
		} {
			x.WantCode(g.Run(x.Ctx, suite.UntilAsked), rowfeed.InvalidRequest)
		}
	})
}

// TestIdleGroupSendsTwoStatementsPerBeat (M53): at each beat a member sends one statement that renews all its claims
// and one that reads the others, whatever the number of jobs, and it beats at most four times per TTL. A member that
// stands by only polls. A synthetic clock runs through ten idle minutes.
func TestIdleGroupSendsTwoStatementsPerBeat(t *testing.T) {
	testdb.SQLite.Require(t)
	const jobs, ttl, idle = 8, 10 * time.Second, 10 * time.Minute
	for _, members := range []int{1, 8, 10} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			x := suite.NewEnv(t, testdb.SQLite, nil)
			x.Migrate()
			synctest.Test(t, func(t *testing.T) {
				var renewals, looks, others atomic.Int64
				var watching atomic.Bool
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, members)
				inside := *x // with a pool on the synthetic clock
				for range members {
					count := func(_ context.Context, ev testdb.TapEvent) error {
						switch {
						case !watching.Load() || ev.SQL == "": // BEGIN and COMMIT are sent with their statement
						case ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "rowfeed_leases"):
							renewals.Add(1)
						case ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases"):
							looks.Add(1)
						default:
							others.Add(1)
						}
						return nil
					}
					pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{Before: count})
					if err != nil {
						t.Fatal(err)
					}
					defer pool.Close()
					rf, err := rowfeed.Open(t.Context(), pool, x.Dialect, nil)
					if err != nil {
						t.Fatal(err)
					}
					inside.RF = rf
					go func() { ended <- rf.Group("g", jobs, ttl).Run(ctx, suite.UntilAsked) }()
				}
				suite.Rest(ctx, 3*ttl) // on the synthetic clock
				before := inside.Standing("g", jobs)
				if !before.Balanced(jobs, min(members, jobs)) {
					t.Errorf("after three times the TTL: %v", before.Shares)
				}
				watching.Store(true)
				suite.Rest(ctx, idle)
				watching.Store(false)
				after := inside.Standing("g", jobs)
				stop()
				for range members {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				most, least := int64(4*members)*int64(idle/ttl), int64(3*members)*int64(idle/ttl)
				if n := looks.Load(); n > most || n < least {
					t.Errorf("%d polls in %d ttls, want %d to %d", n, idle/ttl, least, most)
				}
				if n := renewals.Load(); n > most || n < least/int64(members)*int64(min(members, jobs)) {
					t.Errorf("%d renewals in %d ttls", n, idle/ttl)
				}
				// A transaction may send one more setting.
				if others.Load() > renewals.Load() || after.TakeOver != before.TakeOver {
					t.Errorf("%d other statements, %d jobs moved", others.Load(), after.TakeOver-before.TakeOver)
				}
				t.Logf("%d members: %d renewals and %d looks in %s", members, renewals.Load(), looks.Load(), idle)
			})
		})
	}
}

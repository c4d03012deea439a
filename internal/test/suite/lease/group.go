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
			return rf.Group("g", suite.GroupJobs, suite.GroupTTL).Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
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

// TestGroup (M24, M58): whoever joins, leaves or is killed, within three times the ttl everybody has
// the same number of jobs, give or take one. What is written in the table of leases
// decides. How many jobs change hands meanwhile is TestGroupMoves's: where statements
// take long two members may act on what both have seen before either has acted.
func TestGroup(t *testing.T) {
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

		// A member in a process of its own joins, and is killed with SIGKILL.
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

// TestGroupPausedMember (M54, H3): a member is stopped with SIGSTOP until others
// have its jobs. When it goes on it gives up what it believes to have, and takes part anew.
func TestGroupPausedMember(t *testing.T) {
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
		// Of the claims that it had it holds none; it says so of each.
		for job, owner := range was.Owners {
			if owner == first.Owners[job] {
				x.WaitFor(paused, regexp.MustCompile(fmt.Sprintf("over %d %d\n", job, was.Epochs[job])))
			}
		}
		x.AwaitBalance("g", suite.GroupJobs, 2, now)
		p.end()
	})
}

// TestGroupRebalanceWaits (M58): a job that is to change hands stays where it is until what is
// in hand has come to an end; nobody else has it meanwhile, though that takes longer than
// the ttl. All others move. That a job does not come to an end holds up nothing but itself.
func TestGroupRebalanceWaits(t *testing.T) {
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
				case <-done: // this is not the first time
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
		x.Eventually("twice the ttl passes", func() bool { return x.Standing("g", jobs).Beats(was2) > 8 })
		if first.hasReleased(jobs, hung) {
			x.Errorf("job %d is released while it is done", hung)
		}
		now := x.Standing("g", jobs)
		if now.Epochs[hung] != was.Epochs[hung] || now.Owners[hung] != was.Owners[hung] {
			first.unlessLost("job %d had epoch %d of %s, and has %d of %s", hung, was.Epochs[hung], was.Owners[hung], now.Epochs[hung], now.Owners[hung])
		}
		if one, two := first.numbers(), second.numbers(); (len(one) != 2 || len(two) != 2) && second.losses() == 0 {
			first.unlessLost("beside a job that hangs the members have %v and %v", one, two)
		}
		now = x.Standing("g", jobs)
		close(done)
		x.Eventually("the job is free for others", func() bool { return x.Standing("g", jobs).Epochs[hung] > was.Epochs[hung] })
		x.AwaitBalance("g", jobs, 2, now)
		if !first.hasReleased(jobs, hung) {
			first.unlessLost("job %d was not released when it was done", hung)
		}
		first.end()
		second.end()
	})
}

// TestGroupHungHandler (M53): while none of another member's jobs comes to an end a newcomer
// has none, and asks ever less often whether there is one.
func TestGroupHungHandler(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 2
		done := make(chan struct{})
		// A job that is begun after done is closed stays: the balance would come and go with it.
		hang := func(ctx context.Context, j *rowfeed.Job) error { <-done; return suite.UntilAsked(ctx, j) }
		first := join(x, jobs, map[int]func(context.Context, *rowfeed.Job) error{0: hang, 1: hang})
		was := x.AwaitBalance("g", jobs, 1, suite.Standing{})
		second := join(x, jobs, nil)
		x.Eventually("the newcomer has a seat", func() bool { return len(x.Standing("g", jobs).Seats) == 2 })
		// Of the member that has the jobs.
		before, sent := x.Standing("g", jobs), second.sent.Load()
		beats := func(s suite.Standing) int64 { return s.BeatsOf(was.Owners[0], before) }
		x.Eventually("twice the ttl passes", func() bool { return beats(x.Standing("g", jobs)) >= 8 })
		// A beat is a look, a renewal, and perhaps a setting of its transaction. Who asks on
		// has six beats to one. (Counted before the beats: the test may stand still in between.)
		n := second.sent.Load() - sent
		now := x.Standing("g", jobs)
		if n > 6*(beats(now)+4) {
			first.unlessLost("who waits for a job has sent %d statements in %d beats", n, beats(now))
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

// TestGroupLostLease (M54): a job whose claim is lost ends at once, with the reason; the
// others go on. It is taken again under a higher epoch, and not before its work has
// returned.
func TestGroupLostLease(t *testing.T) {
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
		x.Eventually("the job learns of it", func() bool { return len(causes) > 0 })
		x.WantCode(<-causes, rowfeed.LeaseLost)
		now := x.Standing("g", jobs)
		x.Eventually("four beats", func() bool { return x.Standing("g", jobs).Beats(now) >= 4 })
		if s := x.Standing("g", jobs); s.Epochs[1] != was.Epochs[1] {
			x.Error("a job is taken again while its work goes on")
		}
		close(go1)
		now = x.AwaitBalance("g", jobs, 1, x.Standing("g", jobs))
		if lost := p.losses(); now.Epochs[1] == was.Epochs[1] || lost == 1 && (now.Epochs[0] != was.Epochs[0] || now.Epochs[2] != was.Epochs[2]) {
			x.Errorf("epochs %v were %v before one of them was lost", now.Epochs, was.Epochs)
		}
		// So does a seat that is lost, and nothing else happens.
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

// TestGroupStandsBy (M58): of more members than jobs those left over stand by, and change
// nothing. One that goes is replaced.
func TestGroupStandsBy(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		const jobs = 2
		var players []*player
		for range 4 {
			players = append(players, join(x, jobs, nil))
		}
		x.AwaitBalance("g", jobs, jobs, suite.Standing{})
		// What those do that have looked before the seats were taken is over soon.
		was := x.Standing("g", jobs)
		x.Eventually("the ttl passes", func() bool { return x.Standing("g", jobs).Beats(was) >= 4 })
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
		x.Eventually("twice the ttl passes", func() bool { return x.Standing("g", jobs).Beats(was) >= 8 })
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
			if lost == 0 && wrote[p] > 0 { // else there was something to take
				x.Errorf("who stands by has changed something %d times", wrote[p])
			}
		}
		x.AwaitBalance("g", jobs, jobs, now)
		for _, p := range idle {
			x.Eventually("who stood by has a job", func() bool { return len(p.numbers()) == 1 })
			p.end()
		}
	})
}

// TestGroupThroughOutage (M54, M57): a member that loses the database stops its jobs when
// their claims are over, and others take them; when all lose it nobody has any. They come
// back by themselves.
func TestGroupThroughOutage(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		first, second := join(x, suite.GroupJobs, nil), join(x, suite.GroupJobs, nil)
		was := x.AwaitBalance("g", suite.GroupJobs, 2, suite.Standing{})
		first.cut.Store(true)
		x.AwaitBalance("g", suite.GroupJobs, 1, was)
		x.Eventually("the one without a database has stopped", func() bool { return len(first.numbers()) == 0 })
		was = x.Standing("g", suite.GroupJobs)
		first.cut.Store(false)
		x.AwaitBalance("g", suite.GroupJobs, 2, was)
		first.cut.Store(true)
		second.cut.Store(true)
		x.Eventually("nobody has any job", func() bool { return len(first.numbers())+len(second.numbers()) == 0 })
		was = x.Standing("g", suite.GroupJobs)
		first.cut.Store(false)
		second.cut.Store(false)
		x.AwaitBalance("g", suite.GroupJobs, 2, was)
		// The database's clock leaps ahead: all is lost, and found again.
		now := x.Standing("g", suite.GroupJobs)
		leapClock(x, time.Hour)
		x.Eventually("every job is begun again", func() bool {
			s := x.Standing("g", suite.GroupJobs)
			return s.Balanced(suite.GroupJobs, 2) && s.TakeOver >= now.TakeOver+suite.GroupJobs
		})
		first.end()
		second.end()
	})
}

// TestGroupError (M24): the error of a job ends its member, which leaves its jobs to others at
// once.
func TestGroupError(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		fail := make(chan struct{})
		first := join(x, suite.GroupJobs, map[int]func(context.Context, *rowfeed.Job) error{0: func(ctx context.Context, j *rowfeed.Job) error {
			select {
			case <-ctx.Done():
			case <-j.HandOver():
			case <-fail:
				return suite.ErrOff
			}
			return nil
		}})
		was := x.AwaitBalance("g", suite.GroupJobs, 1, suite.Standing{})
		close(fail)
		if err := <-first.ended; err != suite.ErrOff {
			x.Errorf("Run: %v", err)
		}
		second := join(x, suite.GroupJobs, nil)
		x.AwaitBalance("g", suite.GroupJobs, 1, was)
		second.end()
		for _, g := range []*rowfeed.Group{x.RF.Group("two words", 1, suite.GroupTTL), x.RF.Group("g", 0, suite.GroupTTL), x.RF.Group("g", 1, 0)} {
			x.WantCode(g.Run(x.Ctx, suite.UntilAsked), rowfeed.InvalidRequest)
		}
	})
}

// TestGroupIdleCost (M53): a member sends one statement that renews all it has and one
// look at all others to a beat, whatever the number of jobs, and beats no more than four
// times in a ttl; one that stands by polls only. A bubble's clock runs through ten idle
// minutes.
func TestGroupIdleCost(t *testing.T) {
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
				inside := *x // with a pool of the bubble's
				for range members {
					pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
						switch {
						case !watching.Load() || ev.SQL == "": // BEGIN and COMMIT go with their statement
						case ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "rowfeed_leases"):
							renewals.Add(1)
						case ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases"):
							looks.Add(1)
						default:
							others.Add(1)
						}
						return nil
					}})
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
				suite.Rest(ctx, 3*ttl) // of the bubble
				before := inside.Standing("g", jobs)
				if !before.Balanced(jobs, min(members, jobs)) {
					t.Errorf("after three times the ttl: %v", before.Shares)
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
				// A transaction may have a setting of its own.
				if others.Load() > renewals.Load() || after.TakeOver != before.TakeOver {
					t.Errorf("%d other statements, %d jobs changed hands", others.Load(), after.TakeOver-before.TakeOver)
				}
				t.Logf("%d members: %d renewals and %d looks in %s", members, renewals.Load(), looks.Load(), idle)
			})
		})
	}
}

package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("group member", func() {
		err := leasing(func(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
			return rf.Group("g", groupJobs, groupTTL).Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
				fmt.Println("begun", j.Number(), j.Term().Epoch())
				defer fmt.Println("over", j.Number(), j.Term().Epoch())
				return untilAsked(ctx, j)
			})
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestGroup (M24, M58): whoever joins, leaves or is killed, within three terms everybody has
// the same number of jobs, give or take one. What is written in the table of leases
// decides. How many jobs change hands meanwhile is TestGroupMoves's: where statements
// take long two members may act on what both have seen before either has acted.
func TestGroup(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		var players []*player
		var was standing
		for members := 1; members <= 4; members++ {
			players = append(players, x.join(groupJobs, nil))
			was = x.awaitBalance("g", groupJobs, members, was)
		}
		for len(players) < 7 {
			players = append(players, x.join(groupJobs, nil))
		}
		was = x.awaitBalance("g", groupJobs, 7, was)

		// A member in a process of its own joins, and is killed with SIGKILL.
		child := testdb.CrashChild(x.T, "group member", "URL="+x.db.URL)
		x.awaitBalance("g", groupJobs, 8, was)
		child.Kill()
		was = x.standing("g", groupJobs)
		x.awaitBalance("g", groupJobs, 7, was)

		for len(players) > 3 {
			players[0].end()
			players = players[1:]
		}
		x.awaitBalance("g", groupJobs, 3, x.standing("g", groupJobs))
		for _, p := range players {
			p.end()
		}
		if s := x.standing("g", groupJobs); len(s.owners) != 0 || len(s.seats) != 0 {
			x.Errorf("left behind: %+v", s)
		}
	})
}

// TestGroupPausedMember (M54, H3): a member is stopped with SIGSTOP until others
// have its jobs. When it goes on it gives up what it believes to have, and takes part anew.
func TestGroupPausedMember(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		paused, stop, goOn := x.stoppable("group member")
		was := x.awaitBalance("g", groupJobs, 1, standing{})
		first := x.standing("g", groupJobs)
		p := x.join(groupJobs, nil)
		was = x.awaitBalance("g", groupJobs, 2, was)
		stop()
		now := x.awaitBalance("g", groupJobs, 1, was)
		goOn()
		// Of the terms that it had it holds none; it says so of each.
		for job, owner := range was.owners {
			if owner == first.owners[job] {
				x.waitFor(paused, regexp.MustCompile(fmt.Sprintf("over %d %d\n", job, was.epochs[job])))
			}
		}
		x.awaitBalance("g", groupJobs, 2, now)
		p.end()
	})
}

// TestGroupRebalanceWaits (M58): a job that is to change hands stays where it is until what is
// in hand has come to an end; nobody else has it meanwhile, though that takes longer than
// a term. All others move. That a job does not come to an end holds up nothing but itself.
func TestGroupRebalanceWaits(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
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
		first := x.join(jobs, map[int]func(context.Context, *rowfeed.Job) error{jobs - 1: hang})
		was := x.awaitBalance("g", jobs, 1, standing{})
		second := x.join(jobs, nil)
		hung := <-asked
		was2 := x.awaitBalance("g", jobs, 2, was)
		x.eventually("two terms pass", func() bool { return x.standing("g", jobs).beats(was2) > 8 })
		if first.hasReleased(jobs, hung) {
			x.Errorf("job %d is released while it is done", hung)
		}
		now := x.standing("g", jobs)
		if now.epochs[hung] != was.epochs[hung] || now.owners[hung] != was.owners[hung] {
			first.unlessLost("job %d had epoch %d of %s, and has %d of %s", hung, was.epochs[hung], was.owners[hung], now.epochs[hung], now.owners[hung])
		}
		if one, two := first.numbers(), second.numbers(); (len(one) != 2 || len(two) != 2) && second.losses() == 0 {
			first.unlessLost("beside a job that hangs the members have %v and %v", one, two)
		}
		now = x.standing("g", jobs)
		close(done)
		x.eventually("the job is free for others", func() bool { return x.standing("g", jobs).epochs[hung] > was.epochs[hung] })
		x.awaitBalance("g", jobs, 2, now)
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
	each(t, func(x *env) {
		const jobs = 2
		done := make(chan struct{})
		// A job that is begun after done is closed stays: the balance would come and go with it.
		hang := func(ctx context.Context, j *rowfeed.Job) error { <-done; return untilAsked(ctx, j) }
		first := x.join(jobs, map[int]func(context.Context, *rowfeed.Job) error{0: hang, 1: hang})
		was := x.awaitBalance("g", jobs, 1, standing{})
		second := x.join(jobs, nil)
		x.eventually("the newcomer has a seat", func() bool { return len(x.standing("g", jobs).seats) == 2 })
		// Of the member that has the jobs.
		before, sent := x.standing("g", jobs), second.sent.Load()
		beats := func(s standing) int64 { return s.beatsOf(was.owners[0], before) }
		x.eventually("two terms pass", func() bool { return beats(x.standing("g", jobs)) >= 8 })
		// A beat is a look, a renewal, and perhaps a setting of its transaction. Who asks on
		// has six beats to one. (Counted before the beats: the test may stand still in between.)
		n := second.sent.Load() - sent
		now := x.standing("g", jobs)
		if n > 6*(beats(now)+4) {
			first.unlessLost("who waits for a job has sent %d statements in %d beats", n, beats(now))
		}
		if now.takeOver != was.takeOver {
			first.unlessLost("epochs %v were %v before the newcomer came", now.epochs, was.epochs)
		}
		close(done)
		x.awaitBalance("g", jobs, 2, now)
		first.end()
		second.end()
	})
}

// TestGroupLostLease (M54): a job whose term is lost ends at once, with the reason; the
// others go on. It is taken again under a higher epoch, and not before its work has
// returned.
func TestGroupLostLease(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		const jobs = 3
		causes, go1 := make(chan error, 8), make(chan struct{})
		watch := func(ctx context.Context, j *rowfeed.Job) error {
			if err := untilAsked(ctx, j); ctx.Err() == nil {
				return err
			}
			causes <- context.Cause(ctx)
			<-go1
			return ctx.Err()
		}
		p := x.join(jobs, map[int]func(context.Context, *rowfeed.Job) error{1: watch})
		was := x.awaitBalance("g", jobs, 1, standing{})
		if _, err := x.rf.Admin().ReleaseLease(x.ctx, admin.JobLease("g", jobs, 1), 0); err != nil {
			x.Fatal(err)
		}
		x.eventually("the job learns of it", func() bool { return len(causes) > 0 })
		x.wantCode(<-causes, rowfeed.LeaseLost)
		now := x.standing("g", jobs)
		x.eventually("four beats", func() bool { return x.standing("g", jobs).beats(now) >= 4 })
		if s := x.standing("g", jobs); s.epochs[1] != was.epochs[1] {
			x.Error("a job is taken again while its work goes on")
		}
		close(go1)
		now = x.awaitBalance("g", jobs, 1, x.standing("g", jobs))
		if lost := p.losses(); now.epochs[1] == was.epochs[1] || lost == 1 && (now.epochs[0] != was.epochs[0] || now.epochs[2] != was.epochs[2]) {
			x.Errorf("epochs %v were %v before one of them was lost", now.epochs, was.epochs)
		}
		// So does a seat that is lost, and nothing else happens.
		for name := range map[string]bool{now.seats[now.owners[0]].Name: true} {
			if _, err := x.rf.Admin().ReleaseLease(x.ctx, name, 0); err != nil {
				x.Fatal(err)
			}
		}
		after := x.awaitBalance("g", jobs, 1, x.standing("g", jobs))
		if p.losses() == 1 && after.takeOver != now.takeOver {
			x.Errorf("epochs %v were %v before the seat was lost", after.epochs, now.epochs)
		}
		p.end()
	})
}

// TestGroupStandsBy (M58): of more members than jobs those left over stand by, and change
// nothing. One that goes is replaced.
func TestGroupStandsBy(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		const jobs = 2
		var players []*player
		for range 4 {
			players = append(players, x.join(jobs, nil))
		}
		x.awaitBalance("g", jobs, jobs, standing{})
		// What those do that have looked before the seats were taken is over soon.
		was := x.standing("g", jobs)
		x.eventually("a term passes", func() bool { return x.standing("g", jobs).beats(was) >= 4 })
		var idle, busy []*player
		x.eventually("two members have a job each", func() bool {
			was, idle, busy = x.standing("g", jobs), nil, nil
			for _, p := range players {
				if len(p.numbers()) == 0 {
					idle = append(idle, p)
				} else {
					busy = append(busy, p)
				}
			}
			return was.balanced(jobs, jobs) && len(idle) == 2
		})
		wrote := map[*player]int64{}
		for _, p := range idle {
			wrote[p] = p.wrote.Load()
		}
		x.eventually("two terms pass", func() bool { return x.standing("g", jobs).beats(was) >= 8 })
		for _, p := range idle {
			wrote[p] = p.wrote.Load() - wrote[p]
		}
		now := x.standing("g", jobs)
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
		x.awaitBalance("g", jobs, jobs, now)
		for _, p := range idle {
			x.eventually("who stood by has a job", func() bool { return len(p.numbers()) == 1 })
			p.end()
		}
	})
}

// TestGroupThroughOutage (M54, M57): a member that loses the database stops its jobs when
// their terms are over, and others take them; when all lose it nobody has any. They come
// back by themselves.
func TestGroupThroughOutage(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		first, second := x.join(groupJobs, nil), x.join(groupJobs, nil)
		was := x.awaitBalance("g", groupJobs, 2, standing{})
		first.cut.Store(true)
		x.awaitBalance("g", groupJobs, 1, was)
		x.eventually("the one without a database has stopped", func() bool { return len(first.numbers()) == 0 })
		was = x.standing("g", groupJobs)
		first.cut.Store(false)
		x.awaitBalance("g", groupJobs, 2, was)
		first.cut.Store(true)
		second.cut.Store(true)
		x.eventually("nobody has any job", func() bool { return len(first.numbers())+len(second.numbers()) == 0 })
		was = x.standing("g", groupJobs)
		first.cut.Store(false)
		second.cut.Store(false)
		x.awaitBalance("g", groupJobs, 2, was)
		// The database's clock leaps ahead: all is lost, and found again.
		now := x.standing("g", groupJobs)
		x.leap(time.Hour)
		x.eventually("every job is begun again", func() bool {
			s := x.standing("g", groupJobs)
			return s.balanced(groupJobs, 2) && s.takeOver >= now.takeOver+groupJobs
		})
		first.end()
		second.end()
	})
}

// TestGroupError (M24): the error of a job ends its member, which leaves its jobs to others at
// once.
func TestGroupError(t *testing.T) {
	each(t, func(x *env) {
		fail := make(chan struct{})
		first := x.join(groupJobs, map[int]func(context.Context, *rowfeed.Job) error{0: func(ctx context.Context, j *rowfeed.Job) error {
			select {
			case <-ctx.Done():
			case <-j.HandOver():
			case <-fail:
				return errOff
			}
			return nil
		}})
		was := x.awaitBalance("g", groupJobs, 1, standing{})
		close(fail)
		if err := <-first.ended; err != errOff {
			x.Errorf("Run: %v", err)
		}
		second := x.join(groupJobs, nil)
		x.awaitBalance("g", groupJobs, 1, was)
		second.end()
		for _, g := range []*rowfeed.Group{x.rf.Group("two words", 1, groupTTL), x.rf.Group("g", 0, groupTTL), x.rf.Group("g", 1, 0)} {
			x.wantCode(g.Run(x.ctx, untilAsked), rowfeed.InvalidRequest)
		}
	})
}

// TestGroupIdleCost (M53): a member sends one statement that renews all it has and one
// look at all others to a beat, whatever the number of jobs, and beats no more than four
// times in a term; one that stands by looks only. A bubble's clock runs through ten idle
// minutes.
func TestGroupIdleCost(t *testing.T) {
	testdb.SQLite.Require(t)
	const jobs, ttl, idle = 8, 10 * time.Second, 10 * time.Minute
	for _, members := range []int{1, 8, 10} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			x := newEnv(t, testdb.SQLite, nil)
			x.migrate()
			synctest.Test(t, func(t *testing.T) {
				var renewals, looks, others atomic.Int64
				var watching atomic.Bool
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, members)
				inside := *x // with a pool of the bubble's
				for range members {
					pool, err := testdb.OpenURL(x.db.URL, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
					rf, err := rowfeed.Open(t.Context(), pool, x.dialect, nil)
					if err != nil {
						t.Fatal(err)
					}
					inside.rf = rf
					go func() { ended <- rf.Group("g", jobs, ttl).Run(ctx, untilAsked) }()
				}
				rest(ctx, 3*ttl) // of the bubble
				before := inside.standing("g", jobs)
				if !before.balanced(jobs, min(members, jobs)) {
					t.Errorf("after three terms: %v", before.shares)
				}
				watching.Store(true)
				rest(ctx, idle)
				watching.Store(false)
				after := inside.standing("g", jobs)
				stop()
				for range members {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				most, least := int64(4*members)*int64(idle/ttl), int64(3*members)*int64(idle/ttl)
				if n := looks.Load(); n > most || n < least {
					t.Errorf("%d looks in %d terms, want %d to %d", n, idle/ttl, least, most)
				}
				if n := renewals.Load(); n > most || n < least/int64(members)*int64(min(members, jobs)) {
					t.Errorf("%d renewals in %d terms", n, idle/ttl)
				}
				// A transaction may have a setting of its own.
				if others.Load() > renewals.Load() || after.takeOver != before.takeOver {
					t.Errorf("%d other statements, %d jobs changed hands", others.Load(), after.takeOver-before.takeOver)
				}
				t.Logf("%d members: %d renewals and %d looks in %s", members, renewals.Load(), looks.Load(), idle)
			})
		})
	}
}

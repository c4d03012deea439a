package lease

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// hangsOnce makes one statement hang until its sender abandons it, as on a connection that the network has dropped. The
// next statement gets another connection. The test sets arm before the statement, and hung is closed after it. All of
// it runs on a synthetic clock, on which statements take no time, so the test does not depend on the machine.
func hangsOnce(
	t *testing.T, x *suite.Env, match string, observer *rowfeed.Observer,
) (rf *rowfeed.DB, arm *atomic.Bool, hung chan struct{}) {
	t.Helper()
	arm, hung = &atomic.Bool{}, make(chan struct{})
	pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, match) && arm.CompareAndSwap(true, false) {
			<-ctx.Done()
			close(hung)
			return ctx.Err()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	if rf, err = rowfeed.Open(t.Context(), pool, x.Dialect, &rowfeed.Config{Observer: observer}); err != nil {
		t.Fatal(err)
	}
	return rf, arm, hung
}

const hangTTL = 10 * time.Second

// TestHungStatementCostsNoJob (M24, M54): one statement of a member hangs. The member abandons it in time for another
// one on another connection, and loses no job.
func TestHungStatementCostsNoJob(t *testing.T) {
	testdb.SQLite.Require(t) // the statement hangs before it reaches a database
	for name, match := range map[string]string{"renew": "renewals = renewals + 1", "look": "name >= "} {
		t.Run(name, func(t *testing.T) {
			x := suite.NewEnv(t, testdb.SQLite, nil)
			x.Migrate()
			synctest.Test(t, func(t *testing.T) {
				var lost atomic.Int64
				rf, arm, hung := hangsOnce(t, x, match, &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
					if e.Kind == rowfeed.JobLost {
						lost.Add(1)
					}
				}})
				inside := *x // with a pool on the synthetic clock
				inside.RF = rf
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				ended := make(chan error, 1)
				go func() { ended <- rf.Group("g", suite.GroupJobs, hangTTL).Run(ctx, suite.UntilAsked) }()
				suite.Rest(ctx, 3*hangTTL)
				was := inside.Standing("g", suite.GroupJobs)
				if !was.Balanced(suite.GroupJobs, 1) {
					t.Errorf("after three times the ttl: %v", was.Shares)
				}
				arm.Store(true)
				<-hung
				hangs := inside.Standing("g", suite.GroupJobs)
				suite.Rest(ctx, 3*hangTTL)
				if s := inside.Standing("g", suite.GroupJobs); lost.Load() > 0 || s.TakeOver != was.TakeOver ||
					s.Beats(hangs) < 2 {
					t.Errorf("%d jobs were lost, %d moved, %d beats", lost.Load(), s.TakeOver-was.TakeOver,
						s.Beats(hangs))
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestHungRenewalCostsNoClaim (M54): one renewal of a single lease hangs. Another renewal keeps the claim.
func TestHungRenewalCostsNoClaim(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	synctest.Test(t, func(t *testing.T) {
		rf, arm, hung := hangsOnce(t, x, "renewals = renewals + 1", nil)
		err := rf.Lease("alone", hangTTL).Hold(t.Context(), func(ctx context.Context, claim *rowfeed.Claim) error {
			arm.Store(true)
			<-hung
			was := claim.Deadline()
			suite.Rest(ctx, hangTTL)
			if !claim.Deadline().After(was) {
				t.Error("the claim is not renewed")
			}
			return context.Cause(ctx)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

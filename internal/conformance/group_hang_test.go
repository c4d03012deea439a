package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/testdb"
)

// hangsOnce makes one statement hang until whoever sent it gives it up, as on a connection
// that was dropped on the way: the next statement finds another one. It is armed from
// without, and hung tells when that is over.
func (x *env) hangsOnce(match string, observer *rowfeed.Observer) (rf *rowfeed.DB, arm *atomic.Bool, hung chan struct{}) {
	x.Helper()
	arm, hung = &atomic.Bool{}, make(chan struct{})
	return x.tappedDB(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, match) && arm.CompareAndSwap(true, false) {
			<-ctx.Done()
			close(hung)
			return ctx.Err()
		}
		return nil
	}}, &rowfeed.Config{Observer: observer}), arm, hung
}

// hangTTL leaves a slow machine time after the statement that hangs.
const hangTTL = 8 * time.Second

// TestGroupHungStatement (M24, M54): one statement of a member hangs. It is given up in time
// for another, on another connection, and no job is lost.
func TestGroupHungStatement(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]string{"renew": "renewals = renewals + 1", "look": "name >= "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(x *env) {
				var lost atomic.Int64
				rf, arm, hung := x.hangsOnce(match, &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
					if e.Kind == rowfeed.JobLost {
						lost.Add(1)
					}
				}})
				ctx, stop := context.WithCancel(x.ctx)
				defer stop()
				ended := make(chan error, 1)
				go func() { ended <- rf.Group("g", groupJobs, hangTTL).Run(ctx, untilAsked) }()
				was := x.awaitBalance("g", groupJobs, 1, standing{})
				arm.Store(true)
				<-hung
				hangs := x.standing("g", groupJobs)
				x.eventually("terms are renewed after that", func() bool {
					now := x.standing("g", groupJobs)
					return lost.Load() > 0 || now.beats(hangs) >= 2
				})
				if s := x.standing("g", groupJobs); lost.Load() > 0 || s.takeOver != was.takeOver {
					x.Errorf("%d jobs were lost, %d changed hands", lost.Load(), s.takeOver-was.takeOver)
				}
				stop()
				if err := <-ended; err != nil {
					x.Error(err)
				}
			})
		})
	}
}

// TestLeaseHungRenewal (M54): of a lease that is held by itself one renewal hangs; another
// saves it.
func TestLeaseHungRenewal(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		rf, arm, hung := x.hangsOnce("renewals = renewals + 1", nil)
		err := rf.Lease("alone", hangTTL).Hold(x.ctx, func(ctx context.Context, term *rowfeed.Term) error {
			arm.Store(true)
			<-hung
			was := term.Deadline()
			x.eventually("the term is renewed", func() bool { return ctx.Err() != nil || term.Deadline().After(was) })
			return context.Cause(ctx)
		})
		if err != nil {
			x.Error(err)
		}
	})
}

package lease

import (
	"context"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestStandbyIsReportedOnce (M53): a member beyond the number of jobs reports that it stands by, once, however often it
// polls, and gets a job when one is free.
func TestStandbyIsReportedOnce(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		rf, said := x.Standby()
		seat, err := x.RF.Lease("standby/1/seat/0", time.Hour).TryAcquire(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		ctx, stop := context.WithCancel(x.Ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() {
			g := rf.Group("standby", 1, 400*time.Millisecond)
			ended <- g.Run(ctx, func(ctx context.Context, _ *rowfeed.Job) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		x.Eventually("it polls repeatedly", func() bool { return said.Looks.Load() > 5 })
		if told := said.Of(rowfeed.JobStandsBy); len(told) != 1 || told[0].Job != -1 || told[0].Jobs != 1 {
			x.Errorf("said: %+v", told)
		}
		if err := seat.Release(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Eventually("it has the job", func() bool { return len(said.Of(rowfeed.JobBegun)) > 0 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
	})
}

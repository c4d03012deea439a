package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFailedRelaySaysWhatItIs (M72): a relay that ran once and has delivered nothing is listed as failing, with its
// error and its target, and not as a consumer that is behind. The process that works on its only shard is named. After
// a delivery it is as others.
func TestFailedRelaySaysWhatItIs(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(2)
		x.Publish(f)
		s, off := &spy{Env: x}, true
		s.decide = func(sink.Entry) sink.Result {
			if off {
				return sink.Retry(0, suite.ErrOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.Target = "https://receiver.example/hook"
		x.WantCode(r.RunOnce(x.Ctx), rowfeed.Unavailable)
		list := func() admin.ConsumerStatus {
			x.Helper()
			all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{})
			if err != nil || len(all) != 1 {
				x.Fatalf("consumers: %+v, %v", all, err)
			}
			return all[0]
		}
		c := list()
		if c.State() != "failing" || c.Target != r.Target || c.Failure.Attempts != 1 || !c.Failure.NextTry.IsZero() ||
			!strings.Contains(c.Failure.Error, suite.ErrOff.Error()) || c.Lease != nil {
			x.Errorf("%+v fails with %+v", c, c.Failure)
		}
		failing, err := x.RF.Admin().Failing(x.Ctx)
		if err != nil || len(failing) != 1 || failing[0].Kind != admin.KindRelay || failing[0].Target != r.Target {
			x.Errorf("failing: %+v, %v", failing, err)
		}
		claim, err := x.RF.Lease(relays.LeaseName("test", "kv"), time.Hour).TryAcquire(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if c := list(); c.Lease == nil || c.Lease.Owner != claim.Owner() {
			x.Errorf("the relay's process is %+v", c.Lease)
		}
		if err := claim.Release(x.Ctx); err != nil {
			x.Fatal(err)
		}
		off = false
		s.run(r)
		if c := list(); c.State() != "ok" || c.Target != r.Target {
			x.Errorf("after a delivery: %+v", c)
		}
	})
}

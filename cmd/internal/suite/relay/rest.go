package relay

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestRefusedEntryStopsOnlyItsShard (M72): the receiver of a relay of two shards refuses an entry. Later entries of the
// same shard wait, and the other shard continues.
func TestRefusedEntryStopsOnlyItsShard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, s := x.AddShards(8), &spy{Env: x}
		good, bad := suite.IDsOf(1, 2, 8, 0, 4), suite.IDsOf(1, 2, 8, 4, 8)
		var mended atomic.Bool
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == bad[0] && !mended.Load() {
				return sink.Reject(suite.ErrOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.ShardCount, r.Lease = 2, suite.GroupTTL
		x.InsertIDs(good[0], bad[0])
		x.Publish(f)
		ctx, stop := context.WithCancel(x.Ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		at := func(want ...int64) func() bool {
			return func() bool {
				select {
				case err := <-ended:
					x.Fatalf("the relay has ended: %v", err)
				default:
				}
				got, _ := x.Positions("test")
				return slices.Equal(got, want)
			}
		}
		x.Eventually("one shard is through", at(2, 0))
		x.Eventually("it is said why the other rests", func() bool {
			all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer)
			return err == nil && len(all) == 2 && all[0].Failure == nil &&
				strings.Contains(suite.ErrorOf(all[1].Failure), suite.ErrOff.Error())
		})
		x.InsertIDs(good[1], bad[1])
		x.Publish(f)
		x.Eventually("one shard continues", at(4, 0))
		mended.Store(true)
		x.Eventually("so does the other", at(4, 4))
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
	})
}

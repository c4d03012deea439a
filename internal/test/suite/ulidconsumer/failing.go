package ulidconsumer

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// failingWatermarks is a source whose watermarks cannot be read so many times.
type failingWatermarks struct {
	*rowfeed.Feed
	times atomic.Int64
}

func (s *failingWatermarks) Standings(
	ctx context.Context, since string, wait time.Duration,
) (*feedtype.Standings, error) {
	if s.times.Add(-1) >= 0 {
		return nil, &rowfeed.Error{Code: rowfeed.Unavailable, Object: "the server", Cause: "it is away"}
	}
	return s.Feed.Standings(ctx, since, wait)
}

// TestWorkerSuccessKeepsFailureOfShard (M72): a shard of a ULID feed rests after a failure. Then the watermarks cannot
// be read three times, and are read again. That is one recovery, after three attempts, and the shard is still failing.
func TestWorkerSuccessKeepsFailureOfShard(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the test is about no database
	suite.EachOutbox(t, func(x *suite.Events) {
		r := x.Taker(nil)
		source := &failingWatermarks{Feed: x.Feed}
		recovered := make(chan rowfeed.RecoveredEvent, 100)
		rf := x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{
			Recovered: func(e rowfeed.RecoveredEvent) { recovered <- e },
		}})
		c := r.Consumer(source, rf)
		c.Options.Retry = rowfeed.Retry{MaxAttempts: 1, Backoff: time.Microsecond, MaxBackoff: time.Hour}
		x.Appended(1, 5, time.Time{})
		x.Appended(2, 6, time.Time{})
		r.Once(c)
		r.Fail = func(e rowfeed.Entry) error {
			if suite.IDOf(e) == 3 {
				return suite.ErrOff
			}
			return nil
		}
		x.Appended(3, 5, time.Time{})
		failing := func() (of []int, attempts int) {
			all, err := x.RF.Admin().Failing(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			for _, f := range all {
				rests := time.Until(f.NextTry) > time.Minute // and is not merely between two attempts
				if rests && strings.Contains(f.Error, suite.ErrOff.Error()) {
					of, attempts = append(of, f.Shard), f.Attempts
				}
			}
			return of, attempts
		}
		stop := r.Run(c)
		x.Eventually("the shard rests", func() bool { of, _ := failing(); return len(of) == 1 })
		_, before := failing()
		source.times.Store(3)
		x.Appended(4, 6, time.Time{}) // the worker asks for watermarks again
		if e := <-recovered; e.Shard == 5 || e.Attempts != 3 {
			t.Errorf("recovered: %+v", e)
		}
		if of, attempts := failing(); len(of) != 1 || of[0] != 5 || attempts != before {
			t.Errorf("failing: shards %v after %d attempts, before %d", of, attempts, before)
		}
		r.AwaitApplied("the other shard is read", "5: 1", "6: 2 4")
		if err := stop(); err != nil && err != context.Canceled {
			t.Fatal(err)
		}
	})
}

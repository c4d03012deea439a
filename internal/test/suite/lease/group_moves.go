package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFewestJobsMove (M24): when a member joins or leaves, no more jobs move than necessary, three times the TTL are
// enough, and in quiet times no job moves. The test runs on a synthetic clock on which statements take no time, so it
// does not depend on the machine.
func TestFewestJobsMove(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 10 * time.Second
		inside := *x // with a pool on the synthetic clock
		type moving struct {
			stop  context.CancelFunc
			ended chan error
			has   atomic.Int64
		}
		join := func() *moving {
			m := &moving{ended: make(chan error, 1)}
			pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			rf, err := rowfeed.Open(t.Context(), pool, x.Dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			inside.RF = rf
			ctx, stop := context.WithCancel(t.Context())
			m.stop = stop
			go func() {
				defer pool.Close()
				g := rf.Group("g", suite.GroupJobs, ttl)
				m.ended <- g.Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
					m.has.Add(1)
					defer m.has.Add(-1)
					return suite.UntilAsked(ctx, j)
				})
			}()
			return m
		}
		var was int64
		after := func(event string, members int, want int64) {
			t.Helper()
			suite.Rest(t.Context(), 3*ttl)
			s := inside.Standing("g", suite.GroupJobs)
			if moved := s.TakeOver - was; moved != want || !s.Balanced(suite.GroupJobs, members) {
				t.Errorf("%s: %d jobs have changed hands, want %d; shares %v", event, moved, want, s.Shares)
			}
			was = s.TakeOver
			suite.Rest(t.Context(), 10*ttl)
			if s := inside.Standing("g", suite.GroupJobs); s.TakeOver != was {
				t.Errorf("%s: %d jobs have changed hands in quiet times", event, s.TakeOver-was)
				was = s.TakeOver
			}
		}
		all := []*moving{join()}
		after("the first", 1, suite.GroupJobs)
		for n := int64(2); n <= 7; n++ {
			all = append(all, join())
			after(fmt.Sprintf("%d members", n), int(n), suite.GroupJobs/n)
		}
		for len(all) > 3 {
			m := all[0]
			all = all[1:]
			has := m.has.Load()
			m.stop()
			if err := <-m.ended; err != nil {
				t.Error(err)
			}
			after("one leaves", len(all), has)
		}
		for _, m := range all {
			m.stop()
			if err := <-m.ended; err != nil {
				t.Error(err)
			}
		}
	})
}

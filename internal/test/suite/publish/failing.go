package publish

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPublisherFailureIsStored (M72): what a publisher fails with is stored with its feed: of one that runs, and of one
// call of Publish. The next success removes it, also that of another process, and an event says so.
func TestPublisherFailureIsStored(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(1)
		failing := func() (all []admin.Failing) {
			x.Helper()
			all, err := x.RF.Admin().Failing(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			return all
		}
		x.Exec("ALTER TABLE rowfeed_positions_kv RENAME TO away")
		if _, err := f.Publish(x.Ctx); err == nil {
			x.Error("published without its table")
		}
		once := failing()
		if len(once) != 1 || once[0].Kind != admin.KindPublisher || once[0].Feed != "kv" || once[0].Attempts != 1 ||
			!strings.Contains(once[0].Error, "publish") || strings.Contains(once[0].Error, `feed "kv"`) ||
			!once[0].NextTry.IsZero() || once[0].Since.IsZero() {
			x.Fatalf("after Publish: %+v", once)
		}
		x.Exec("ALTER TABLE away RENAME TO rowfeed_positions_kv")
		another, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if n, err := another.Publish(x.Ctx); n != 1 || err != nil || len(failing()) > 0 {
			x.Errorf("another process has published %d, %v; failing: %+v", n, err, failing())
		}
		x.FillFrom(2, 2)
		x.Exec("ALTER TABLE rowfeed_positions_kv RENAME TO away")
		if _, err := f.Publish(x.Ctx); err == nil {
			x.Error("published without its table")
		}
		once = failing()
		recovered := make(chan rowfeed.RecoveredEvent, 10)
		other := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Observer: &rowfeed.Observer{
			Recovered: func(e rowfeed.RecoveredEvent) { recovered <- e }}})
		g, err := other.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		ctx, cancel := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- g.RunPublisher(ctx) }()
		x.Eventually("a second attempt is stored", func() bool {
			all := failing()
			return len(all) == 1 && all[0].Attempts > 1 && all[0].Since.Equal(once[0].Since) && !all[0].NextTry.IsZero()
		})
		x.Exec("ALTER TABLE away RENAME TO rowfeed_positions_kv")
		if e := <-recovered; e.Feed != "kv" || e.Consumer != "" || e.Attempts < 2 {
			x.Errorf("recovered: %+v", e)
		}
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || status.Failure != nil || len(failing()) > 0 {
			x.Errorf("after a success: %+v, %v", status, err)
		}
	})
}

// TestSuccessRemovesUnknownFailure (M72): a publisher removes a failure that another process has stored after this one
// has read the feed's record. It looks for one at its first success, and then not at each pass. The statement is
// bounded.
func TestSuccessRemovesUnknownFailure(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(1)
		var removed atomic.Int64
		rf := x.TappedDB(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "SET failure = NULL") {
				removed.Add(1)
				if _, bounded := ctx.Deadline(); !bounded {
					x.Errorf("without a deadline: %s", ev.SQL)
				}
			}
			return nil
		}}, nil)
		another, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("ALTER TABLE rowfeed_positions_kv RENAME TO away")
		if _, err := f.Publish(x.Ctx); err == nil {
			x.Error("published without its table")
		}
		x.Exec("ALTER TABLE away RENAME TO rowfeed_positions_kv")
		for id := 2; id <= 4; id++ {
			if n, err := another.Publish(x.Ctx); n != 1 || err != nil {
				x.Errorf("published %d, %v", n, err)
			}
			x.FillFrom(id, id)
		}
		if all, err := x.RF.Admin().Failing(x.Ctx); err != nil || len(all) > 0 {
			x.Errorf("after a success: %+v, %v", all, err)
		}
		if n := removed.Load(); n != 1 {
			x.Errorf("%d statements that remove a failure, want 1", n)
		}
	})
}

// TestRestoringSessionIsBounded (H18): a publisher does not wait without a bound for a connection that it returns to
// the pool. If the connection cannot be restored, the next pass uses another one.
func TestRestoringSessionIsBounded(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		restore := x.Dialect.Begin(dialect.ForPublish, dialect.Names{}).After
		if restore == "" {
			return // nothing to restore
		}
		x.AddKV()
		var failed atomic.Int64
		rf := x.TappedDB(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if failed.Load() == ev.Conn {
				x.Errorf("a connection that was not restored is used again: %s", ev.SQL)
			}
			if ev.SQL != restore {
				return nil
			}
			if _, bounded := ctx.Deadline(); !bounded {
				x.Errorf("without a deadline: %s", ev.SQL)
			}
			if failed.CompareAndSwap(0, ev.Conn) {
				return context.DeadlineExceeded
			}
			return nil
		}}, nil)
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for id := 1; id <= 2; id++ {
			x.FillFrom(id, id)
			if n, err := f.Publish(x.Ctx); n != 1 || err != nil {
				x.Errorf("published %d, %v", n, err)
			}
		}
		if failed.Load() == 0 {
			x.Error("no session was restored")
		}
	})
}

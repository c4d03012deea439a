package publish

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPublisherThatCannotLetsGo: the publisher that has the feed's lease fails at every
// pass, for a reason of its own. It gives its turn to one that can.
func TestPublisherThatCannotLetsGo(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		var failed atomic.Int64
		cannot := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if takes(ev) {
				failed.Add(1)
				return testdb.ErrInjected
			}
			return nil
		}}, &rowfeed.Config{PublisherLease: 30 * time.Second})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 2)
		defer func() {
			stop()
			for range 2 {
				if err := <-ended; err != nil {
					x.Error(err)
				}
			}
		}()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		go func() { ended <- cannot.RunPublisher(ctx) }()
		x.Eventually("the one that cannot has its turn", func() bool { return failed.Load() > 0 })
		go func() { ended <- f.RunPublisher(ctx) }()
		x.Eventually("the other one publishes", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_changes_kv") == 0 })
	})
}

// TestConsistentThoughSeqsBeginAnew: a writer fills the table of changes again after
// every pass that has emptied it. On SQLite its seqs then begin at 1, below those that
// the request waits for; the request comes to its end all the same.
func TestConsistentThoughSeqsBeginAnew(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(10)
		var passes atomic.Int64
		f := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if takes(ev) {
				passes.Add(1)
			}
			if n := passes.Load(); ev.Kind == testdb.Commit && n > 0 && n < 100 {
				x.Exec("INSERT INTO kv SELECT max(id) + 1, 'k', 0 FROM kv")
			}
			return err
		}}, nil)
		if _, err := f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Wait: time.Minute}); err != nil {
			x.Error(err)
		}
		if n := passes.Load(); n > 3 {
			x.Errorf("%d passes for changes that fit into one", n)
		}
	})
}

// TestRepairTakesItsTime: repairing reads whole tables, which no bound on the time of a
// statement may cut off for ever.
func TestRepairTakesItsTime(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		if x.Family() != "postgres" {
			return // the others set no such bound
		}
		x.Exec("DELETE FROM rowfeed_positions_kv WHERE id = 2", "CREATE TABLE bounds (bound text)", `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO bounds VALUES (current_setting('statement_timeout')); RETURN NULL; END $$`,
			"CREATE TRIGGER note AFTER INSERT ON rowfeed_changes_kv FOR EACH ROW EXECUTE FUNCTION note()")
		if n, err := f.Admin().Repair(x.Ctx); n != 1 || err != nil {
			x.Fatalf("%d keys repaired, %v", n, err)
		}
		if n := x.Scalar("SELECT count(*) FROM bounds WHERE bound = '0'"); n != 1 {
			x.Error("a statement of repair may not take longer than others")
		}
	})
}

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

// TestFailingPublisherReleasesLease: a publisher that holds the feed's lease and fails in every pass releases the
// lease, so that another publisher can work.
func TestFailingPublisherReleasesLease(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		var failed atomic.Int64
		failing := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
		go func() { ended <- failing.RunPublisher(ctx) }()
		x.Eventually("the failing publisher holds the lease", func() bool { return failed.Load() > 0 })
		go func() { ended <- f.RunPublisher(ctx) }()
		x.Eventually("the other publisher publishes", x.AllPublished)
	})
}

// TestConsistentEndsThoughSeqsRestart: a writer inserts a change after every pass that has emptied the table of
// changes. If the database then starts seqs at 1 again, they are below those that a consistent request waits for. The
// request ends all the same.
func TestConsistentEndsThoughSeqsRestart(t *testing.T) {
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

// TestRepairHasNoStatementTimeout: repair reads whole tables, so it runs without the timeout that other statements
// have.
func TestRepairHasNoStatementTimeout(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		if !x.Has.StatementTimeout {
			return
		}
		x.Exec("DELETE FROM rowfeed_positions_kv WHERE id = 2")
		x.Exec(x.Statements("publish.note_statement_timeout")...)
		if n, err := f.Admin().Repair(x.Ctx); n != 1 || err != nil {
			x.Fatalf("%d keys repaired, %v", n, err)
		}
		if n := x.Scalar("SELECT count(*) FROM bounds WHERE bound = '0'"); n != 1 {
			x.Error("a statement of repair has a timeout")
		}
	})
}

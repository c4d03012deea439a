package ulidconsumer

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFailureIsStoredAtCursorWithEpoch (M72): a cursor has the epoch of a worker with a lease, and a consumer without
// leases continues. The reason of a failure is noted at the cursor.
func TestFailureIsStoredAtCursorWithEpoch(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(-5, 1, 1)
		stop := r.Run(member(r, 2))
		r.AwaitApplied("the first row is consumed", "-5: 1")
		_ = stop()
		r.Fail = func(e rowfeed.Entry) error {
			if suite.IDOf(e) == 2 {
				return suite.ErrOff
			}
			return nil
		}
		r.Add(-5, 2, 2)
		stop = r.Run(member(r, 1))
		r.Eventually("the status says why the shard fails", func() bool {
			all, err := r.RF.Admin().Consumers(r.Ctx, eventID(-5))
			if err != nil || len(all) != 1 || all[0].Epoch == 0 {
				t.Fatalf("the consumer's status is %+v, %v", all, err)
			}
			return strings.Contains(suite.ErrorOf(all[0].Failure), suite.ErrOff.Error())
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStatusMovesNoRecord (M72): the status of a consumer moves no records of an outbox. The number of its statements
// does not depend on the shards that are at their heads. It says whether new shards will be paused.
func TestStatusMovesNoRecord(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		const shards = 40
		for shard := range shards {
			r.Add(shard, shard, shard)
		}
		r.Once(r.Consumer(r.Feed, r.RF))
		var asked atomic.Int64
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Query || ev.Kind == testdb.Exec {
				asked.Add(1)
			}
			return nil
		}}, nil)
		list := func() []admin.ConsumerStatus {
			t.Helper()
			all, err := rf.Admin().Consumers(r.Ctx, rowfeed.ConsumerID{Consumer: "test"})
			if err != nil || len(all) != shards {
				t.Fatalf("the consumer has %d shards, want %d; %v", len(all), shards, err)
			}
			return all
		}
		list() // reads the feed's record
		asked.Store(0)
		for _, s := range list() {
			if s.BehindSeconds == nil || *s.BehindSeconds != 0 || s.NewPaused {
				t.Fatalf("a shard at its head has the status %+v", s)
			}
		}
		if n := asked.Load(); n > 20 {
			t.Errorf("the status of %d shards at their heads needed %d statements", shards, n)
		}
		records := func() int64 {
			if r.Feed.Mode() != rowfeed.ModeOutbox {
				return 0
			}
			return r.Scalar("SELECT count(*) FROM rowfeed_outbox_events")
		}
		r.Add(7, 100, 101)
		before := records()
		r.Eventually("the status has the row's age", func() bool {
			all := list()
			for _, s := range all {
				if s.BehindSeconds == nil || *s.BehindSeconds > 0 && s.Shard != 7 {
					t.Fatalf("a shard at its head has the status %+v", s)
				}
			}
			return *all[7].BehindSeconds > 0
		})
		if _, err := r.Feed.Admin().Status(r.Ctx); err != nil {
			t.Fatal(err)
		}
		if n := records(); n != before {
			t.Errorf("the outbox has %d records, and before it had %d", n, before)
		}

		all := rowfeed.ConsumerID{Consumer: "test", Feed: "events"}
		if _, err := r.RF.Admin().PauseConsumer(r.Ctx, all); err != nil {
			t.Fatal(err)
		}
		if paused, err := r.RF.Admin().PausedShards(r.Ctx, all); err != nil || len(paused) != shards {
			t.Errorf("the paused shards are %v, want all; %v", paused, err)
		}
		for shard := range shards {
			if _, err := r.RF.Admin().ResumeConsumer(r.Ctx, eventID(shard)); err != nil {
				t.Fatal(err)
			}
		}
		if paused, err := r.RF.Admin().PausedShards(r.Ctx, all); err != nil || len(paused) != 0 {
			t.Errorf("the paused shards are %v, want none; %v", paused, err)
		}
		if s := list()[3]; s.Paused || !s.NewPaused {
			t.Errorf("the status is %+v, want new shards paused and this one not", s)
		}
		if _, err := r.RF.Admin().ResumeConsumer(r.Ctx, all); err != nil {
			t.Fatal(err)
		}
		if s := list()[3]; s.NewPaused {
			t.Errorf("the status is %+v, want new shards not paused", s)
		}

		// In an outbox, shard 99 has a record that was not moved, and no entry.
		r.Exec("UPDATE rowfeed_cursors SET shard = 99, value = '', generation = 0 WHERE shard = 39")
		r.Add(99, 300, 300)
		before = records()
		r.Eventually("the status has the record's age", func() bool { return *list()[39].BehindSeconds > 0 })
		if n := records(); n != before {
			t.Errorf("the outbox has %d records, and before it had %d", n, before)
		}
	})
}

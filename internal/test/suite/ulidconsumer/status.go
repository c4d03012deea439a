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

// TestFailureIsNotedAfterEpochs (M72): why a shard rests is noted, also where its cursor has the epoch of workers that
// the consumer had before.
func TestFailureIsNotedAfterEpochs(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(-5, 1, 1)
		stop := r.Run(member(r, 2))
		r.AwaitApplied("the first", "-5: 1")
		_ = stop()
		r.Fail = func(e rowfeed.Entry) error {
			if suite.IDOf(e) == 2 {
				return suite.ErrOff
			}
			return nil
		}
		r.Add(-5, 2, 2)
		stop = r.Run(member(r, 1))
		r.Eventually("it says why it rests", func() bool {
			all, err := r.RF.Admin().Consumers(r.Ctx, eventID(-5))
			if err != nil || len(all) != 1 || all[0].Epoch == 0 {
				t.Fatalf("%+v, %v", all, err)
			}
			return strings.Contains(all[0].Failure, suite.ErrOff.Error())
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStatusMovesNoRecord (M72): how a consumer stands is told without moving a record, with statements whose
// number does not depend on the shards that are at their heads; that shards will come paused is told.
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
				t.Fatalf("%d, %v", len(all), err)
			}
			return all
		}
		list() // it learns of the feed
		asked.Store(0)
		for _, s := range list() {
			if s.BehindSeconds == nil || *s.BehindSeconds != 0 || s.NewPaused {
				t.Fatalf("%+v", s)
			}
		}
		if n := asked.Load(); n > 20 {
			t.Errorf("%d statements for %d shards at their heads", n, shards)
		}
		records := func() int64 {
			if r.Feed.Mode() != rowfeed.ModeOutbox {
				return 0
			}
			return r.Scalar("SELECT count(*) FROM rowfeed_outbox_events")
		}
		r.Add(7, 100, 101)
		before := records()
		r.Eventually("the row's age is told", func() bool {
			all := list()
			for _, s := range all {
				if s.BehindSeconds == nil || *s.BehindSeconds > 0 && s.Shard != 7 {
					t.Fatalf("%+v", s)
				}
			}
			return *all[7].BehindSeconds > 0
		})
		if _, err := r.Feed.Admin().Status(r.Ctx); err != nil {
			t.Fatal(err)
		}
		if n := records(); n != before {
			t.Errorf("%d of %d records are left", n, before)
		}

		all := rowfeed.ConsumerID{Consumer: "test", Feed: "events"}
		if _, err := r.RF.Admin().PauseConsumer(r.Ctx, all); err != nil {
			t.Fatal(err)
		}
		if paused, err := r.RF.Admin().PausedShards(r.Ctx, all); err != nil || len(paused) != shards {
			t.Errorf("paused: %v, %v", paused, err)
		}
		for shard := range shards {
			if _, err := r.RF.Admin().ResumeConsumer(r.Ctx, eventID(shard)); err != nil {
				t.Fatal(err)
			}
		}
		if paused, err := r.RF.Admin().PausedShards(r.Ctx, all); err != nil || len(paused) != 0 {
			t.Errorf("paused: %v, %v", paused, err)
		}
		if s := list()[3]; s.Paused || !s.NewPaused {
			t.Errorf("%+v", s)
		}
		if _, err := r.RF.Admin().ResumeConsumer(r.Ctx, all); err != nil {
			t.Fatal(err)
		}
		if s := list()[3]; s.NewPaused {
			t.Errorf("%+v", s)
		}

		// A shard with nothing but records, of which nobody has moved any.
		r.Exec("UPDATE rowfeed_cursors SET shard = 99, value = '', generation = 0 WHERE shard = 39")
		r.Add(99, 300, 300)
		before = records()
		r.Eventually("the record's age is told", func() bool { return *list()[39].BehindSeconds > 0 })
		if n := records(); n != before {
			t.Errorf("%d of %d records are left", n, before)
		}
	})
}

package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardIDsRestNoted (M72): why a shard rests is noted, also where its cursor has the epoch of workers that
// the consumer had before.
func TestShardIDsRestNoted(t *testing.T) {
	eachULID(t, func(x *events) {
		r := x.taker(func(shard, first, last int) { x.write(shard, first, last) })
		r.add(-5, 1, 1)
		stop := r.run(r.member(2))
		r.awaitApplied("the first", "-5: 1")
		_ = stop()
		r.fail = func(e rowfeed.Entry) error {
			if idOf(e) == 2 {
				return errOff
			}
			return nil
		}
		r.add(-5, 2, 2)
		stop = r.run(r.member(1))
		r.eventually("it says why it rests", func() bool {
			all, err := r.rf.Admin().Consumers(r.ctx, eventID(-5))
			if err != nil || len(all) != 1 || all[0].Epoch == 0 {
				t.Fatalf("%+v, %v", all, err)
			}
			return strings.Contains(all[0].Failure, errOff.Error())
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsStatus (M72): how a consumer stands is told without moving a record, with statements whose
// number does not depend on the shards that are at their heads; that shards will come paused is told.
func TestShardIDsStatus(t *testing.T) {
	eachKind(t, func(r *taker) {
		const shards = 40
		for shard := range shards {
			r.add(shard, shard, shard)
		}
		r.once(r.consumer(r.feed, r.rf))
		var asked atomic.Int64
		rf := r.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Query || ev.Kind == testdb.Exec {
				asked.Add(1)
			}
			return nil
		}}, nil)
		list := func() []admin.ConsumerStatus {
			t.Helper()
			all, err := rf.Admin().Consumers(r.ctx, rowfeed.ConsumerID{Consumer: "test"})
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
			if r.feed.Mode() != rowfeed.ModeOutbox {
				return 0
			}
			return r.scalar("SELECT count(*) FROM rowfeed_outbox_events")
		}
		r.add(7, 100, 101)
		before := records()
		r.eventually("the row's age is told", func() bool {
			all := list()
			for _, s := range all {
				if s.BehindSeconds == nil || *s.BehindSeconds > 0 && s.Shard != 7 {
					t.Fatalf("%+v", s)
				}
			}
			return *all[7].BehindSeconds > 0
		})
		if _, err := r.feed.Admin().Status(r.ctx); err != nil {
			t.Fatal(err)
		}
		if n := records(); n != before {
			t.Errorf("%d of %d records are left", n, before)
		}

		all := rowfeed.ConsumerID{Consumer: "test", Feed: "events"}
		if _, err := r.rf.Admin().PauseConsumer(r.ctx, all); err != nil {
			t.Fatal(err)
		}
		if paused, err := r.rf.Admin().PausedShards(r.ctx, all); err != nil || len(paused) != shards {
			t.Errorf("paused: %v, %v", paused, err)
		}
		for shard := range shards {
			if _, err := r.rf.Admin().ResumeConsumer(r.ctx, eventID(shard)); err != nil {
				t.Fatal(err)
			}
		}
		if paused, err := r.rf.Admin().PausedShards(r.ctx, all); err != nil || len(paused) != 0 {
			t.Errorf("paused: %v, %v", paused, err)
		}
		if s := list()[3]; s.Paused || !s.NewPaused {
			t.Errorf("%+v", s)
		}
		if _, err := r.rf.Admin().ResumeConsumer(r.ctx, all); err != nil {
			t.Fatal(err)
		}
		if s := list()[3]; s.NewPaused {
			t.Errorf("%+v", s)
		}

		// A shard with nothing but records, of which nobody has moved any.
		r.exec("UPDATE rowfeed_cursors SET shard = 99, value = '', generation = 0 WHERE shard = 39")
		r.add(99, 300, 300)
		before = records()
		r.eventually("the record's age is told", func() bool { return *list()[39].BehindSeconds > 0 })
		if n := records(); n != before {
			t.Errorf("%d of %d records are left", n, before)
		}
	})
}

package ulidconsumer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("ulid consumer", func() {
		err := suite.Leasing(func(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "events")
			if err != nil {
				return err
			}
			c := (&suite.Taker{}).Consumer(f, rf)
			c.ShardCount, c.Options.Lease = 3, suite.GroupTTL
			return c.Run(ctx)
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// member is an instance of the consumer with n workers and connections of its own.
func member(r *suite.Taker, n int) *rowfeed.Consumer {
	r.Helper()
	c := r.Consumer(r.Feed, r.TappedDB(testdb.Hooks{}, nil))
	c.ShardCount, c.Options.Lease = n, suite.StuckTTL
	return c
}

// player is a member whose leases expire soon after its end.
func player(r *suite.Taker, n int) *rowfeed.Consumer {
	r.Helper()
	c := member(r, n)
	c.Options.Lease = suite.GroupTTL
	return c
}

// eachOnce waits until all rows have taken effect, and asserts that none did twice.
func eachOnce(r *suite.Taker) {
	r.Helper()
	r.Eventually("everything has taken effect", func() bool {
		return r.Scalar("SELECT count(*) FROM events WHERE id NOT IN (SELECT id FROM applied)") == 0
	})
	if n := r.Scalar("SELECT count(*) FROM (SELECT id FROM applied GROUP BY id HAVING count(*) > 1) AS twice"); n > 0 {
		r.Errorf("%d rows took effect more than once", n)
	}
}

// TestInstancesShareShards (M22, M24, M54): instances of a consumer share its workers, and so the shards. Rows and
// shards are added while one instance joins, one leaves, one is stopped for a while and one is killed. Every row takes
// effect once.
func TestInstancesShareShards(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		id := 0
		shards := []int{-7, 1, 2, 3, 1000000}
		// balanced writes rows until so many instances share the workers, and then a row into a new shard.
		balanced := func(members int) {
			r.Helper()
			r.Eventually(fmt.Sprintf("%d instances share the workers", members), func() bool {
				id++
				r.Add(shards[id%len(shards)], id, id)
				return r.Standing(suite.EventsGroup, 3).Balanced(3, members)
			})
			shards = append(shards, 2000+id)
			id++
			r.Add(2000+id-1, id, id)
		}
		stop := r.Run(player(r, 3))
		balanced(1)
		child, pause, resume := r.Stoppable("ulid consumer")
		balanced(2)
		for _, shard := range shards {
			id++
			r.Add(shard, id, id)
		}
		r.Eventually("the status of every shard has its worker's lease", func() bool {
			owners := r.Standing(suite.EventsGroup, 3).Owners
			all, err := r.RF.Admin().Consumers(r.Ctx, rowfeed.ConsumerID{Consumer: "test"})
			if err != nil {
				t.Fatal(err)
			}
			return len(all) == len(shards) && !slices.ContainsFunc(all, func(s admin.ConsumerStatus) bool {
				return s.Worker == nil || s.Lease == nil || owners[*s.Worker] == "" ||
					!strings.HasPrefix(s.Lease.Owner, owners[*s.Worker])
			})
		})
		pause()
		balanced(1)
		eachOnce(r)
		resume()
		balanced(2)
		child.Kill()
		other := r.Run(player(r, 3))
		balanced(2)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		balanced(1)
		eachOnce(r)
		if err := other(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNewWorkerCountKeepsCursors (M22, H2): an instance with another number of workers starts. No cursor changes, and
// instances with the former number fail. The transaction of a page that such an instance handles is rolled back.
func TestNewWorkerCountKeepsCursors(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		first := member(r, 2)
		ended := make(chan error, 1)
		go func() { ended <- first.Run(r.Ctx) }()
		r.Eventually("the first instance has stored its number of workers", func() bool {
			return r.Scalar("SELECT count(*) FROM rowfeed_consumers WHERE shard_count = 2") == 1
		})
		r.Once(member(r, 3))
		r.WantCode(<-ended, rowfeed.Conflict)

		r.Add(77, 1, 3)
		r.Add(-5, 10, 12)
		r.Once(member(r, 3))
		want := []string{"-5/4 " + string(headOf(r, -5)), "77/4 " + string(headOf(r, 77))}
		r.Once(member(r, 4))
		r.WantCursors("test", want...)

		// An instance with four workers handles a page when another one with two workers starts.
		r.Add(77, 4, 6)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "UPDATE ") &&
				strings.Contains(ev.SQL, "SET value")
		})
		slow := r.Consumer(r.Feed, r.TappedDB(testdb.Hooks{Before: held.Before}, nil))
		slow.ShardCount, slow.Options.Lease = 4, suite.GroupTTL
		go func() { ended <- slow.RunOnce(r.Ctx) }()
		<-held.Reached
		if r.Has.OneWriter { // another instance could not write
			held.Release()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			r.Once(member(r, 2))
		} else {
			r.Once(member(r, 2))
			held.Release()
			r.WantCode(<-ended, rowfeed.Conflict)
		}
		r.WantApplied("-5: 10 11 12", "77: 1 2 3 4 5 6")
		if n, err := r.RF.Admin().ConsumerShardCount(r.Ctx, "test", "events"); n != 2 || err != nil {
			t.Errorf("the consumer has %d workers, want 2; %v", n, err)
		}
		keep := &rowfeed.RelayConsumer{Consumer: *r.Consumer(r.Feed, r.RF), KeepShardCount: true}
		keep.ShardCount = 3
		r.WantCode(keep.RunOnce(r.Ctx), rowfeed.Conflict)
	})
}

// TestEpochsOfShardOnlyGrow (M54, M56): each delivery of a shard has a higher epoch than the one before, whichever
// worker delivers it, and whatever the number of workers. A worker does not store its cursor if the shard has a later
// epoch.
func TestEpochsOfShardOnlyGrow(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		var mu sync.Mutex
		last, next := map[int]int64{}, map[int]int64{}
		shards := []int{-5, 1, 2, 3, 77}
		type deliverer = func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)
		deliver := func(n int) *rowfeed.RelayConsumer {
			c := &rowfeed.RelayConsumer{Consumer: *member(r, n)}
			c.Handle = nil
			c.DeliverShard = func(shard int, epoch int64) deliverer {
				return func(_ context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
					mu.Lock()
					defer mu.Unlock()
					for _, e := range entries {
						if e.Shard != shard {
							return nil, fmt.Errorf("the deliverer of shard %d got an entry of shard %d", shard, e.Shard)
						}
					}
					next[shard] = epoch
					return nil, nil
				}
			}
			return c
		}
		id := 0
		for _, n := range []int{3, 2, 5, 2, 3} {
			for _, shard := range shards {
				id++
				r.Add(shard, id, id)
			}
			r.Once(deliver(n))
			mu.Lock()
			for _, shard := range shards {
				if next[shard] <= last[shard] {
					t.Fatalf("with %d workers, shard %d has epoch %d, and before it had %d",
						n, shard, next[shard], last[shard])
				}
			}
			last, next = next, map[int]int64{}
			mu.Unlock()
			if n == 5 {
				if _, err := r.RF.Admin().DropConsumer(r.Ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		// Another worker raises the epoch of a shard while its entries are delivered.
		r.Add(77, 1000, 1000)
		c := deliver(3)
		inner := c.DeliverShard
		raised := false
		c.DeliverShard = func(shard int, epoch int64) deliverer {
			f := inner(shard, epoch)
			return func(ctx context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
				if shard == 77 && !raised {
					raised = true
					r.Exec(fmt.Sprintf("UPDATE rowfeed_cursors SET epoch = %d, version = version + 1 WHERE shard = 77",
						epoch+5))
				}
				return f(ctx, entries)
			}
		}
		r.Once(c)
		if next[77] <= last[77]+5 {
			t.Errorf("the shard has epoch %d, and another worker had %d", next[77], last[77]+5)
		}
	})
}

// TestFailingShardDoesNotDelayOthers (M24): the handler fails for an entry of one shard. The status says why, and other
// shards are consumed. When the handler succeeds, the shard continues. The number of workers does not matter.
func TestFailingShardDoesNotDelayOthers(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		for _, n := range []int{1, 2} {
			var mu sync.Mutex
			bad := 2
			r.Fail = func(e rowfeed.Entry) error {
				mu.Lock()
				defer mu.Unlock()
				if suite.IDOf(e) == bad {
					return suite.ErrOff
				}
				return nil
			}
			r.Exec("DELETE FROM applied", "DELETE FROM events")
			r.Add(-5, 1, 2)
			r.Add(77, 10, 11)
			err := member(r, n).RunOnce(r.Ctx)
			if !errors.Is(err, suite.ErrOff) ||
				!strings.Contains(err.Error(), `consumer "test" of feed "events", shard -5: `) {
				t.Fatalf("RunOnce: %v", err)
			}
			r.WantApplied("-5: 1", "77: 10 11")
			failure := func() map[int]string {
				all, err := r.RF.Admin().Consumers(r.Ctx, rowfeed.ConsumerID{Consumer: "test"})
				if err != nil {
					t.Fatal(err)
				}
				said := map[int]string{}
				for _, c := range all {
					if c.Failure != nil {
						said[c.Shard] = c.Failure.Error
					}
				}
				return said
			}
			stop := r.Run(member(r, n))
			r.Eventually("the status says why the shard fails", func() bool {
				said := failure()
				return len(said) == 1 && strings.Contains(said[-5], suite.ErrOff.Error())
			})
			r.Add(77, 12, 12)
			r.AwaitApplied("the other shard continues", "-5: 1", "77: 10 11 12")
			mu.Lock()
			bad = 0
			mu.Unlock()
			r.AwaitApplied("the shard continues", "-5: 1 2", "77: 10 11 12")
			r.Eventually("the status has no failure", func() bool { return len(failure()) == 0 })
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(handedOf(r, 77), []int{10, 11, 12}) && n == 1 {
				t.Errorf("the handler got rows %v of shard 77, want 10, 11 and 12", handedOf(r, 77))
			}
		}
	})
}

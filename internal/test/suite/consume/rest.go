package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFailedShardRestsAlone (M72): a consumer of two shards stops at an entry that it cannot handle. The shard of the
// entry rests and reports the cause. The other shard continues, even if a second instance joins and gets one of the
// shards, and neither instance ends. When the entry can be handled, the shard continues by itself.
func TestFailedShardRestsAlone(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		good, bad := suite.IDsOf(1, 4, 8, 0, 4), suite.IDsOf(1, 2, 8, 4, 8)
		var mended atomic.Bool
		r.Fail = func(_ context.Context, _ *sql.Tx, e rowfeed.Entry) error {
			if id, _ := e.Key.Get("id"); id == bad[0] && !mended.Load() {
				return suite.ErrOff
			}
			return nil
		}
		var troubles atomic.Int64
		first := newTeammate(r, f, 2)
		counts := &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if e.Shard == 1 && errors.Is(e.Err, rowfeed.HandlerFailed) && errors.Is(e.Err, suite.ErrOff) {
				troubles.Add(1)
			}
		}}
		first.rf = x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: counts})
		first.c.DB = first.rf
		x.InsertIDs(good[0], bad[0], bad[1])
		x.Publish(f)
		first.start()
		failure := func(shard int) string {
			x.Helper()
			all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "test"})
			if err != nil {
				x.Fatal(err)
			}
			if len(all) != 2 {
				return ""
			}
			return suite.ErrorOf(all[shard].Failure)
		}
		lives := func(m *teammate) {
			x.Helper()
			select {
			case err := <-m.ended:
				x.Fatalf("an instance has ended: %v", err)
			default:
			}
		}
		x.Eventually("it is said why a shard rests", func() bool {
			lives(first)
			return strings.Contains(failure(1), "the entry at position") &&
				strings.Contains(failure(1), suite.ErrOff.Error()) &&
				troubles.Load() > 1
		})
		goesOn := func(id int64) {
			x.Helper()
			x.InsertIDs(id)
			x.Publish(f)
			x.Eventually("the other shard continues", func() bool {
				lives(first)
				return x.Scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id = %d", id)) == 1
			})
		}
		goesOn(good[1])
		second := newTeammate(r, f, 2).start()
		x.Eventually("each instance has a shard", func() bool {
			lives(first)
			lives(second)
			return x.Standing(suite.TestGroup, 2).Balanced(2, 2)
		})
		goesOn(good[2])
		x.Eventually("the shard rests, wherever it is", func() bool { return failure(1) != "" })
		applied := x.Scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id IN (%d, %d)", bad[0], bad[1]))
		if text := failure(0); text != "" || applied != 0 {
			x.Errorf("an entry was passed over, or the other shard rests: %s", text)
		}
		mended.Store(true)
		x.Eventually("the shard continues", func() bool {
			return x.Scalar("SELECT count(*) FROM applied") == 5 && failure(1) == ""
		})
		first.end()
		second.end()
	})
}

// resting returns an instance of a consumer of two shards that stops at refused entries, and then rests so long that
// only an event ends the rest, and no timer.
func resting(r *suite.Receiver, f rowfeed.Source, deliver func(id int64) error) *teammate {
	m := newTeammate(r, f, 2)
	m.c.Handle, m.c.OnFailure = nil, rowfeed.Stop
	m.c.Options.Retry = rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond, MaxBackoff: time.Hour}
	m.c.Deliver = func(_ context.Context, entries []rowfeed.Entry) (refused []rowfeed.Refusal, _ error) {
		for i, e := range entries {
			id, _ := e.Key.Get("id")
			if err := deliver(id.(int64)); err != nil {
				refused = append(refused, rowfeed.Refusal{Entry: i, Err: err})
			}
		}
		return refused, nil
	}
	return m
}

// failure returns why a shard rests, or "".
func failure(x *suite.Env, shard int) string {
	x.Helper()
	all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer)
	if err != nil {
		x.Fatal(err)
	}
	if len(all) <= shard {
		return ""
	}
	return suite.ErrorOf(all[shard].Failure)
}

// fetches is a source that counts the requests for one part.
type fetches struct {
	rowfeed.Source
	part rowfeed.Shards
	n    atomic.Int64
}

func (s *fetches) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if req.Shards == s.part {
		s.n.Add(1)
	}
	return s.Source.Fetch(ctx, req)
}

// TestMovedCursorEndsRest (M72): a resting shard continues when its cursor is moved. If the cursor is moved while an
// entry is tried, and that entry is refused, the shard does not rest and is not reported as resting.
func TestMovedCursorEndsRest(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddShards(8)
		source := &fetches{Source: f, part: rowfeed.Part(1, 2)}
		ids := suite.IDsOf(1, 2, 8, 4, 8)
		entered, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		m := resting(x.Receiver(), source, func(id int64) error {
			if id == ids[1] {
				once.Do(func() { close(entered) })
				<-release
			}
			return suite.ErrOff
		})
		seek := func() {
			x.Helper()
			one := 1
			id := rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &one}
			if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, rowfeed.Now); err != nil {
				x.Fatal(err)
			}
		}
		x.InsertIDs(ids[0])
		x.Publish(f)
		m.start()
		x.Eventually("a shard rests", func() bool { return failure(x, 1) != "" })
		seek()
		x.InsertIDs(ids[1])
		x.Publish(f)
		x.Eventually("the shard continues", func() bool {
			select {
			case <-entered:
				return true
			default:
				return false
			}
		})
		asked := source.n.Load()
		seek()
		close(release)
		x.Eventually("the shard continues at its new cursor", func() bool {
			if text := failure(x, 1); text != "" {
				x.Fatalf("a shard that was moved is said to rest: %s", text)
			}
			return source.n.Load() > asked
		})
		if text := failure(x, 1); text != "" {
			x.Errorf("a shard that was moved is said to rest: %s", text)
		}
		m.end()
	})
}

// TestRestingShardReleasesLetters (M72): a resting shard hands over a dead letter that an operator has released.
func TestRestingShardReleasesLetters(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		ids := suite.IDsOf(1, 2, 8, 4, 8)
		var released atomic.Bool
		deliver := func(id int64) error {
			if id == ids[0] && released.Load() {
				return nil
			}
			return suite.ErrOff
		}
		x.InsertIDs(ids[0])
		x.Publish(f)
		before := resting(r, f, deliver)
		before.c.OnFailure = rowfeed.SetAside
		if err := before.c.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.InsertIDs(ids[1])
		x.Publish(f)
		m := resting(r, f, deliver).start()
		x.Eventually("a shard rests", func() bool { return failure(x, 1) != "" })
		released.Store(true)
		if n, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
			suite.Letters(suite.TestConsumer, ""), nil); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.Eventually("the letter is delivered", func() bool {
			return x.Scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0
		})
		m.end()
	})
}

// TestShardCountChangeEndsRest (M72): an instance whose shards all rest ends when a later instance has changed the
// shard count. The later instance waits for the former leases.
func TestShardCountChangeEndsRest(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertIDs(suite.IDsOf(1, 1, 8, 0, 4)[0], suite.IDsOf(1, 1, 8, 4, 8)[0])
		x.Publish(f)
		former := resting(r, f, func(int64) error { return suite.ErrOff }).start()
		x.Eventually("both shards rest", func() bool { return failure(x, 0) != "" && failure(x, 1) != "" })
		var delivered atomic.Int64
		later := resting(r, f, func(int64) error { delivered.Add(1); return nil })
		later.c.ShardCount = 4
		later.start()
		select {
		case err := <-former.ended:
			x.WantCode(err, rowfeed.Conflict)
		case <-time.After(suite.Patience()):
			x.Fatal("the former instance rests")
		}
		x.Eventually("the new instance delivers",
			func() bool { return delivered.Load() >= 2 }) // again if a lease is lost
		later.end()
	})
}

// TestInvalidDeliverShardEndsConsumer: a DeliverShard that returns nil or panics ends the consumer with an error, and
// does not end the process.
func TestInvalidDeliverShardEndsConsumer(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		for want, answer := range map[string]func(int, int64) deliver{
			"it returned no function": func(int, int64) deliver { return nil },
			"panic: off the rails":    func(int, int64) deliver { panic("off the rails") },
		} {
			for _, shards := range []int{1, 2} {
				c := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(f, x.RF, shards), DeliverShard: answer}
				c.Handle = nil
				for _, run := range []func(context.Context) error{c.RunOnce, c.Run} {
					err := run(x.Ctx)
					x.WantCode(err, rowfeed.HandlerFailed)
					if !strings.Contains(err.Error(), want) {
						x.Errorf("%d shards: %v, want %s", shards, err, want)
					}
				}
			}
		}
	})
}

// TestInterruptedRunOnceIsNoSuccess: RunOnce reports success only if it has brought all shards to the head. Here its
// context ends before it has begun with the last shard.
func TestInterruptedRunOnceIsNoSuccess(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 11)
		x.Publish(f)
		for _, shards := range []int{1, 2} {
			ctx, cancel := context.WithCancel(x.Ctx)
			c := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(f, x.RF, shards)}
			c.Handle, c.DeliverShard = nil, func(shard int, _ int64) deliver {
				if shard == shards-1 {
					cancel()
				}
				return func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) { return nil, nil }
			}
			if err := c.RunOnce(ctx); !errors.Is(err, context.Canceled) {
				x.Errorf("RunOnce of %d shards: %v; cursors %v", shards, err, x.Cursors("test"))
			}
		}
	})
}

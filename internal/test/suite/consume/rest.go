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

// TestShardRests (M72): of a consumer of two
// shards that stops at an entry that it cannot handle, the entry's shard rests and says why.
// The other one goes on, also when a second instance comes and has one of them; neither
// instance ends. When the entry can be handled the shard goes on by itself.
func TestShardRests(t *testing.T) {
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
		first.rf = x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if e.Shard == 1 && errors.Is(e.Err, rowfeed.HandlerFailed) && errors.Is(e.Err, suite.ErrOff) {
				troubles.Add(1)
			}
		}}})
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
			return all[shard].Failure
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
			return strings.Contains(failure(1), "shard 1 of 2") && strings.Contains(failure(1), suite.ErrOff.Error()) && troubles.Load() > 1
		})
		goesOn := func(id int64) {
			x.Helper()
			x.InsertIDs(id)
			x.Publish(f)
			x.Eventually("the other shard goes on", func() bool {
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
		if text := failure(0); text != "" || x.Scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id IN (%d, %d)", bad[0], bad[1])) != 0 {
			x.Errorf("an entry was passed over, or the other shard rests: %s", text)
		}
		mended.Store(true)
		x.Eventually("the shard goes on", func() bool { return x.Scalar("SELECT count(*) FROM applied") == 5 && failure(1) == "" })
		first.end()
		second.end()
	})
}

// resting is a consumer of two shards that delivers, stops at what is refused, and then
// rests for so long that only something else than time wakes it up.
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

// failure says why a shard rests, where it does.
func failure(x *suite.Env, shard int) string {
	x.Helper()
	all, err := x.RF.Admin().Consumers(x.Ctx, suite.TestConsumer)
	if err != nil {
		x.Fatal(err)
	}
	if len(all) <= shard {
		return ""
	}
	return all[shard].Failure
}

// fetches is a source that counts what is asked of one part.
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

// TestRestIsLeft (M72): a shard that
// rests goes on when its cursor is moved. Moved while an entry is tried, it does not
// rest, and is not said to, when that is refused.
func TestRestIsLeft(t *testing.T) {
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
			if _, err := x.RF.Admin().SeekConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &one}, rowfeed.Now); err != nil {
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
		x.Eventually("it goes on", func() bool {
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
		x.Eventually("it goes on from where it stands now", func() bool {
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

// TestRestReleases (M72): a shard that rests hands over the dead letter for which an operator asks.
func TestRestReleases(t *testing.T) {
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
		if n, err := x.RF.Admin().RetryDeadLetters(x.Ctx, suite.TestConsumer, nil); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.Eventually("the letter is delivered", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0 })
		m.end()
	})
}

// TestRestEndsByRecount (M72): an instance whose shards all rest ends when a later one has divided
// them anew, which waits for its leases: see awaitFormer.
func TestRestEndsByRecount(t *testing.T) {
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
		x.Eventually("the new division delivers", func() bool { return delivered.Load() >= 2 }) // again where a lease is lost
		later.end()
	})
}

// TestDeliverShardFails: a DeliverShard that answers nothing, or panics, ends the consumer
// with an error, and not the process.
func TestDeliverShardFails(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		type deliver = func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)
		for want, answer := range map[string]func(int, int64) deliver{
			"it answered no function": func(int, int64) deliver { return nil },
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

// TestShardsInterrupted: RunOnce says that all shards are at the head only if it has
// brought them there; here it is ended before it has begun with the last one.
func TestShardsInterrupted(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 11)
		x.Publish(f)
		for _, shards := range []int{1, 2} {
			ctx, cancel := context.WithCancel(x.Ctx)
			c := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(f, x.RF, shards)}
			c.Handle, c.DeliverShard = nil, func(shard int, _ int64) func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) {
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

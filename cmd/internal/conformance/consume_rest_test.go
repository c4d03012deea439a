package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardRests (M72): of a consumer of two
// shards that stops at an entry that it cannot handle, the entry's shard rests and says why.
// The other one goes on, also when a second instance comes and has one of them; neither
// instance ends. When the entry can be handled the shard goes on by itself.
func TestShardRests(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		good, bad := idsOf(1, 4, 8, 0, 4), idsOf(1, 2, 8, 4, 8)
		var mended atomic.Bool
		r.fail = func(_ context.Context, _ *sql.Tx, e rowfeed.Entry) error {
			if id, _ := e.Key.Get("id"); id == bad[0] && !mended.Load() {
				return errOff
			}
			return nil
		}
		var troubles atomic.Int64
		first := r.teammate(f, 2)
		first.rf = x.tappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if e.Shard == 1 && errors.Is(e.Err, rowfeed.HandlerFailed) && errors.Is(e.Err, errOff) {
				troubles.Add(1)
			}
		}}})
		first.c.DB = first.rf
		x.insertIDs(good[0], bad[0], bad[1])
		x.publish(f)
		first.start()
		failure := func(shard int) string {
			x.Helper()
			all, err := x.rf.Admin().Consumers(x.ctx, rowfeed.ConsumerID{Consumer: "test"})
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
		x.eventually("it is said why a shard rests", func() bool {
			lives(first)
			return strings.Contains(failure(1), "shard 1 of 2") && strings.Contains(failure(1), errOff.Error()) && troubles.Load() > 1
		})
		goesOn := func(id int64) {
			x.Helper()
			x.insertIDs(id)
			x.publish(f)
			x.eventually("the other shard goes on", func() bool {
				lives(first)
				return x.scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id = %d", id)) == 1
			})
		}
		goesOn(good[1])
		second := r.teammate(f, 2).start()
		x.eventually("each instance has a shard", func() bool {
			lives(first)
			lives(second)
			return x.standing(testGroup, 2).balanced(2, 2)
		})
		goesOn(good[2])
		x.eventually("the shard rests, wherever it is", func() bool { return failure(1) != "" })
		if text := failure(0); text != "" || x.scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id IN (%d, %d)", bad[0], bad[1])) != 0 {
			x.Errorf("an entry was passed over, or the other shard rests: %s", text)
		}
		mended.Store(true)
		x.eventually("the shard goes on", func() bool { return x.scalar("SELECT count(*) FROM applied") == 5 && failure(1) == "" })
		first.end()
		second.end()
	})
}

// resting is a consumer of two shards that delivers, stops at what is refused, and then
// rests for so long that only something else than time wakes it up.
func (r *receiver) resting(f rowfeed.Source, deliver func(id int64) error) *teammate {
	m := r.teammate(f, 2)
	m.c.Handle, m.c.OnFailure = nil, rowfeed.Stop
	m.c.Retry = rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond, MaxBackoff: time.Hour}
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
func (x *env) failure(shard int) string {
	x.Helper()
	all, err := x.rf.Admin().Consumers(x.ctx, testConsumer)
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
	each(t, func(x *env) {
		f := x.addShards(8)
		source := &fetches{Source: f, part: rowfeed.Part(1, 2)}
		ids := idsOf(1, 2, 8, 4, 8)
		entered, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		m := x.receiver().resting(source, func(id int64) error {
			if id == ids[1] {
				once.Do(func() { close(entered) })
				<-release
			}
			return errOff
		})
		seek := func() {
			x.Helper()
			one := 1
			if _, err := x.rf.Admin().SeekConsumer(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &one}, rowfeed.Now); err != nil {
				x.Fatal(err)
			}
		}
		x.insertIDs(ids[0])
		x.publish(f)
		m.start()
		x.eventually("a shard rests", func() bool { return x.failure(1) != "" })
		seek()
		x.insertIDs(ids[1])
		x.publish(f)
		x.eventually("it goes on", func() bool {
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
		x.eventually("it goes on from where it stands now", func() bool {
			if text := x.failure(1); text != "" {
				x.Fatalf("a shard that was moved is said to rest: %s", text)
			}
			return source.n.Load() > asked
		})
		if text := x.failure(1); text != "" {
			x.Errorf("a shard that was moved is said to rest: %s", text)
		}
		m.end()
	})
}

// TestRestReleases (M72): a shard that rests hands over the dead letter for which an operator asks.
func TestRestReleases(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		ids := idsOf(1, 2, 8, 4, 8)
		var released atomic.Bool
		deliver := func(id int64) error {
			if id == ids[0] && released.Load() {
				return nil
			}
			return errOff
		}
		x.insertIDs(ids[0])
		x.publish(f)
		before := r.resting(f, deliver)
		before.c.OnFailure = rowfeed.SetAside
		if err := before.c.RunOnce(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.insertIDs(ids[1])
		x.publish(f)
		m := r.resting(f, deliver).start()
		x.eventually("a shard rests", func() bool { return x.failure(1) != "" })
		released.Store(true)
		if n, err := x.rf.Admin().RetryDeadLetters(x.ctx, testConsumer, nil); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		x.eventually("the letter is delivered", func() bool { return x.scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0 })
		m.end()
	})
}

// TestRestEndsByRecount (M72): an instance whose shards all rest ends when a later one has divided
// them anew, which waits for its leases: see awaitFormer.
func TestRestEndsByRecount(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		x.insertIDs(idsOf(1, 1, 8, 0, 4)[0], idsOf(1, 1, 8, 4, 8)[0])
		x.publish(f)
		former := r.resting(f, func(int64) error { return errOff }).start()
		x.eventually("both shards rest", func() bool { return x.failure(0) != "" && x.failure(1) != "" })
		var delivered atomic.Int64
		later := r.resting(f, func(int64) error { delivered.Add(1); return nil })
		later.c.ShardCount = 4
		later.start()
		select {
		case err := <-former.ended:
			x.wantCode(err, rowfeed.Conflict)
		case <-time.After(patience()):
			x.Fatal("the former instance rests")
		}
		x.eventually("the new division delivers", func() bool { return delivered.Load() >= 2 }) // again where a lease is lost
		later.end()
	})
}

// TestDeliverShardFails: a DeliverShard that answers nothing, or panics, ends the consumer
// with an error, and not the process.
func TestDeliverShardFails(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		type deliver = func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)
		for want, answer := range map[string]func(int, int64) deliver{
			"it answered no function": func(int, int64) deliver { return nil },
			"panic: off the rails":    func(int, int64) deliver { panic("off the rails") },
		} {
			for _, shards := range []int{1, 2} {
				c := r.shardsOf(f, x.rf, shards)
				c.Handle, c.DeliverShard = nil, answer
				for _, run := range []func(context.Context) error{c.RunOnce, c.Run} {
					err := run(x.ctx)
					x.wantCode(err, rowfeed.HandlerFailed)
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
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		x.insertKV(1, 11)
		x.publish(f)
		for _, shards := range []int{1, 2} {
			ctx, cancel := context.WithCancel(x.ctx)
			c := r.shardsOf(f, x.rf, shards)
			c.Handle, c.DeliverShard = nil, func(shard int, _ int64) func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) {
				if shard == shards-1 {
					cancel()
				}
				return func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) { return nil, nil }
			}
			if err := c.RunOnce(ctx); !errors.Is(err, context.Canceled) {
				x.Errorf("RunOnce of %d shards: %v; cursors %v", shards, err, x.cursors("test"))
			}
		}
	})
}

// TestRelayShardRests (M72): so it is with a relay of two shards whose receiver refuses an entry.
// What comes behind that of the same shard waits, and no shard of others does.
func TestRelayShardRests(t *testing.T) {
	each(t, func(x *env) {
		f, s := x.addShards(8), &spy{env: x}
		good, bad := idsOf(1, 2, 8, 0, 4), idsOf(1, 2, 8, 4, 8)
		var mended atomic.Bool
		s.decide = func(e sink.Entry) sink.Result {
			if entryID(e) == bad[0] && !mended.Load() {
				return sink.Reject(errOff)
			}
			return sink.Accept()
		}
		r := s.relay(f)
		r.ShardCount, r.Lease = 2, groupTTL
		x.insertIDs(good[0], bad[0])
		x.publish(f)
		ctx, stop := context.WithCancel(x.ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		at := func(want ...int64) func() bool {
			return func() bool {
				select {
				case err := <-ended:
					x.Fatalf("the relay has ended: %v", err)
				default:
				}
				got, _ := x.positions("test")
				return slices.Equal(got, want)
			}
		}
		x.eventually("one shard is through", at(2, 0))
		x.eventually("it is said why the other rests", func() bool {
			all, err := x.rf.Admin().Consumers(x.ctx, testConsumer)
			return err == nil && len(all) == 2 && all[0].Failure == "" && strings.Contains(all[1].Failure, errOff.Error())
		})
		x.insertIDs(good[1], bad[1])
		x.publish(f)
		x.eventually("one shard goes on", at(4, 0))
		mended.Store(true)
		x.eventually("so does the other", at(4, 4))
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
	})
}

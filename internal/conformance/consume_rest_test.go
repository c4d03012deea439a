package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/testdb"
	"github.com/rowfeed/rowfeed/sink"
)

// TestShardRests (guarantee: one bad key, one shard only itself): of a consumer of two
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
			all, err := x.rf.Consumers(x.ctx, rowfeed.ConsumerID{Consumer: "test"})
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

// TestRelayShardRests: so it is with a relay of two shards whose receiver refuses an entry.
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
			all, err := x.rf.Consumers(x.ctx, testConsumer)
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

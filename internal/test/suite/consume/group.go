package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const consumerShards = 8

func init() {
	testdb.RegisterChild("group consumer", func() {
		err := suite.Leasing(func(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err != nil {
				return err
			}
			c := (&suite.Receiver{}).Consumer(f, rf)
			c.ShardCount, c.Options.Lease = consumerShards, suite.GroupTTL
			return c.Run(ctx)
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// teammate is an instance of a consumer with a database pool of its own.
type teammate struct {
	*suite.Env
	c     *rowfeed.Consumer
	rf    *rowfeed.DB
	lost  atomic.Int64 // shards whose lease was lost
	stop  context.CancelFunc
	ended chan error
}

func newTeammate(r *suite.Receiver, f rowfeed.Source, shards int) *teammate {
	r.Helper()
	m := &teammate{Env: r.Env, ended: make(chan error, 1)}
	m.rf = r.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: m.observer()})
	m.c = r.Consumer(f, m.rf)
	m.c.ShardCount, m.c.Options.Lease = shards, suite.GroupTTL
	return m
}

// observer returns an Observer that counts the lost leases.
func (m *teammate) observer() *rowfeed.Observer {
	return &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		if e.Kind == rowfeed.JobLost {
			m.lost.Add(1)
		}
	}}
}

func (m *teammate) start() *teammate {
	m.Helper()
	ctx, stop := context.WithCancel(m.Ctx)
	m.stop = stop
	go func() { m.ended <- m.c.Run(ctx) }()
	m.Cleanup(stop)
	return m
}

func (m *teammate) end() {
	m.Helper()
	m.stop()
	if err := <-m.ended; err != nil {
		m.Errorf("Run: %v", err)
	}
}

// TestGroupAppliesEveryVersionOnce (M22, M24): instances of a consumer share its shards while rows change, an instance
// joins, another leaves, and one is killed. Every version that a page showed takes effect once, and the last one does.
func TestGroupAppliesEveryVersionOnce(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		x.Fill(100)
		x.Publish(f)
		row := 0
		// balanced waits until the instances share the shards, while rows change.
		balanced := func(members int) {
			x.Helper()
			x.Eventually(fmt.Sprintf("%d instances share the shards", members), func() bool {
				row++
				x.Exec(fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", row%100+1))
				x.Publish(f)
				return x.Standing(suite.TestGroup, consumerShards).Balanced(consumerShards, members)
			})
		}
		first := newTeammate(r, f, consumerShards).start()
		balanced(1)
		second := newTeammate(r, f, consumerShards).start()
		balanced(2)
		child := testdb.CrashChild(x.T, "group consumer", "URL="+x.DB.URL)
		balanced(3)
		x.Eventually("all shards are listed with their leases", func() bool { // a lease may be lost for a moment
			all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "test"})
			if err != nil || len(all) != consumerShards {
				x.Fatalf("%d cursors, %v", len(all), err)
			}
			return !slices.ContainsFunc(all, func(s admin.ConsumerStatus) bool {
				return s.Lease == nil || s.Lease.State != rowfeed.LeaseHeld || s.Lease.Epoch < s.Epoch ||
					s.Lease.Since.IsZero()
			})
		})
		child.Kill()
		balanced(2)
		first.end()
		balanced(1)
		head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
		x.Eventually("all shards are through", func() bool {
			return x.Scalar(
				fmt.Sprintf("SELECT count(*) FROM rowfeed_cursors WHERE value LIKE '%d.%%'", head),
			) == consumerShards
		})
		second.end()
		if n := x.Scalar("SELECT count(*) FROM (SELECT position FROM applied " +
			"GROUP BY position HAVING count(*) > 1) AS twice"); n > 0 {
			x.Errorf("%d entries took effect more than once", n)
		}
		if n := x.Scalar("SELECT count(*) FROM kv " +
			"WHERE v <> (SELECT max(v) FROM applied WHERE applied.id = kv.id)"); n > 0 {
			x.Errorf("of %d rows the last version took no effect", n)
		}
		if n := x.Scalar("SELECT count(*) FROM applied a JOIN applied b " +
			"ON a.id = b.id AND a.position < b.position AND a.v > b.v"); n > 0 {
			x.Errorf("%d versions follow later ones", n)
		}
	})
}

// inHand makes an instance keep the entries of shard 0 until free returns: in an open transaction, or, if that would
// lock out all writers, in a delivery to another system. It closes reached when the instance has the entries.
func (m *teammate) inHand(free func(ctx context.Context) error) (reached chan struct{}) {
	reached = make(chan struct{})
	var first sync.Once
	wait := func(ctx context.Context, entries []rowfeed.Entry) (err error) {
		if id, _ := entries[0].Key.Get("id"); suite.ShardOfID(id.(int64), 64)*consumerShards/64 == consumerShards-1 {
			first.Do(func() {
				close(reached)
				err = free(ctx)
			})
		}
		return err
	}
	if handle := m.c.Handle; !m.Has.OneWriter {
		m.c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			if err := handle(ctx, tx, entries); err != nil {
				return err
			}
			return wait(ctx, entries)
		}
		return reached
	}
	m.c.Handle = nil
	m.c.Deliver = func(ctx context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
		if err := wait(ctx, entries); err != nil {
			return nil, err
		}
		for _, e := range entries {
			id, _ := e.Key.Get("id")
			m.Exec(
				fmt.Sprintf("INSERT INTO applied VALUES (0, %d, %s, '%s', %v, 0)", e.Generation, e.Position, e.Op, id),
			)
		}
		return nil, nil
	}
	return reached
}

// TestRebalanceWaitsForPage (M24): an instance that joins is to have a shard whose page is being handled. The page is
// committed first and handed over once. Later pages belong to the instance that joined.
func TestRebalanceWaitsForPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		ids := suite.IDsOf(1, 2, 64, 56, 64) // of the shard that is handed over first
		first := newTeammate(r, f, consumerShards)
		done := make(chan struct{})
		reached := first.inHand(func(ctx context.Context) error {
			select {
			case <-done:
			case <-ctx.Done():
				if !errors.Is(context.Cause(ctx), rowfeed.LeaseLost) { // a slow machine may lose the lease
					x.Errorf("the page in hand is given up: %v", context.Cause(ctx))
				}
			}
			return ctx.Err()
		})
		first.start()
		was := x.AwaitBalance(suite.TestGroup, consumerShards, 1, suite.Standing{})
		x.InsertIDs(ids[0])
		x.Publish(f)
		<-reached
		second := newTeammate(r, f, consumerShards).start()
		x.Eventually("all other shards that must have changed hands", func() bool {
			s := x.Standing(suite.TestGroup, consumerShards)
			return len(s.Seats) == 2 && s.TakeOver >= was.TakeOver+consumerShards/2-1
		})
		last := consumerShards - 1
		s := x.Standing(suite.TestGroup, consumerShards)
		early := x.Scalar("SELECT count(*) FROM applied")
		close(done)
		// A delivery to another system is repeated if the claim is lost before the cursor is stored.
		applied := func() int64 { return x.Scalar("SELECT count(DISTINCT id) FROM applied") }
		x.Eventually("the page is committed", func() bool { return applied() == 1 })
		x.Eventually("the shard changes hands", func() bool {
			return x.Standing(suite.TestGroup, consumerShards).Epochs[last] > was.Epochs[last]
		})
		x.InsertIDs(ids[1])
		x.Publish(f)
		x.Eventually("the next page is committed", func() bool { return applied() == 2 })
		first.end()
		second.end()
		// Only now the test knows that no claim was lost, as a slow machine may lose it. The table of leases shows it
		// earlier than the instance.
		if first.lost.Load() == 0 &&
			(early != 0 || s.Epochs[last] != was.Epochs[last] || s.Owners[last] != was.Owners[last]) {
			x.Errorf("a shard was handed over with its page; %d entries took effect before its commit", early)
		}
	})
}

// TestLostLeaseRollsBack (M54): the lease of a shard is lost while its page is being handled. The page's context ends,
// its effects are rolled back, and the page comes again.
func TestLostLeaseRollsBack(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		m := newTeammate(r, f, consumerShards)
		cause := make(chan error, 1)
		reached := m.inHand(func(ctx context.Context) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		})
		m.start()
		x.AwaitBalance(suite.TestGroup, consumerShards, 1, suite.Standing{})
		x.InsertIDs(suite.IDsOf(1, 1, 64, 56, 64)...)
		x.Publish(f)
		<-reached
		lease := admin.JobLease(suite.TestGroup, consumerShards, consumerShards-1)
		if _, err := x.RF.Admin().ReleaseLease(x.Ctx, lease, 0); err != nil {
			x.Fatal(err)
		}
		x.WantCode(<-cause, rowfeed.LeaseLost)
		x.Eventually("the page is committed after all", func() bool {
			return x.Scalar("SELECT count(*) FROM applied") > 0
		})
		m.end()
		// A delivery to another system is repeated if a slow machine loses one more claim.
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 1 && (!x.Has.OneWriter || m.lost.Load() == 1) {
			x.Errorf("the entry took effect %d times", n)
		}
	})
}

// held is a source that keeps the first page with entries of a shard until free is closed.
type held struct {
	rowfeed.Source
	shards  rowfeed.Shards
	reached chan struct{}
	free    chan struct{}
	first   sync.Once
}

func hold(f rowfeed.Source, shard int) *held {
	return &held{
		Source:  f,
		shards:  rowfeed.Part(shard, consumerShards),
		reached: make(chan struct{}),
		free:    make(chan struct{}),
	}
}

func (h *held) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := h.Source.Fetch(ctx, req)
	if err == nil && req.Shards == h.shards && len(page.Entries) > 0 {
		h.first.Do(func() {
			close(h.reached)
			<-h.free
		})
	}
	return page, err
}

// TestLostShardCannotCommit (M24, M54, H3): an instance still handles a page, and does not know that another instance
// has its shard, which has not written anything yet. The commit fails all the same, because the epoch in the cursor was
// raised before the cursor was read.
func TestLostShardCannotCommit(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		tried := make(chan struct{}, 1)
		slow, next := hold(f, 0), hold(f, 0)
		first, second := newTeammate(r, slow, consumerShards), newTeammate(r, next, consumerShards)
		first.c.Options.Lease = suite.Long // it does not renew during this test
		handle := first.c.Handle
		first.c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			tried <- struct{}{}
			return handle(ctx, tx, entries)
		}
		first.start()
		was := x.AwaitBalance(suite.TestGroup, consumerShards, 1, suite.Standing{})
		x.InsertIDs(suite.IDsOf(1, 1, 64, 0, 8)...)
		x.Publish(f)
		<-slow.reached
		lease := admin.JobLease(suite.TestGroup, consumerShards, 0)
		if _, err := x.RF.Admin().ReleaseLease(x.Ctx, lease, was.Epochs[0]); err != nil {
			x.Fatal(err)
		}
		second.start()
		<-next.reached
		close(slow.free)
		<-tried
		x.Eventually("the first instance learns that it has lost the shard", func() bool {
			return first.lost.Load() == 1
		})
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 0 {
			x.Errorf("%d effects of an instance that has lost its shard", n)
		}
		close(next.free)
		x.Eventually("the second instance's page is committed", func() bool {
			return x.Scalar("SELECT count(*) FROM applied") == 1
		})
		first.end()
		second.end()
	})
}

// TestOneShardSettingsAreRefusedForSeveralShards (M24): settings that work only with one shard are refused for a
// consumer with several shards. A handler that ends its transaction ends the instance.
func TestOneShardSettingsAreRefusedForSeveralShards(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		c := &rowfeed.RelayConsumer{Consumer: *r.Consumer(f, x.RF)}
		c.ShardCount, c.Epoch = 2, 1
		x.WantCode(c.Run(x.Ctx), rowfeed.InvalidRequest)
		c.Epoch, c.Options.Lease = 0, time.Nanosecond
		x.WantCode(c.Run(x.Ctx), rowfeed.InvalidRequest)
		c.Options.Lease, c.DeliverShard = 0, func(int, int64) deliver { return nil }
		x.WantCode(c.Run(x.Ctx), rowfeed.InvalidRequest)
		c.DeliverShard = nil
		c.Handle = func(_ context.Context, tx *sql.Tx, _ []rowfeed.Entry) error { return tx.Rollback() }
		x.InsertIDs(1)
		x.Publish(f)
		x.WantCode(c.Run(x.Ctx), rowfeed.HandlerFailed)
		if s := x.Standing(suite.TestGroup, 2); len(s.Owners)+len(s.Seats) > 0 {
			x.Errorf("left behind: %+v", s)
		}
	})
}

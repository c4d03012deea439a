package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// heldReshard is an upgrade of kv that is held before the first statement of its kind
// whose text has the words; its end is what comes out of the channel.
func (x *env) heldReshard(shards int, kind testdb.TapKind, words string) (held *testdb.Held, end chan error) {
	x.Helper()
	begun := false
	held = testdb.Hold(func(ev testdb.TapEvent) bool { return begun && ev.Kind == kind && strings.Contains(ev.SQL, words) })
	f := x.tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		begun = begun || strings.Contains(ev.SQL, "data_shards = ")
		return held.Before(ctx, ev)
	}}, nil)
	return held, x.reshardUntil(f, shards, held)
}

// reshardUntil begins an upgrade and waits until it is held; its end is what comes out of
// the channel.
func (x *env) reshardUntil(f *rowfeed.Feed, shards int, held *testdb.Held) chan error {
	x.Helper()
	end := make(chan error, 1)
	go func() {
		_, err := f.Admin().Reshard(x.ctx, shards, nil)
		end <- err
	}()
	select {
	case <-held.Reached:
	case err := <-end:
		x.Fatalf("the upgrade ended before it was held: %v", err)
	}
	return end
}

// TestReshardBeside (M18, H24): whatever is done while keys are being given their shards, each does
// its work or is refused with the next step, and the feed is whole in the end.
func TestReshardBeside(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(510) // two batches
		x.publish(f)
		finish := func(held *testdb.Held, end chan error) {
			x.Helper()
			held.Release()
			if err := <-end; err != nil {
				x.Fatal(err)
			}
		}

		// Between two of its transactions: publishing, another number, a bump, the same number.
		held, end := x.heldReshard(4, testdb.Begin, "")
		x.exec("INSERT INTO kv VALUES (601, 'new', 0)", "UPDATE kv SET v = 1 WHERE id IN (1, 505)", "DELETE FROM kv WHERE id = 2")
		if n := x.publish(f); n != 4 {
			x.Errorf("%d keys were published beside", n)
		}
		_, err := f.Admin().Reshard(x.ctx, 9, nil)
		x.wantCode(err, rowfeed.Conflict)
		if err == nil || !strings.Contains(err.Error(), "feed upgrade kv --data-shards 4") {
			x.Errorf("the refusal does not say what to finish: %v", err)
		}
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: x.capture}
		_, err = x.rf.AddFeed(x.ctx, spec, nil)
		x.wantCode(err, rowfeed.Conflict)
		generation := x.info(f).Generation
		if bumped, err := f.Admin().Bump(x.ctx); err != nil || bumped <= generation {
			x.Errorf("bumped from %d to %d: %v", generation, bumped, err)
		}
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Error(err)
		}
		x.reshard(f, 4) // joins, and is done first
		x.wantParts(f, 4)
		bumped := f.Generation()
		finish(held, end)
		x.wantParts(f, 4)
		if f.Generation() != bumped {
			x.Errorf("two upgrades to one number began generations %d and %d", bumped, f.Generation())
		}
		x.wantSound(f)

		// A third begins anew when the first has ended and the second has not noticed.
		held, end = x.heldReshard(2, testdb.Begin, "")
		x.reshard(f, 2)
		x.reshard(f, 5)
		held.Release()
		x.wantCode(<-end, rowfeed.Conflict)
		x.wantParts(f, 5)

		// A publisher that read the feed's record before the upgrade began publishes nothing
		// by it.
		stale := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
		publisher := x.tapped(testdb.Hooks{Before: stale.Before}, nil)
		x.exec("INSERT INTO kv VALUES (701, 'new', 0), (702, 'new', 0), (703, 'new', 0)")
		published := make(chan error, 1)
		go func() { _, err := publisher.Publish(x.ctx); published <- err }()
		<-stale.Reached
		x.reshard(f, 7)
		stale.Release()
		if err := <-published; err != nil {
			x.Error(err)
		}
		if x.unpublished() != 0 {
			x.Error("the publisher left changes behind")
		}
		x.wantParts(f, 7)

		// Dropped in between, and added again: the upgrade ends with an error, and the new
		// feed is not touched.
		for _, again := range []bool{false, true} {
			held, end = x.heldReshard(3, testdb.Begin, "")
			if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			if again {
				f = x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 6})
				x.publish(f)
			}
			held.Release()
			x.wantCode(<-end, map[bool]rowfeed.Code{false: rowfeed.UnknownFeed, true: rowfeed.Conflict}[again])
			if again {
				x.wantParts(f, 6)
			} else {
				f = x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 6})
				x.publish(f)
			}
		}
	})
}

// TestReshardWhileFilling (M18): a feed that is not complete is not divided anew; the refusal
// says how to complete it, and then it works.
func TestReshardWhileFilling(t *testing.T) {
	each(t, func(x *env) {
		x.kvOf(2100)
		held, end := x.afterBatch(1)
		f, err := x.rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = f.Admin().Reshard(x.ctx, 4, nil)
		x.wantCode(err, rowfeed.Conflict)
		if err == nil || !strings.Contains(err.Error(), "feed add kv") {
			x.Errorf("the refusal does not say what to do: %v", err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		x.publish(f)
		x.reshard(f, 4)
		x.wantParts(f, 4)
	})
}

// TestReshardAmidPublishing (M18): a publisher runs between any two transactions of an upgrade,
// and publishes keys that are new, keys that the walk has passed and keys that it has not.
func TestReshardAmidPublishing(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.fill(510)
		x.publish(f)
		for _, shards := range []int{6, 3, 1} {
			n := 0
			upgrade := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind != testdb.Begin {
					return nil
				}
				n++
				id := shards*1000 + n
				x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', 0)", id), fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id IN (%d, %d)", 1+n, 509-n), fmt.Sprintf("DELETE FROM kv WHERE id = %d", 250+n+shards*10))
				x.publish(f)
				return nil
			}}, nil)
			x.reshard(upgrade, shards)
			if n < 3 {
				x.Errorf("published %d times beside", n)
			}
			x.wantParts(f, shards)
			x.wantSound(f)
		}
	})
}

// late is a source that keeps the page which has a key until it is told to hand it over.
type late struct {
	rowfeed.Source
	id       int64
	caught   chan struct{}
	handOver chan struct{}
	once     sync.Once
}

func (l *late) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := l.Source.Fetch(ctx, req)
	for _, e := range page.Entries {
		if id, _ := e.Key.Get("id"); id == l.id {
			l.once.Do(func() {
				close(l.caught)
				<-l.handOver
			})
		}
	}
	return page, err
}

// TestConsumeOverReshard (H2, H24): a consumer of two shards goes through an
// upgrade that gives a key to its other shard. While keys are being given their shards it
// waits; an instance that still has a page of before in hand cannot store it over what
// another has applied since.
func TestConsumeOverReshard(t *testing.T) {
	each(t, func(x *env) {
		f := x.addShards(8)
		id := int64(1) // in the second half of 8, and in the first of 3
		for shardOfID(id, 8) < 4 || shardOfID(id, 3) != 0 {
			id++
		}
		x.insertKV(1, 60)
		x.publish(f)
		x.exec("CREATE TABLE copies (id BIGINT NOT NULL PRIMARY KEY, v BIGINT)")
		instance := func(source rowfeed.Source) *rowfeed.Consumer {
			return &rowfeed.Consumer{Name: "test", Source: source, DB: x.rf, ShardCount: 2, Limit: 7,
				Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
					for _, e := range entries {
						id, _ := e.Key.Get("id")
						v, _ := e.Row.Get("v")
						for _, s := range []string{fmt.Sprintf("DELETE FROM copies WHERE id = %d", id), fmt.Sprintf("INSERT INTO copies VALUES (%d, %d)", id, v)} {
							if _, err := tx.ExecContext(ctx, s); err != nil {
								return err
							}
						}
					}
					return nil
				},
				OnRefused: func(context.Context, *sql.Tx, error) error { return nil },
			}
		}
		other := instance(f)
		if err := other.RunOnce(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.exec(fmt.Sprintf("UPDATE kv SET v = 2 WHERE id = %d", id))
		x.publish(f)
		slow := &late{Source: f, id: id, caught: make(chan struct{}), handOver: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- instance(slow).RunOnce(x.ctx) }()
		<-slow.caught

		held, end := x.heldReshard(3, testdb.Begin, "")
		x.wantCode(other.RunOnce(x.ctx), rowfeed.Sharding)
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		x.exec(fmt.Sprintf("UPDATE kv SET v = 3 WHERE id = %d", id))
		x.publish(f)
		if err := other.RunOnce(x.ctx); err != nil {
			x.Fatal(err)
		}
		close(slow.handOver)
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM kv JOIN copies c ON c.id = kv.id AND c.v = kv.v"); n != 59 {
			x.Errorf("%d of 59 rows are as they were copied; key %d has %d, want 3", n, id, x.scalar(fmt.Sprintf("SELECT v FROM copies WHERE id = %d", id)))
		}
	})
}

package shard

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOperationsDuringReshardWorkOrAreRefused (M18, H24): every operation that happens while keys get their shards
// works or is refused with the next step, and the feed is complete in the end.
func TestOperationsDuringReshardWorkOrAreRefused(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(510) // two batches
		x.Publish(f)
		finish := func(held *testdb.Held, end chan error) {
			x.Helper()
			held.Release()
			if err := <-end; err != nil {
				x.Fatal(err)
			}
		}

		// Between two transactions of the upgrade: publishing, another number, a bump, the same number.
		held, end := x.HeldReshard(4, testdb.Begin, "")
		x.Exec("INSERT INTO kv VALUES (601, 'new', 0)", "UPDATE kv SET v = 1 WHERE id IN (1, 505)",
			"DELETE FROM kv WHERE id = 2")
		if n := x.Publish(f); n != 4 {
			x.Errorf("%d keys were published meanwhile", n)
		}
		_, err := f.Admin().Reshard(x.Ctx, 9, nil)
		x.WantCode(err, rowfeed.Conflict)
		if err == nil || !strings.Contains(err.Error(), "feed upgrade kv --data-shards 4") {
			x.Errorf("the refusal does not say what to finish: %v", err)
		}
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: x.Capture}
		_, err = x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Conflict)
		generation := x.Info(f).Generation
		if bumped, err := f.Admin().Bump(x.Ctx); err != nil || bumped <= generation {
			x.Errorf("bumped from %d to %d: %v", generation, bumped, err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Error(err)
		}
		x.Reshard(f, 4) // joins the upgrade, and ends first
		wantParts(x, f, 4)
		bumped := f.Generation()
		finish(held, end)
		wantParts(x, f, 4)
		if f.Generation() != bumped {
			x.Errorf("two upgrades to one number began generations %d and %d", bumped, f.Generation())
		}
		x.WantSound(f)

		// A third upgrade begins when the first has ended and the second has not noticed.
		held, end = x.HeldReshard(2, testdb.Begin, "")
		x.Reshard(f, 2)
		x.Reshard(f, 5)
		held.Release()
		x.WantCode(<-end, rowfeed.Conflict)
		wantParts(x, f, 5)

		// A publisher that has read the feed's record before the upgrade began does not publish by that record.
		stale := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
		publisher := x.Tapped(testdb.Hooks{Before: stale.Before}, nil)
		x.Exec("INSERT INTO kv VALUES (701, 'new', 0), (702, 'new', 0), (703, 'new', 0)")
		published := make(chan error, 1)
		go func() { _, err := publisher.Publish(x.Ctx); published <- err }()
		<-stale.Reached
		x.Reshard(f, 7)
		stale.Release()
		if err := <-published; err != nil {
			x.Error(err)
		}
		if x.Unpublished() != 0 {
			x.Error("the publisher left changes behind")
		}
		wantParts(x, f, 7)

		// The feed is dropped and added again meanwhile. The upgrade ends with an error, and does not change the new
		// feed.
		for _, again := range []bool{false, true} {
			held, end = x.HeldReshard(3, testdb.Begin, "")
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			if again {
				f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 6})
				x.Publish(f)
			}
			held.Release()
			x.WantCode(<-end, map[bool]rowfeed.Code{false: rowfeed.UnknownFeed, true: rowfeed.Conflict}[again])
			if again {
				wantParts(x, f, 6)
			} else {
				f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 6})
				x.Publish(f)
			}
		}
	})
}

// TestIncompleteFeedIsNotResharded (M18): a feed that is not complete is not resharded. The refusal says how to
// complete it, and afterwards the upgrade works.
func TestIncompleteFeedIsNotResharded(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.KVOf(2100)
		held, end := x.AfterBatch(1)
		f, err := x.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = f.Admin().Reshard(x.Ctx, 4, nil)
		x.WantCode(err, rowfeed.Conflict)
		if err == nil || !strings.Contains(err.Error(), "feed add kv") {
			x.Errorf("the refusal does not say what to do: %v", err)
		}
		held.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		x.Reshard(f, 4)
		wantParts(x, f, 4)
	})
}

// TestKeysPublishedDuringReshardGetTheirShards (M18): a publisher runs between any two transactions of an upgrade, and
// publishes new keys, keys that the upgrade has passed, and keys that it has not.
func TestKeysPublishedDuringReshardGetTheirShards(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(510)
		x.Publish(f)
		for _, shards := range []int{6, 3, 1} {
			n := 0
			upgrade := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind != testdb.Begin {
					return nil
				}
				n++
				id := shards*1000 + n
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', 0)", id),
					fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id IN (%d, %d)", 1+n, 509-n),
					fmt.Sprintf("DELETE FROM kv WHERE id = %d", 250+n+shards*10))
				x.Publish(f)
				return nil
			}}, nil)
			x.Reshard(upgrade, shards)
			if n < 3 {
				x.Errorf("published %d times meanwhile", n)
			}
			wantParts(x, f, shards)
			x.WantSound(f)
		}
	})
}

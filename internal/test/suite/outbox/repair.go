package outbox

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func recordsUnplaced(ev testdb.TapEvent) bool {
	return strings.HasPrefix(ev.SQL, "INSERT INTO") && strings.Contains(ev.SQL, "SELECT x.shard")
}

// TestConcurrentRepairsRecordOnce (M63): of two concurrent repairs the second waits for the first, and records nothing.
// A reader gets the row once.
func TestConcurrentRepairsRecordOnce(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Exec("INSERT INTO events VALUES (2, 'unrecorded')")
		var recorded atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			recorded.Store(recorded.Load() || recordsUnplaced(ev))
			return ev.Kind == testdb.Commit && recorded.Load()
		})
		defer held.Release()
		first := make(chan int64, 1)
		repair := func(f *rowfeed.Feed, n chan<- int64) {
			go func() {
				records, err := f.Admin().Repair(x.Ctx)
				if err != nil {
					x.Error(err)
				}
				n <- records
			}()
		}
		repair(x.Other(testdb.Hooks{Before: held.Before}, nil), first)
		<-held.Reached
		second := make(chan int64, 1)
		repair(x.Feed, second)
		x.Eventually("the second repair waits, or has ended", func() bool { return x.Waits() || len(second) > 0 })
		held.Release()
		if one, two := <-first, <-second; one != 1 || two != 0 {
			x.Errorf("the repairs have recorded %d and %d rows", one, two)
		}
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 2)
	})
}

// TestRepairRecordsNoPurgedRows (M63): entries are purged for the first time while repair is about to record rows
// without entries. Repair is refused, and records none of the purged rows.
func TestRepairRecordsNoPurgedRows(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 6; id++ {
			x.Appended(id, 0, time.Time{})
		}
		at := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(at, false, 1, 2, 3, 4, 5, 6)
		x.Retain(rowfeed.Retention{Count: 1})
		held := testdb.Hold(recordsUnplaced)
		defer held.Release()
		other := x.Other(testdb.Hooks{Before: held.Before}, nil)
		repaired := make(chan error, 1)
		go func() { _, err := other.Admin().Repair(x.Ctx); repaired <- err }()
		<-held.Reached
		x.Purged(5)
		held.Release()
		x.WantCode(<-repaired, rowfeed.Refused)
		x.WantIDs(x.Page(x.Feed, 0, at.Cursor, 10), false)
		x.WantSound(x.Feed)
	})
}

// TestBackFillPlacesNoPurgedRows (M62): entries are purged while a later back-fill is about to place rows. It is
// refused. Otherwise a reader in the middle of what was filled would get the purged rows again.
func TestBackFillPlacesNoPurgedRows(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(2)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (901, 0, NULL)")
		x.Publish(y.Feed)
		reader := y.Page(y.Feed, 0, "", 2)
		y.WantIDs(reader, true, 2, 1)
		unrecorded(y.Env, 4, 4)
		y.Retain(rowfeed.Retention{Count: 1})
		held := testdb.Hold(beginsAfterShardsAreKnown())
		defer held.Release()
		ended := make(chan error, 1)
		go func() { ended <- backFill(x, "kv", testdb.Hooks{Before: held.Before}) }()
		<-held.Reached
		y.Purged(2)
		held.Release()
		x.WantCode(<-ended, rowfeed.Refused)
		y.WantIDs(y.Page(y.Feed, 0, reader.Cursor, 10), false, 901)
		y.WantIDs(y.Page(y.Feed, 0, "", 10), false, 901)
		_, err := y.Feed.Admin().BackFill(x.Ctx, nil)
		x.WantCode(err, rowfeed.Refused)
		y.WantSound(y.Feed)
	})
}

// TestInfoListsShardWhoseOnlyRecordIsMovedMeanwhile (M59, M60): the only record of a shard is moved while Info searches
// for shards. Info lists the shard.
func TestInfoListsShardWhoseOnlyRecordIsMovedMeanwhile(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Publish(x.Feed)
		x.Appended(2, 7, time.Time{})
		var statements atomic.Int32
		other := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_outbox_events") || strings.Contains(ev.SQL, "rowfeed_shards") {
				if statements.Add(1) == 2 {
					_, err := x.Feed.Publish(x.Ctx)
					return err
				}
			}
			return nil
		}}, nil)
		info, err := other.Info(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if statements.Load() < 2 || len(info.ShardIDs) != 2 {
			x.Errorf("after %d statements the shards are %v", statements.Load(), info.ShardIDs)
		}
	})
}

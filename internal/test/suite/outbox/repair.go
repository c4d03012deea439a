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

// TestOutboxRepairTogether (M63): of two repairs at once one finds what the other has recorded, and a row comes
// once.
func TestOutboxRepairTogether(t *testing.T) {
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
		x.Eventually("the second one waits, or is done", func() bool { return x.Waits() || len(second) > 0 })
		held.Release()
		if one, two := <-first, <-second; one != 1 || two != 0 {
			x.Errorf("they record %d and %d", one, two)
		}
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 2)
	})
}

// TestOutboxRepairPurge (M63): entries that are purged for the first time while repair is at its rows are not
// recorded again: it refuses, as behind the purge.
func TestOutboxRepairPurge(t *testing.T) {
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

// TestBackFillPurgeBetween (M62): the same of a later run of back-fill, which would place the rows of what was
// purged above its mark, where readers in the midst of what was filled get them once more. The run ends.
func TestBackFillPurgeBetween(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(2)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (901, 0, NULL)")
		x.Publish(y.Feed)
		reader := y.Page(y.Feed, 0, "", 2)
		y.WantIDs(reader, true, 2, 1)
		unrecorded(y.Env, 4, 4)
		y.Retain(rowfeed.Retention{Count: 1})
		looked := false
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			looked = looked || strings.Contains(ev.SQL, "SELECT x.shard FROM (SELECT DISTINCT")
			return looked && ev.Kind == testdb.Begin
		})
		defer held.Release()
		ended := make(chan error, 1)
		go func() {
			f, err := x.TappedDB(testdb.Hooks{Before: held.Before}, nil).Feed(x.Ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.Ctx, nil)
			}
			ended <- err
		}()
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

// TestOutboxShardBetween (M59, M60): a shard whose only record is moved while the shards are looked for is
// among them.
func TestOutboxShardBetween(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Publish(x.Feed)
		x.Appended(2, 7, time.Time{})
		var looks atomic.Int32
		other := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_outbox_events") || strings.Contains(ev.SQL, "rowfeed_shards") {
				if looks.Add(1) == 2 {
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
		if looks.Load() < 2 || len(info.ShardIDs) != 2 {
			x.Errorf("after %d looks: %v", looks.Load(), info.ShardIDs)
		}
	})
}

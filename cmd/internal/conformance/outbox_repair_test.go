package conformance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func recordsUnplaced(ev testdb.TapEvent) bool {
	return strings.HasPrefix(ev.SQL, "INSERT INTO") && strings.Contains(ev.SQL, "SELECT x.shard")
}

// TestOutboxRepairTogether (M63): of two repairs at once one finds what the other has recorded, and a row comes
// once.
func TestOutboxRepairTogether(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		x.exec("INSERT INTO events VALUES (2, 'unrecorded')")
		var recorded atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			recorded.Store(recorded.Load() || recordsUnplaced(ev))
			return ev.Kind == testdb.Commit && recorded.Load()
		})
		defer held.Release()
		first := make(chan int64, 1)
		repair := func(f *rowfeed.Feed, n chan<- int64) {
			go func() {
				records, err := f.Admin().Repair(x.ctx)
				if err != nil {
					x.Error(err)
				}
				n <- records
			}()
		}
		repair(x.other(testdb.Hooks{Before: held.Before}, nil), first)
		<-held.Reached
		second := make(chan int64, 1)
		repair(x.feed, second)
		x.eventually("the second one waits, or is done", func() bool { return x.waits() || len(second) > 0 })
		held.Release()
		if one, two := <-first, <-second; one != 1 || two != 0 {
			x.Errorf("they record %d and %d", one, two)
		}
		x.publish(x.feed)
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 1, 2)
	})
}

// TestOutboxRepairPurge (M63): entries that are purged for the first time while repair is at its rows are not
// recorded again: it refuses, as behind the purge.
func TestOutboxRepairPurge(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachOutbox(t, func(x *events) {
		for id := 1; id <= 6; id++ {
			x.appended(id, 0, time.Time{})
		}
		at := x.page(x.feed, 0, "", 10)
		x.wantIDs(at, false, 1, 2, 3, 4, 5, 6)
		x.retain(rowfeed.Retention{Count: 1})
		held := testdb.Hold(recordsUnplaced)
		defer held.Release()
		other := x.other(testdb.Hooks{Before: held.Before}, nil)
		repaired := make(chan error, 1)
		go func() { _, err := other.Admin().Repair(x.ctx); repaired <- err }()
		<-held.Reached
		x.purged(5)
		held.Release()
		x.wantCode(<-repaired, rowfeed.Refused)
		x.wantIDs(x.page(x.feed, 0, at.Cursor, 10), false)
		x.wantSound(x.feed)
	})
}

// TestBackFillPurgeBetween (M62): the same of a later run of back-fill, which would place the rows of what was
// purged above its mark, where readers in the midst of what was filled get them once more. The run ends.
func TestBackFillPurgeBetween(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(2)
		y := &events{x, x.add(backfillSpec())}
		x.exec("INSERT INTO kv VALUES (901, 0, NULL)")
		x.publish(y.feed)
		reader := y.page(y.feed, 0, "", 2)
		y.wantIDs(reader, true, 2, 1)
		y.unrecorded(4, 4)
		y.retain(rowfeed.Retention{Count: 1})
		looked := false
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			looked = looked || strings.Contains(ev.SQL, "SELECT x.shard FROM (SELECT DISTINCT")
			return looked && ev.Kind == testdb.Begin
		})
		defer held.Release()
		ended := make(chan error, 1)
		go func() {
			f, err := x.tappedDB(testdb.Hooks{Before: held.Before}, nil).Feed(x.ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.ctx, nil)
			}
			ended <- err
		}()
		<-held.Reached
		y.purged(2)
		held.Release()
		x.wantCode(<-ended, rowfeed.Refused)
		y.wantIDs(y.page(y.feed, 0, reader.Cursor, 10), false, 901)
		y.wantIDs(y.page(y.feed, 0, "", 10), false, 901)
		_, err := y.feed.Admin().BackFill(x.ctx, nil)
		x.wantCode(err, rowfeed.Refused)
		y.wantSound(y.feed)
	})
}

// TestOutboxShardBetween (M59, M60): a shard whose only record is moved while the shards are looked for is
// among them.
func TestOutboxShardBetween(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		x.publish(x.feed)
		x.appended(2, 7, time.Time{})
		var looks atomic.Int32
		other := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_outbox_events") || strings.Contains(ev.SQL, "rowfeed_shards") {
				if looks.Add(1) == 2 {
					_, err := x.feed.Publish(x.ctx)
					return err
				}
			}
			return nil
		}}, nil)
		info, err := other.Info(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		if looks.Load() < 2 || len(info.ShardIDs) != 2 {
			x.Errorf("after %d looks: %v", looks.Load(), info.ShardIDs)
		}
	})
}

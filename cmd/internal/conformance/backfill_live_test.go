package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// brokenOff begins what may be filled, and has it break off before the first shard is ready for rows.
func (x *env) brokenOff(begin func(db *rowfeed.DB) error) {
	x.Helper()
	err := begin(x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, "filled_by =") {
			return testdb.ErrInjected
		}
		return nil
	}}, nil))
	if !errors.Is(err, testdb.ErrInjected) {
		x.Fatal(err)
	}
}

// again has a key that stands in the feed inserted and recorded once more, which moves its place.
func (x *events) again(id, shard int) {
	x.Helper()
	x.exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id))
	x.appended(id, shard, time.Time{})
	x.publish(x.feed)
}

// TestBackFillKeyAgain (M62): the live part of a shard begins at the first ULID that was given in it, also
// where that place has moved to the head before back-fill comes to the shard, or was purged. Who stands in it
// reads on while rows are placed, and never meets one of them.
func TestBackFillKeyAgain(t *testing.T) {
	each(t, func(env *env) {
		env.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))", "INSERT INTO events VALUES (100, 'old'), (101, 'old'), (102, 'old')")
		env.brokenOff(func(db *rowfeed.DB) error {
			_, err := db.AddFeed(env.ctx, rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}, nil)
			return err
		})
		f, err := env.rf.Feed(env.ctx, "events")
		if err != nil {
			env.Fatal(err)
		}
		x := &events{env, f}
		hourAgo := x.now().Add(-time.Hour)
		for shard := range 2 {
			x.appended(shard+1, shard, hourAgo)
		}
		x.publish(f)
		moved, purged := x.page(f, 0, rowfeed.Now, 10), x.page(f, 1, rowfeed.Now, 10)
		x.again(1, 0)
		x.wantIDs(x.page(f, 0, moved.Cursor, 10), false, 1)
		for id := 3; id <= 4; id++ {
			x.appended(id, 1, time.Time{})
		}
		x.publish(f)
		x.retain(rowfeed.Retention{Count: 2})
		x.purged(1)
		x.wantIDs(x.page(f, 1, purged.Cursor, 10), false, 3, 4)
		x.retain(rowfeed.Retention{})
		x.exec("DELETE FROM events WHERE id = 2") // a row without a place, as 100 is
		if _, err := f.Admin().BackFill(x.ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.wantIDs(x.page(f, 0, moved.Cursor, 10), false, 1)
		x.wantIDs(x.page(f, 1, purged.Cursor, 10), false, 3, 4)
		x.wantIDs(x.page(f, 0, "", 10), false, 100, 101, 102, 1)
		x.wantSound(f)
	})
}

// TestBackFillKeyAgainBefore (M62): the same of a shard whose first place moved before a run of back-fill
// began: a reader that has not come to its new place is in the live part.
func TestBackFillKeyAgainBefore(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, x.now().Add(-time.Hour))
		x.publish(x.feed)
		at := x.page(x.feed, 0, rowfeed.Now, 10)
		x.again(1, 0)
		x.exec("INSERT INTO events VALUES (100, 'unrecorded'), (101, 'unrecorded')")
		x.brokenOff(func(db *rowfeed.DB) error {
			f, err := db.Feed(x.ctx, "events")
			if err == nil {
				_, err = f.Admin().BackFill(x.ctx, nil)
			}
			return err
		})
		x.wantIDs(x.page(x.feed, 0, at.Cursor, 10), false, 1)
		if _, err := x.feed.Admin().BackFill(x.ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.wantIDs(x.page(x.feed, 0, at.Cursor, 10), false, 1)
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 100, 101, 1)
		x.wantSound(x.feed)
	})
}

// TestBackFillRowsBetween (M62): a row that is imported into a shard when a run has found none there to place
// is left to the next run, whose rows follow their times: were it placed, a reader that has passed it would
// miss those before it.
func TestBackFillRowsBetween(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(0)
		y := &events{x, x.add(backfillSpec())}
		x.exec("INSERT INTO kv VALUES (900, 0, NULL)", "INSERT INTO kv VALUES (903, 3, NULL)")
		x.publish(y.feed)
		y.unrecorded(1, 1)
		looked := false
		between := testdb.Hold(func(ev testdb.TapEvent) bool {
			looked = looked || strings.Contains(ev.SQL, "SELECT x.shard FROM (SELECT DISTINCT")
			return looked && ev.Kind == testdb.Begin
		})
		end := make(chan error, 1)
		go func() {
			f, err := x.tappedDB(testdb.Hooks{Before: between.Before}, nil).Feed(x.ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.ctx, nil)
			}
			end <- err
		}()
		<-between.Reached
		y.unrecorded(3, 3)
		between.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		y.wantShard(0, 1, 900)
		first := y.page(y.feed, 3, "", 1)
		y.unrecorded(6, 6) // older than 3
		if _, err := y.feed.Admin().BackFill(x.ctx, nil); err != nil {
			x.Fatal(err)
		}
		y.wantIDs(first, false, 903)
		y.wantShard(3, 6, 3, 903)
		y.wantSound(y.feed)
	})
}

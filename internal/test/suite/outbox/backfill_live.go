package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// brokenOff begins what may be filled, and has it break off before the first shard is ready for rows.
func brokenOff(x *suite.Env, begin func(db *rowfeed.DB) error) {
	x.Helper()
	err := begin(x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
func again(x *suite.Events, id, shard int) {
	x.Helper()
	x.Exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id))
	x.Appended(id, shard, time.Time{})
	x.Publish(x.Feed)
}

// TestBackFillKeyAgain (M62): the live part of a shard begins at the first ULID that was given in it, also
// where that place has moved to the head before back-fill comes to the shard, or was purged. Who stands in it
// reads on while rows are placed, and never meets one of them.
func TestBackFillKeyAgain(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))", "INSERT INTO events VALUES (100, 'old'), (101, 'old'), (102, 'old')")
		brokenOff(env, func(db *rowfeed.DB) error {
			_, err := db.AddFeed(env.Ctx, rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}, nil)
			return err
		})
		f, err := env.RF.Feed(env.Ctx, "events")
		if err != nil {
			env.Fatal(err)
		}
		x := &suite.Events{Env: env, Feed: f}
		hourAgo := x.Now().Add(-time.Hour)
		for shard := range 2 {
			x.Appended(shard+1, shard, hourAgo)
		}
		x.Publish(f)
		moved, purged := x.Page(f, 0, rowfeed.Now, 10), x.Page(f, 1, rowfeed.Now, 10)
		again(x, 1, 0)
		x.WantIDs(x.Page(f, 0, moved.Cursor, 10), false, 1)
		for id := 3; id <= 4; id++ {
			x.Appended(id, 1, time.Time{})
		}
		x.Publish(f)
		x.Retain(rowfeed.Retention{Count: 2})
		x.Purged(1)
		x.WantIDs(x.Page(f, 1, purged.Cursor, 10), false, 3, 4)
		x.Retain(rowfeed.Retention{})
		x.Exec("DELETE FROM events WHERE id = 2") // a row without a place, as 100 is
		if _, err := f.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.WantIDs(x.Page(f, 0, moved.Cursor, 10), false, 1)
		x.WantIDs(x.Page(f, 1, purged.Cursor, 10), false, 3, 4)
		x.WantIDs(x.Page(f, 0, "", 10), false, 100, 101, 102, 1)
		x.WantSound(f)
	})
}

// TestBackFillKeyAgainBefore (M62): the same of a shard whose first place moved before a run of back-fill
// began: a reader that has not come to its new place is in the live part.
func TestBackFillKeyAgainBefore(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, x.Now().Add(-time.Hour))
		x.Publish(x.Feed)
		at := x.Page(x.Feed, 0, rowfeed.Now, 10)
		again(x, 1, 0)
		x.Exec("INSERT INTO events VALUES (100, 'unrecorded'), (101, 'unrecorded')")
		brokenOff(x.Env, func(db *rowfeed.DB) error {
			f, err := db.Feed(x.Ctx, "events")
			if err == nil {
				_, err = f.Admin().BackFill(x.Ctx, nil)
			}
			return err
		})
		x.WantIDs(x.Page(x.Feed, 0, at.Cursor, 10), false, 1)
		if _, err := x.Feed.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.WantIDs(x.Page(x.Feed, 0, at.Cursor, 10), false, 1)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 100, 101, 1)
		x.WantSound(x.Feed)
	})
}

// TestBackFillRowsBetween (M62): a row that is imported into a shard when a run has found none there to place
// is left to the next run, whose rows follow their times: were it placed, a reader that has passed it would
// miss those before it.
func TestBackFillRowsBetween(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (900, 0, NULL)", "INSERT INTO kv VALUES (903, 3, NULL)")
		x.Publish(y.Feed)
		unrecorded(y.Env, 1, 1)
		looked := false
		between := testdb.Hold(func(ev testdb.TapEvent) bool {
			looked = looked || strings.Contains(ev.SQL, "SELECT x.shard FROM (SELECT DISTINCT")
			return looked && ev.Kind == testdb.Begin
		})
		end := make(chan error, 1)
		go func() {
			f, err := x.TappedDB(testdb.Hooks{Before: between.Before}, nil).Feed(x.Ctx, "kv")
			if err == nil {
				_, err = f.Admin().BackFill(x.Ctx, nil)
			}
			end <- err
		}()
		<-between.Reached
		unrecorded(y.Env, 3, 3)
		between.Release()
		if err := <-end; err != nil {
			x.Fatal(err)
		}
		y.WantShard(0, 1, 900)
		first := y.Page(y.Feed, 3, "", 1)
		unrecorded(y.Env, 6, 6) // older than 3
		if _, err := y.Feed.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		y.WantIDs(first, false, 903)
		y.WantShard(3, 6, 3, 903)
		y.WantSound(y.Feed)
	})
}

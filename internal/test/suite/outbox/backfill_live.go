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

// failFilling lets a back-fill fail before the first shard is ready for rows.
var failFilling = testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
	if strings.Contains(ev.SQL, "filled_by =") {
		return testdb.ErrInjected
	}
	return nil
}}

// again inserts and records a key once more, which moves its entry to the head.
func again(x *suite.Events, id, shard int) {
	x.Helper()
	x.Exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id))
	x.Appended(id, shard, time.Time{})
	x.Publish(x.Feed)
}

// TestBackFillStaysBelowFirstULIDOfShard (M62): the live part of a shard begins at the first ULID that the shard has
// given, also if the entry of that ULID has moved or was purged before back-fill reaches the shard. A reader in the
// live part gets none of the rows that are placed.
func TestBackFillStaysBelowFirstULIDOfShard(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))",
			"INSERT INTO events VALUES (100, 'old'), (101, 'old'), (102, 'old')")
		spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		_, err := env.TappedDB(failFilling, nil).AddFeed(env.Ctx, spec, nil)
		if !errors.Is(err, testdb.ErrInjected) {
			env.Fatal(err)
		}
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
		x.Exec("DELETE FROM events WHERE id = 2") // a row without an entry, like row 100
		if _, err := f.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.WantIDs(x.Page(f, 0, moved.Cursor, 10), false, 1)
		x.WantIDs(x.Page(f, 1, purged.Cursor, 10), false, 3, 4)
		x.WantIDs(x.Page(f, 0, "", 10), false, 100, 101, 102, 1)
		x.WantSound(f)
	})
}

// TestBackFillStaysBelowReaderOfMovedKey (M62): the first entry of a shard has moved before a back-fill begins. A
// reader between its old and its new position is in the live part, and reads while rows are placed.
func TestBackFillStaysBelowReaderOfMovedKey(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, x.Now().Add(-time.Hour))
		x.Publish(x.Feed)
		at := x.Page(x.Feed, 0, rowfeed.Now, 10)
		again(x, 1, 0)
		x.Exec("INSERT INTO events VALUES (100, 'unrecorded'), (101, 'unrecorded')")
		if err := backFill(x.Env, "events", failFilling); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		x.WantIDs(x.Page(x.Feed, 0, at.Cursor, 10), false, 1)
		if _, err := x.Feed.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Fatal(err)
		}
		x.WantIDs(x.Page(x.Feed, 0, at.Cursor, 10), false, 1)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 100, 101, 1)
		x.WantSound(x.Feed)
	})
}

// beginsAfterShardsAreKnown matches the first BEGIN after a back-fill has read which shards have rows to place.
func beginsAfterShardsAreKnown() func(ev testdb.TapEvent) bool {
	known := false
	return func(ev testdb.TapEvent) bool {
		known = known || strings.Contains(ev.SQL, "SELECT x.shard FROM (SELECT DISTINCT")
		return known && ev.Kind == testdb.Begin
	}
}

// TestBackFillLeavesLateRowsToTheNextRun (M62): a row is imported into a shard after a run found nothing to place
// there. The run leaves the row to the next one, which places it together with older rows. Otherwise a reader that has
// passed the row would miss them.
func TestBackFillLeavesLateRowsToTheNextRun(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		x.Exec("INSERT INTO kv VALUES (900, 0, NULL)", "INSERT INTO kv VALUES (903, 3, NULL)")
		x.Publish(y.Feed)
		unrecorded(y.Env, 1, 1)
		between := testdb.Hold(beginsAfterShardsAreKnown())
		end := make(chan error, 1)
		go func() { end <- backFill(x, "kv", testdb.Hooks{Before: between.Before}) }()
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

package outbox

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPurgeMarkSurvivesBackFill (M59): a reader whose entries were purged is refused for ever, also after back-fill has
// placed rows below the mark and these were purged in their turn.
func TestPurgeMarkSurvivesBackFill(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(4)
		broken := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if suite.PlacesOldRows(ev) {
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.Ctx, suite.BackfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.KVEvents()
		x.Exec("INSERT INTO kv VALUES (10, 0, NULL)")
		x.Publish(y.Feed)
		reader := y.Page(y.Feed, 0, rowfeed.Now, 1).Cursor // in the live part, which is served while the rest is filled
		x.Exec("INSERT INTO kv VALUES (11, 0, NULL)", "INSERT INTO kv VALUES (12, 0, NULL)")
		x.Publish(y.Feed)
		y.Retain(rowfeed.Retention{Count: 1})
		y.Purged(2)
		expired(y, 0, reader)
		y.Backfilled(6) // including the purged rows, since readers get nothing below the mark
		y.Purged(5)
		expired(y, 0, reader)
		y.WantIDs(y.Page(y.Feed, 0, "", 10), false, 12)
		y.WantIDs(y.Page(y.Feed, 3, "", 10), false, 3)
	})
}

// TestPurgeResumesAfterItsLastBatch: deleted entries linger in the index, so each batch of a purge begins above the one
// before, and deletes nothing below its first entry. It deletes no entries of another shard, whatever their times.
func TestPurgeResumesAfterItsLastBatch(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const entries = 1400
		hour := x.Now().Add(-time.Hour)
		tx := x.Begin(sql.LevelReadCommitted)
		for id := range entries {
			if err := x.Append(tx, id, id%2, hour.Add(time.Duration(id)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		x.Commit(tx)
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 3})
		var searches, deletes []bool // whether they are bounded from below
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "g.shard = ") && strings.Contains(ev.SQL, "g.ulid <= ") {
				switch {
				case strings.HasPrefix(ev.SQL, "DELETE"):
					deletes = append(deletes, strings.Contains(ev.SQL, "g.ulid >= "))
				case strings.Contains(ev.SQL, "ORDER BY g.ulid"):
					searches = append(searches, strings.Contains(ev.SQL, "g.ulid > "))
				}
			}
			return nil
		}}, nil)
		if n, err := f.Admin().Purge(x.Ctx); err != nil || n != entries-2*3 {
			t.Fatalf("%d entries purged, %v", n, err)
		}
		if !slices.Equal(searches, []bool{false, true, false, true}) ||
			!slices.Equal(deletes, []bool{true, true, true, true}) {
			t.Errorf("bounded from below: the searches %t, the deletes %t", searches, deletes)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, entries-6, entries-4, entries-2)
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, entries-5, entries-3, entries-1)
	})
}

// TestConcurrentPurgesKeepTheHigherMark (M59): two purges of a shard have different marks. The lower mark does not
// replace the higher one, so that no reader passes a gap.
func TestConcurrentPurgesKeepTheHigherMark(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 9; id++ {
			x.Appended(id, 0, time.Time{})
		}
		fifth := x.Page(x.Feed, 0, "", 5)
		x.WantIDs(fifth, true, 1, 2, 3, 4, 5)
		x.WantIDs(x.Page(x.Feed, 0, fifth.Cursor, 10), false, 6, 7, 8, 9)
		x.Retain(rowfeed.Retention{Count: 6})
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return strings.HasPrefix(ev.SQL, "UPDATE") && strings.Contains(ev.SQL, "below_high")
		})
		first := x.Other(testdb.Hooks{Before: held.Before}, nil)
		ended := make(chan error, 1)
		go func() { _, err := first.Admin().Purge(x.Ctx); ended <- err }()
		<-held.Reached // it has read the mark
		x.Retain(rowfeed.Retention{Count: 2})
		if _, err := x.Feed.Admin().Purge(x.Ctx); err != nil {
			x.WantCode(err, rowfeed.Locked)
		}
		held.Release()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, err := x.Feed.Admin().Purge(x.Ctx); err != nil {
			t.Fatal(err)
		}
		expired(x, 0, fifth.Cursor)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 8, 9)
	})
}

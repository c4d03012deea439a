package conformance

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRetainWhileFilling (M59): what was purged is told for ever, also when rows that are placed
// below it afterwards are purged in their turn.
func TestRetainWhileFilling(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(4)
		broken := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "row_number()") {
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.ctx, backfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.kvEvents()
		x.exec("INSERT INTO kv VALUES (10, 0, NULL)")
		x.publish(y.feed)
		reader := y.page(y.feed, 0, rowfeed.Now, 1).Cursor // in the live part, which is served while the rest is filled
		x.exec("INSERT INTO kv VALUES (11, 0, NULL)", "INSERT INTO kv VALUES (12, 0, NULL)")
		x.publish(y.feed)
		y.retain(rowfeed.Retention{Count: 1})
		y.purged(2)
		y.expired(0, reader)
		y.backfilled(6) // those that were purged among them: below the mark nothing is shown
		y.purged(5)
		y.expired(0, reader)
		y.wantIDs(y.page(y.feed, 0, "", 10), false, 12)
		y.wantIDs(y.page(y.feed, 3, "", 10), false, 3)
	})
}

// TestRetainGoesOn: what was purged lingers in the index, so each batch of a purge begins behind the
// one before, and deletes nothing below its first entry; nor of another shard, whatever times
// its entries have.
func TestRetainGoesOn(t *testing.T) {
	eachOutbox(t, func(x *events) {
		const entries = 1400
		hour := x.now().Add(-time.Hour)
		tx := x.begin(sql.LevelReadCommitted)
		for id := range entries {
			if err := x.append(tx, id, id%2, hour.Add(time.Duration(id)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		x.commit(tx)
		x.publish(x.feed)
		x.retain(rowfeed.Retention{Count: 3})
		var looks, deletes []bool // bounded from below
		f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "g.shard = ") && strings.Contains(ev.SQL, "g.ulid <= ") {
				switch {
				case strings.HasPrefix(ev.SQL, "DELETE"):
					deletes = append(deletes, strings.Contains(ev.SQL, "g.ulid >= "))
				case strings.Contains(ev.SQL, "ORDER BY g.ulid"):
					looks = append(looks, strings.Contains(ev.SQL, "g.ulid > "))
				}
			}
			return nil
		}}, nil)
		if n, err := f.Admin().Purge(x.ctx); err != nil || n != entries-2*3 {
			t.Fatalf("%d entries purged, %v", n, err)
		}
		if !slices.Equal(looks, []bool{false, true, false, true}) || !slices.Equal(deletes, []bool{true, true, true, true}) {
			t.Errorf("looks bounded from below: %t, deletes: %t", looks, deletes)
		}
		x.wantIDs(x.page(x.feed, 0, "", 10), false, entries-6, entries-4, entries-2)
		x.wantIDs(x.page(x.feed, 1, "", 10), false, entries-5, entries-3, entries-1)
	})
}

// TestRetainTogether (M59): two that purge a shard at once, to different marks, do not lower what the
// other has raised: nobody goes on over a gap.
func TestRetainTogether(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	eachOutbox(t, func(x *events) {
		for id := 1; id <= 9; id++ {
			x.appended(id, 0, time.Time{})
		}
		fifth := x.page(x.feed, 0, "", 5)
		x.wantIDs(fifth, true, 1, 2, 3, 4, 5)
		x.wantIDs(x.page(x.feed, 0, fifth.Cursor, 10), false, 6, 7, 8, 9)
		x.retain(rowfeed.Retention{Count: 6})
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return strings.HasPrefix(ev.SQL, "UPDATE") && strings.Contains(ev.SQL, "below_high")
		})
		first := x.other(testdb.Hooks{Before: held.Before}, nil)
		ended := make(chan error, 1)
		go func() { _, err := first.Admin().Purge(x.ctx); ended <- err }()
		<-held.Reached // it has read the mark
		x.retain(rowfeed.Retention{Count: 2})
		if _, err := x.feed.Admin().Purge(x.ctx); err != nil {
			x.wantCode(err, rowfeed.Locked)
		}
		held.Release()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, err := x.feed.Admin().Purge(x.ctx); err != nil {
			t.Fatal(err)
		}
		x.expired(0, fifth.Cursor)
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 8, 9)
	})
}

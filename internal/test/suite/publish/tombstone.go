package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// age makes positions older: it subtracts a duration from their times of publication.
func age(x *suite.Env, by time.Duration, condition string) {
	x.Helper()
	x.Exec(fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = published_at - %d WHERE %s",
		by.Microseconds(), condition))
}

// purge purges tombstones and asserts how many were deleted.
func purge(x *suite.Env, f *rowfeed.Feed, want int) {
	x.Helper()
	if n, err := f.Admin().Purge(x.Ctx); err != nil || n != want {
		x.Fatalf("purged %d, %v, want %d", n, err, want)
	}
}

// tombstones returns the number of tombstones, and the position below which tombstones were deleted.
func tombstones(x *suite.Env) (count, below int64) {
	x.Helper()
	count = x.Scalar("SELECT count(*) FROM rowfeed_positions_kv WHERE deleted = 1")
	below = x.Scalar("SELECT tombstones_below FROM rowfeed_feeds WHERE name = 'kv'")
	return count, below
}

// pages matches the statement that reads a page.
func pages(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.Contains(ev.SQL, "LEFT JOIN (SELECT")
}

// TestPurgedTombstoneRefusesOlderCursors (M70, H16): a tombstone is kept as long as the feed's setting says. After it
// was purged, a cursor below it is refused. If a cursor has a start mark, the mark counts and not the position. A
// reader that starts at the beginning is not refused.
func TestPurgedTombstoneRefusesOlderCursors(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Tombstones: time.Hour})
		for id := 1; id <= 6; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
		}
		x.Publish(f)
		for id := 1; id <= 4; id++ {
			x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
		}
		x.Publish(f) // 5 and 6 are rows; 7, 8, 9 and 10 are tombstones
		purge(x, f, 0)
		age(x, 59*time.Minute, "id <= 4")
		purge(x, f, 0)
		if count, below := tombstones(x); count != 4 || below != 0 {
			x.Errorf("%d tombstones, below %d", count, below)
		}
		x.WantPage(f, "6", 9, "7 "+suite.Gone(1), "8 "+suite.Gone(2), "9 "+suite.Gone(3), "10 "+suite.Gone(4), "> 10")
		age(x, 2*time.Minute, "id <= 2")
		x.Exec("UPDATE kv SET v = 1 WHERE id = 5")
		x.Publish(f) // 11, which stays however old it is, because it is a row
		age(x, 5*time.Hour, "id >= 5")
		purge(x, f, 2)
		if count, below := tombstones(x); count != 2 || below != 8 {
			x.Errorf("%d tombstones, below %d", count, below)
		}
		nine, ten, live := "9 "+suite.Gone(3), "10 "+suite.Gone(4), "11 "+suite.KV(5, "k", 1)
		for _, after := range []rowfeed.Cursor{"1", "6", "7", "5@7", "0@1"} {
			x.WantRefused(f, after, rowfeed.TombstonesExpired)
		}
		x.WantPage(f, "8", 9, nine, ten, live, "> 11")
		x.WantPage(f, "6@8", 9, nine, ten, live, "> 11")
		x.WantPage(f, "6@9", 9, ten, live, "> 11") // tombstones up to the mark are not shown
		x.WantPage(f, "0@8", 9, "6 "+suite.KV(6, "k", 0), nine, ten, live, "> 11")
		for _, after := range []rowfeed.Cursor{"", "0"} {
			x.WantPage(f, after, 9, "6 "+suite.KV(6, "k", 0), live, "> 11")
			x.WantPage(f, after, 1, "6 "+suite.KV(6, "k", 0), "> 6@11+")
		}
		x.WantPage(f, "6@11", 9, live, "> 11") // the second page is not refused either
		purge(x, f, 0)
		// A key that is inserted again has no tombstone. A hidden key is kept, because only its record says that it is
		// hidden.
		x.Exec("INSERT INTO kv VALUES (3, 'back', 0)")
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
			return f.Unpublish(x.Ctx, tx, rowfeed.Key{4}, rowfeed.Key{6})
		})
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv WHERE id = 6")
		x.Publish(f)
		age(x, 5*time.Hour, "1 = 1")
		purge(x, f, 0)
		if x.Capture == feedtype.CaptureColumn { // it publishes rows after deletes and unpublished keys
			x.WantPage(f, "8", 9, live, "12 "+suite.Gone(4), "13 "+suite.Gone(6), "14 "+suite.KV(3, "back", 0), "> 14")
		} else {
			x.WantPage(f, "8", 9, live, "12 "+suite.KV(3, "back", 0), "13 "+suite.Gone(4), "14 "+suite.Gone(6), "> 14")
		}
		x.WantSound(f)
	})
}

// TestManyTombstonesArePurged: a purge deletes all old tombstones, though they are more than one batch.
func TestManyTombstonesArePurged(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		const rows = 1203
		var values []string
		for id := 1; id <= rows; id++ {
			values = append(values, fmt.Sprintf("(%d, 'k', 0)", id))
		}
		x.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id <= 1201")
		x.Publish(f)
		age(x, 31*24*time.Hour, "1 = 1")
		purge(x, f, 1201)
		head := int64(rows + 1201)
		if count, below := tombstones(x); count != 0 || below != head {
			x.Errorf("%d tombstones left, below %d, want %d", count, below, head)
		}
		x.WantRefused(f, rowfeed.Cursor(fmt.Sprint(head-1)), rowfeed.TombstonesExpired)
		x.WantPage(f, rowfeed.Cursor(fmt.Sprint(head)), 9, fmt.Sprintf("> %d", head))
	})
}

// TestPurgeIsAtomic (G4, M70, H16): at whichever statement a purge fails, all tombstones remain and tombstones_below is
// unchanged.
func TestPurgeIsAtomic(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id IN (1, 2)")
		x.Publish(f)
		age(x, 31*24*time.Hour, "1 = 1")
		broken := 0
		for n := int64(1); ; n++ {
			at, armed := int64(0), false
			g := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if !armed || ev.Kind == testdb.Rollback {
					return nil
				}
				if at++; at == n {
					return testdb.ErrInjected
				}
				return nil
			}}, nil)
			armed = true
			_, err := g.Admin().Purge(x.Ctx)
			count, below := tombstones(x)
			if err == nil {
				if count != 0 || below != 5 {
					x.Errorf("at the end %d tombstones, below %d", count, below)
				}
				break
			}
			broken++
			if !errors.Is(err, testdb.ErrInjected) || count != 2 || below != 0 {
				x.Fatalf("failed at event %d (%v): %d tombstones, below %d", n, err, count, below)
			}
			x.WantPage(f, "3", 9, "4 "+suite.Gone(1), "5 "+suite.Gone(2), "> 5")
		}
		if broken < 5 {
			x.Errorf("a purge failed at %d statements only", broken)
		}
		x.WantRefused(f, "3", rowfeed.TombstonesExpired)
	})
}

// TestPageDuringPurgeIsRefused (G3, H16): if tombstones are purged while a page is read, the page does not leave them
// out silently but is refused. The purge happens before the statement that reads the rows.
func TestPageDuringPurgeIsRefused(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 1", "UPDATE kv SET v = 1 WHERE id = 2")
		x.Publish(f) // 4 is a tombstone, 5 a row
		age(x, 31*24*time.Hour, "1 = 1")
		held := testdb.Hold(pages)
		g := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan suite.Fetched, 1)
		go func() {
			page, err := g.Fetch(x.Ctx, rowfeed.Request{After: "3"})
			result <- suite.Fetched{Page: page, Err: err}
		}()
		<-held.Reached
		purge(x, f, 1)
		held.Release()
		if got := <-result; !suite.IsCode(got.Err, rowfeed.TombstonesExpired) {
			x.Errorf("got %v and\n%s", got.Err, suite.Show(got.Page))
		}
	})
}

// TestPurgeKeepsRevivedKey (G1): if a key is inserted again while its tombstone is purged, the publisher waits for the
// purge and then publishes the row. With one writer at a time, the row is inserted after the purge.
func TestPurgeKeepsRevivedKey(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0)")
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 1")
		x.Publish(f)
		age(x, 31*24*time.Hour, "1 = 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Exec &&
				strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "positions_kv")
		})
		purger := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		results := make(chan error, 2)
		go func() {
			_, err := purger.Admin().Purge(x.Ctx)
			results <- err
		}()
		<-held.Reached
		if x.Has.OneWriter {
			held.Release()
			x.Exec("INSERT INTO kv VALUES (1, 'back', 0)")
			x.Publish(f)
		} else {
			x.Exec("INSERT INTO kv VALUES (1, 'back', 0)")
			var took atomic.Bool
			publisher := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if suite.LocksRows(ev) {
					took.Store(true)
				}
				return err
			}}, nil)
			go func() {
				_, err := publisher.Publish(x.Ctx)
				results <- err
			}()
			x.Eventually("the publisher waits for the purge", func() bool { return took.Load() || x.Waits() })
			if took.Load() {
				x.Error("the publisher locked the sequence's row while the purge had it locked")
			}
			held.Release()
			if err := <-results; err != nil {
				x.Error(err)
			}
		}
		if err := <-results; err != nil {
			x.Error(err)
		}
		lines, _ := x.Drain(f, "3")
		if !slices.Equal(lines, []string{suite.KV(1, "back", 0)}) {
			x.Errorf("got %q", lines)
		}
		x.WantSound(f)
	})
}

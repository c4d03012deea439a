package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// age sets the publication of rows back, as if it had been so long ago.
func (x *env) age(by time.Duration, condition string) {
	x.Helper()
	x.exec(fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = published_at - %d WHERE %s", by.Microseconds(), condition))
}

func (x *env) purge(f *rowfeed.Feed, want int) {
	x.Helper()
	if n, err := f.Admin().Purge(x.ctx); err != nil || n != want {
		x.Fatalf("purged %d, %v, want %d", n, err, want)
	}
}

func (x *env) tombstones() (count, below int64) {
	x.Helper()
	return x.scalar("SELECT count(*) FROM rowfeed_positions_kv WHERE deleted = 1"), x.scalar("SELECT tombstones_below FROM rowfeed_feeds WHERE name = 'kv'")
}

// pages picks the statement that reads a page.
func pages(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.Contains(ev.SQL, "LEFT JOIN (SELECT")
}

// TestTombstonesExpire (M70, H16): deletes are kept for as long as the feed
// says, then forgotten; a cursor that has not passed them is refused, told by its
// start mark where it has one; a new start is not.
func TestTombstonesExpire(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Tombstones: time.Hour})
		for id := 1; id <= 6; id++ {
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
		}
		x.publish(f)
		for id := 1; id <= 4; id++ {
			x.exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
		}
		x.publish(f) // 5, 6 live; 7, 8, 9, 10 deleted
		x.purge(f, 0)
		x.age(59*time.Minute, "id <= 4")
		x.purge(f, 0)
		if count, below := x.tombstones(); count != 4 || below != 0 {
			x.Errorf("%d tombstones, below %d", count, below)
		}
		x.wantPage(f, "6", 9, "7 "+gone(1), "8 "+gone(2), "9 "+gone(3), "10 "+gone(4), "> 10")
		x.age(2*time.Minute, "id <= 2")
		x.exec("UPDATE kv SET v = 1 WHERE id = 5")
		x.publish(f) // 11; old as it may be, a live row stays
		x.age(5*time.Hour, "id >= 5")
		x.purge(f, 2)
		if count, below := x.tombstones(); count != 2 || below != 8 {
			x.Errorf("%d tombstones, below %d", count, below)
		}
		nine, ten, live := "9 "+gone(3), "10 "+gone(4), "11 "+kv(5, "k", 1)
		for _, after := range []rowfeed.Cursor{"1", "6", "7", "5@7", "0@1"} {
			x.wantRefused(f, after, rowfeed.TombstonesExpired)
		}
		x.wantPage(f, "8", 9, nine, ten, live, "> 11")
		x.wantPage(f, "6@8", 9, nine, ten, live, "> 11")
		x.wantPage(f, "6@9", 9, ten, live, "> 11") // the mark stands for what was never shown
		x.wantPage(f, "0@8", 9, "6 "+kv(6, "k", 0), nine, ten, live, "> 11")
		for _, after := range []rowfeed.Cursor{"", "0"} {
			x.wantPage(f, after, 9, "6 "+kv(6, "k", 0), live, "> 11")
			x.wantPage(f, after, 1, "6 "+kv(6, "k", 0), "> 6@11+") // and its second page is not refused
		}
		x.wantPage(f, "6@11", 9, live, "> 11")
		x.purge(f, 0)
		// A key that came back is no tombstone any more, and one that is hidden is kept:
		// only its mark says that it is hidden.
		x.exec("INSERT INTO kv VALUES (3, 'back', 0)")
		if err := f.InOwnTx(x.ctx, func(tx rowfeed.Tx) error { return f.Unpublish(x.ctx, tx, rowfeed.Key{4}, rowfeed.Key{6}) }); err != nil {
			x.Fatal(err)
		}
		x.exec("DELETE FROM kv WHERE id = 6")
		x.publish(f)
		x.age(5*time.Hour, "1 = 1")
		x.purge(f, 0)
		if x.capture == feedtype.CaptureColumn { // rows come behind deletes and wishes
			x.wantPage(f, "8", 9, live, "12 "+gone(4), "13 "+gone(6), "14 "+kv(3, "back", 0), "> 14")
		} else {
			x.wantPage(f, "8", 9, live, "12 "+kv(3, "back", 0), "13 "+gone(4), "14 "+gone(6), "> 14")
		}
		x.wantSound(f)
	})
}

// TestManyTombstonesExpire: purging goes in batches, each of them complete in itself.
func TestManyTombstonesExpire(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		const rows = 1203
		var values []string
		for id := 1; id <= rows; id++ {
			values = append(values, fmt.Sprintf("(%d, 'k', 0)", id))
		}
		x.exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
		x.publish(f)
		x.exec("DELETE FROM kv WHERE id <= 1201")
		x.publish(f)
		x.age(31*24*time.Hour, "1 = 1")
		x.purge(f, 1201)
		head := int64(rows + 1201)
		if count, below := x.tombstones(); count != 0 || below != head {
			x.Errorf("%d tombstones left, below %d, want %d", count, below, head)
		}
		x.wantRefused(f, rowfeed.Cursor(fmt.Sprint(head-1)), rowfeed.TombstonesExpired)
		x.wantPage(f, rowfeed.Cursor(fmt.Sprint(head)), 9, fmt.Sprintf("> %d", head))
	})
}

// TestPurgeIsAtomic (G4, M70, H16): however a purge breaks off, either the
// tombstones are there or tombstones_below says that they are not.
func TestPurgeIsAtomic(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0)")
		x.publish(f)
		x.exec("DELETE FROM kv WHERE id IN (1, 2)")
		x.publish(f)
		x.age(31*24*time.Hour, "1 = 1")
		broken := 0
		for n := int64(1); ; n++ {
			at, armed := int64(0), false
			g := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if !armed || ev.Kind == testdb.Rollback {
					return nil
				}
				if at++; at == n {
					return testdb.ErrInjected
				}
				return nil
			}}, nil)
			armed = true
			_, err := g.Admin().Purge(x.ctx)
			count, below := x.tombstones()
			if err == nil {
				if count != 0 || below != 5 {
					x.Errorf("at the end %d tombstones, below %d", count, below)
				}
				break
			}
			broken++
			if !errors.Is(err, testdb.ErrInjected) || count != 2 || below != 0 {
				x.Fatalf("broken at event %d (%v): %d tombstones, below %d", n, err, count, below)
			}
			x.wantPage(f, "3", 9, "4 "+gone(1), "5 "+gone(2), "> 5")
		}
		if broken < 5 {
			x.Errorf("a purge broke in %d places only", broken)
		}
		x.wantRefused(f, "3", rowfeed.TombstonesExpired)
	})
}

// TestPurgeBesidePage (G3, H16): tombstones that go while a page is
// being read, on MariaDB and MySQL between its two statements, are not passed over in
// silence: the page is refused.
func TestPurgeBesidePage(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0), (3, 'k', 0)")
		x.publish(f)
		x.exec("DELETE FROM kv WHERE id = 1", "UPDATE kv SET v = 1 WHERE id = 2")
		x.publish(f) // 4 deleted, 5 live
		x.age(31*24*time.Hour, "1 = 1")
		held := testdb.Hold(pages)
		rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{Before: held.Before}), x.dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		g, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		type answer struct {
			page rowfeed.Page
			err  error
		}
		answered := make(chan answer, 1)
		go func() {
			page, err := g.Fetch(x.ctx, rowfeed.Request{After: "3"})
			answered <- answer{page, err}
		}()
		<-held.Reached
		x.purge(f, 1)
		held.Release()
		a := <-answered
		if !isCode(a.err, rowfeed.TombstonesExpired) {
			x.Errorf("got %v and\n%s", a.err, show(a.page))
		}
	})
}

// TestPurgeBesideRevival (G1): a key that comes back while its tombstone is
// being forgotten is not forgotten with it: the publisher waits for the purge.
// (SQLite's purge keeps every writer out.)
func TestPurgeBesideRevival(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'k', 0), (2, 'k', 0)")
		x.publish(f)
		x.exec("DELETE FROM kv WHERE id = 1")
		x.publish(f)
		x.age(31*24*time.Hour, "1 = 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Exec && strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "positions_kv")
		})
		purger := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		results := make(chan error, 2)
		go func() {
			_, err := purger.Admin().Purge(x.ctx)
			results <- err
		}()
		<-held.Reached
		if x.family() == "sqlite" {
			held.Release()
			x.exec("INSERT INTO kv VALUES (1, 'back', 0)")
			x.publish(f)
		} else {
			x.exec("INSERT INTO kv VALUES (1, 'back', 0)")
			var took atomic.Bool
			publisher := x.tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if strings.Contains(ev.SQL, "FOR UPDATE") {
					took.Store(true)
				}
				return err
			}}, nil)
			go func() {
				_, err := publisher.Publish(x.ctx)
				results <- err
			}()
			x.eventually("the publisher waits for the purge", func() bool {
				rest(x.ctx, 150*time.Millisecond) // innodb_trx shows something new once it was left alone for 100 ms
				return took.Load() || x.waits()
			})
			if took.Load() {
				x.Error("the publisher got the sequence row while the purge had it")
			}
			held.Release()
			if err := <-results; err != nil {
				x.Error(err)
			}
		}
		if err := <-results; err != nil {
			x.Error(err)
		}
		lines, _ := x.drain(f, "3")
		if !slices.Equal(lines, []string{kv(1, "back", 0)}) {
			x.Errorf("got %q", lines)
		}
		x.wantSound(f)
	})
}

package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPurgeScansNoRowTwice (H16): a purge's scan for old tombstones starts at the oldest one that the last scan found.
// If that found none, it starts above the positions that were published before the last scan, so that a delete that was
// published during that scan is found. The first scan of a process starts above what other processes have purged.
func TestPurgeScansNoRowTwice(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		var f *rowfeed.Feed
		var from []string
		during := func() {}
		hooks := testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if !strings.Contains(ev.SQL, "deleted = 1 AND hidden = 0") || ev.InTx {
				return err
			}
			_, bound, _ := strings.Cut(ev.SQL, "feed_sync_id >= ")
			bound, _, _ = strings.Cut(strings.ReplaceAll(bound, "\n", " "), " ")
			if bound != "" && len(ev.Args) > 1 { // the bound and the limit
				bound = fmt.Sprint(ev.Args[0].Value)
			}
			from = append(from, bound)
			do := during
			during = func() {}
			do()
			return err
		}}
		rf := x.TappedDB(hooks, nil)
		var err error
		if f, err = rf.Feed(x.Ctx, "kv"); err != nil {
			t.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		x.Publish(f)
		purge(x, f, 0) // no position up to 3 is a tombstone
		during = func() {
			x.Exec("DELETE FROM kv WHERE id = 2")
			x.Publish(f)
		}
		purge(x, f, 0) // scans from 4 on, and 4 is published after the scan
		purge(x, f, 0) // finds 4, which is not old enough
		x.Exec("DELETE FROM kv WHERE id = 3")
		x.Publish(f)
		age(x, 31*24*time.Hour, "feed_sync_id <= 4")
		purge(x, f, 1)
		age(x, 31*24*time.Hour, "1 = 1")
		purge(x, f, 1)
		purge(x, f, 0)
		if want := []string{"", "4", "4", "4", "4", "5"}; !slices.Equal(from, want) {
			t.Errorf("scans begin at %q, want %q", from, want)
		}
		if count, below := tombstones(x); count != 0 || below != 5 {
			t.Errorf("%d tombstones left, below %d", count, below)
		}
		x.Exec("DELETE FROM kv WHERE id = 1")
		x.Publish(f) // 6
		age(x, 31*24*time.Hour, "1 = 1")
		from = nil
		other, err := x.TappedDB(hooks, nil).Feed(x.Ctx, "kv")
		if err != nil {
			t.Fatal(err)
		}
		purge(x, other, 1)
		if want := []string{"6"}; !slices.Equal(from, want) {
			t.Errorf("scans of another process begin at %q, want %q", from, want)
		}
	})
}

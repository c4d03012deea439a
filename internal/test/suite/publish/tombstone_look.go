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

// TestPurgeLooksOnward (H16): a look for old tombstones begins at the oldest that the last one
// found, or above what had been published before it, and so passes over no rows again and again;
// a delete that is published during a look is not passed over. A process's first look begins above
// what others have purged.
func TestPurgeLooksOnward(t *testing.T) {
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
			switch bound, _, _ = strings.Cut(bound, " "); {
			case bound != "" && len(ev.Args) > 1: // it and the limit
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
		purge(x, f, 0) // nothing is deleted up to 3
		during = func() {
			x.Exec("DELETE FROM kv WHERE id = 2")
			x.Publish(f)
		}
		purge(x, f, 0) // looks from 4 on; 4 comes behind its look
		purge(x, f, 0) // finds 4, which is not due
		x.Exec("DELETE FROM kv WHERE id = 3")
		x.Publish(f)
		age(x, 31*24*time.Hour, "feed_sync_id <= 4")
		purge(x, f, 1)
		age(x, 31*24*time.Hour, "1 = 1")
		purge(x, f, 1)
		purge(x, f, 0)
		if want := []string{"", "4", "4", "4", "4", "5"}; !slices.Equal(from, want) {
			t.Errorf("looks begin at %q, want %q", from, want)
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
			t.Errorf("looks of another process begin at %q, want %q", from, want)
		}
	})
}

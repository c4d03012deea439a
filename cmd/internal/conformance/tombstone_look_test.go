package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPurgeLooksOnward (H16): a look for old tombstones begins at the oldest that the last one
// found, or above what had been published before it, and so passes over no rows again and again;
// a delete that is published during a look is not passed over. A process's first look begins above
// what others have purged.
func TestPurgeLooksOnward(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
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
		rf := x.tappedDB(hooks, nil)
		var err error
		if f, err = rf.Feed(x.ctx, "kv"); err != nil {
			t.Fatal(err)
		}
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		x.publish(f)
		x.purge(f, 0) // nothing is deleted up to 3
		during = func() {
			x.exec("DELETE FROM kv WHERE id = 2")
			x.publish(f)
		}
		x.purge(f, 0) // looks from 4 on; 4 comes behind its look
		x.purge(f, 0) // finds 4, which is not due
		x.exec("DELETE FROM kv WHERE id = 3")
		x.publish(f)
		x.age(31*24*time.Hour, "feed_sync_id <= 4")
		x.purge(f, 1)
		x.age(31*24*time.Hour, "1 = 1")
		x.purge(f, 1)
		x.purge(f, 0)
		if want := []string{"", "4", "4", "4", "4", "5"}; !slices.Equal(from, want) {
			t.Errorf("looks begin at %q, want %q", from, want)
		}
		if count, below := x.tombstones(); count != 0 || below != 5 {
			t.Errorf("%d tombstones left, below %d", count, below)
		}
		x.exec("DELETE FROM kv WHERE id = 1")
		x.publish(f) // 6
		x.age(31*24*time.Hour, "1 = 1")
		from = nil
		other, err := x.tappedDB(hooks, nil).Feed(x.ctx, "kv")
		if err != nil {
			t.Fatal(err)
		}
		x.purge(other, 1)
		if want := []string{"6"}; !slices.Equal(from, want) {
			t.Errorf("looks of another process begin at %q, want %q", from, want)
		}
	})
}

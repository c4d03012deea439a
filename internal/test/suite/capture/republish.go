package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestRepublishAllKeepsHidden (M70): republishing all rows shows no row that is hidden.
func TestRepublishAllKeepsHidden(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Unpublish(x.Ctx, tx, rowfeed.Key{1}) })
		if err != nil {
			x.Fatal(err)
		}
		_, cursor := x.Drain(f, "")
		if _, err := f.Admin().RepublishWhere(x.Ctx, "", 10, nil); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor, suite.KV(2, "b", 0))
	})
}

// TestUnpublishAppliesToEqualSpellingsOfKey (M70): unpublish and republish of a key hold for every spelling that its
// collation takes for equal, also within a batch.
func TestUnpublishAppliesToEqualSpellingsOfKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_case_insensitive_key")...)
		f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n"})
		x.Exec("INSERT INTO n VALUES ('fred', 1)")
		cursor := x.WantDrain(f, "", `upsert {"k":"fred","v":1}`)
		wish := func(what string) {
			x.Helper()
			err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
				if what == "hide" {
					return f.Unpublish(x.Ctx, tx, rowfeed.Key{"FRED"})
				}
				return f.Republish(x.Ctx, tx, rowfeed.Key{"FRED"})
			})
			if err != nil {
				x.Fatal(err)
			}
		}
		wish("hide")
		x.Exec("UPDATE n SET v = 2")
		lines, cursor := x.Drain(f, cursor)
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "delete") {
			x.Fatalf("hiding the key gave %q, want its delete", lines)
		}
		wish("show")
		x.Exec("UPDATE n SET v = 3")
		x.WantDrain(f, cursor, `upsert {"k":"fred","v":3}`)
	})
}

// TestPurgeDeletesOldestTombstones: a purge deletes the tombstones that are old enough, from the oldest on, and ends at
// the first that is not.
func TestPurgeDeletesOldestTombstones(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		for i := 1; i <= 3; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
		}
		x.Publish(f)
		x.Exec("DELETE FROM kv")
		x.Publish(f)
		ago := (40 * 24 * time.Hour).Microseconds()
		x.Exec(fmt.Sprintf(
			"UPDATE rowfeed_positions_kv SET published_at = published_at - %d WHERE feed_sync_id <= 5", ago))
		if n, err := f.Admin().Purge(x.Ctx); n != 2 || err != nil {
			x.Errorf("%d tombstones purged, %v", n, err)
		}
		x.WantSound(f)
	})
}

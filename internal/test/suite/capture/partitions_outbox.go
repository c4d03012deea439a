package capture

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestAttachedRowsOfOutboxGetRecords (V4): the publisher records rows that ATTACH brings to the table of a feed with an
// outbox.
func TestAttachedRowsOfOutboxGetRecords(t *testing.T) {
	testdb.Quick(t)
	eachPartitioned(t, func(x *suite.Env) {
		x.Exec(partitioned(x), partition(x, "p0", 0, 100))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.Exec(partition(x, "p1", 100, 200), "CREATE TABLE p2 (id bigint PRIMARY KEY, v int)",
			"INSERT INTO p2 VALUES (200, 0)", attach(x, "p2", 200, 300),
			"INSERT INTO p VALUES (1, 0), (100, 0), (201, 0)")
		wantTold(x, f)
		var ids []string
		whilePublishing(x, "all rows have entries", func(*suite.Troubles) bool {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0)})
			if err != nil {
				x.Fatal(err)
			}
			ids = nil
			for _, e := range page.Entries {
				ids = append(ids, suite.Line(e))
			}
			return len(ids) == 4
		})
		slices.Sort(ids)
		want := []string{`upsert {"id":1,"v":0}`, `upsert {"id":100,"v":0}`,
			`upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`}
		if !slices.Equal(ids, want) {
			x.Errorf("the entries are %q, want %q", ids, want)
		}
	})
}

// TestUpgradePlacesAttachedAndWaitingRows (V4): a partition is attached while records of other rows wait. Upgrade
// records its rows, and all of them get entries.
func TestUpgradePlacesAttachedAndWaitingRows(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		x.Exec(partitioned(x), partition(x, "p0", 0, 100))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.Exec("CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)",
			"INSERT INTO p VALUES (1, 0)", attach(x, "p2", 200, 300))
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			t.Fatal(err)
		}
		events := &suite.Events{Env: x, Feed: f}
		events.WantShard(0, 1, 200)
	})
}

package outbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestRepairRecordsRowsWithoutRecord (M63): check finds rows that have neither a record nor an entry, and repair
// appends records for them, in their shards. Entries without rows are no findings.
func TestRepairRecordsRowsWithoutRecord(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(2)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		unrecorded(y.Env, 3, 5)
		x.Exec("INSERT INTO kv VALUES (6, 3, NULL)", "DELETE FROM kv WHERE id = 1")
		findings, err := y.Feed.Admin().Check(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		var keys []string
		for _, finding := range findings {
			keys = append(keys, finding.Rule+string(finding.Key.AppendJSON(nil)))
		}
		want := []string{`row-has-place{"id":3}`, `row-has-place{"id":4}`, `row-has-place{"id":5}`}
		if slices.Sort(keys); !slices.Equal(keys, want) {
			x.Errorf("check found %q", keys)
		}
		for _, want := range []int64{3, 0} {
			if n, err := y.Feed.Admin().Repair(x.Ctx); n != want || err != nil {
				x.Errorf("repair recorded %d rows, %v; want %d", n, err, want)
			}
			y.WantSound(y.Feed)
		}
		y.WantShard(0, 2, 4, 5)
		y.WantShard(3, 6, 3)
		if _, err := y.Feed.Admin().BackFill(x.Ctx, nil); err != nil {
			x.Error(err)
		}
		y.WantShard(0, 2, 4, 5)
		for _, table := range []string{"rowfeed_outbox_kv", "rowfeed_feed_kv"} {
			x.Exec("DROP TABLE " + table)
			problems, err := y.Feed.Admin().Verify(x.Ctx)
			if err != nil || len(problems) != 1 || !strings.Contains(problems[0], table+" is missing") {
				x.Errorf("verify found %q, %v", problems, err)
			}
			if _, err := y.Feed.Admin().Upgrade(x.Ctx); err != nil {
				x.Error(err)
			}
		}
	})
}

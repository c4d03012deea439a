package ulid

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestAlteredColumnIsReportedWithItsRemedy (M63): a column of a feed's table is renamed, or gets another type. Check
// reports it, and errors say what to do. After the column was renamed back, or the feed was upgraded, the feed is in
// order.
func TestAlteredColumnIsReportedWithItsRemedy(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(7, 1, 2)
		found := func(words string) {
			x.Helper()
			findings, err := x.Feed.Admin().Check(x.Ctx)
			if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, words) ||
				findings[0].ByRepair() {
				t.Errorf("check: %+v, %v; want %q", findings, err, words)
			}
		}
		next := "give the column its name back"
		for _, column := range []string{"shard", "ulid"} {
			x.Exec("ALTER TABLE events RENAME COLUMN " + column + " TO other")
			found(`it has no column "` + column + `" any more; ` + next)
			_, upgrade := x.Feed.Admin().Upgrade(x.Ctx)
			_, fetch := x.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7)})
			for _, err := range []error{upgrade, fetch} {
				if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "Next: "+next) {
					t.Errorf("error %v, want a refusal that says %q", err, next)
				}
			}
			x.Exec("ALTER TABLE events RENAME COLUMN other TO " + column)
			x.WantSound(x.Feed)
		}
		for _, change := range x.Statements("ulid.change_position_type") { // some databases have one type for ULIDs
			x.Exec(change)
			found(x.Text("ulid.changed_type_problem"))
			if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
				t.Error(err)
			}
			x.WantSound(x.Feed)
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 2)
		}
	})
}

package ulid

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestAlteredColumnIsReportedWithItsRemedy (M63): a table whose columns have other names or types by now is told so by check, and what
// is refused of it says how to go on; as it was, or upgraded, it is in order.
func TestAlteredColumnIsReportedWithItsRemedy(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(7, 1, 2)
		found := func(words string) {
			x.Helper()
			findings, err := x.Feed.Admin().Check(x.Ctx)
			if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, words) || findings[0].ByRepair() {
				t.Errorf("%+v, %v; want %q", findings, err, words)
			}
		}
		for _, column := range []string{"shard", "ulid"} {
			x.Exec("ALTER TABLE events RENAME COLUMN " + column + " TO other")
			found(`it has no column "` + column + `" any more; give the column its name back`)
			for _, do := range []func() error{
				func() error { _, err := x.Feed.Admin().Upgrade(x.Ctx); return err },
				func() error { _, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7)}); return err },
			} {
				if err := do(); !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "Next: give the column its name back") {
					t.Error(err)
				}
			}
			x.Exec("ALTER TABLE events RENAME COLUMN other TO " + column)
			x.WantSound(x.Feed)
		}
		if x.Family() == "postgres" {
			x.Exec("ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)")
			found(`position column "ulid" is bytea, but was uuid`)
			if _, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil {
				t.Error(err)
			}
			x.WantSound(x.Feed)
			x.WantIDs(x.Page(x.Feed, 7, "", 10), false, 1, 2)
		}
	})
}

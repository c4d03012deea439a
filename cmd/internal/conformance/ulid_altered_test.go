package conformance

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestULIDAltered (M63): a table whose columns have other names or types by now is told so by check, and what
// is refused of it says how to go on; as it was, or upgraded, it is in order.
func TestULIDAltered(t *testing.T) {
	eachULID(t, func(x *events) {
		x.write(7, 1, 2)
		found := func(words string) {
			x.Helper()
			findings, err := x.feed.Admin().Check(x.ctx)
			if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, words) || findings[0].ByRepair() {
				t.Errorf("%+v, %v; want %q", findings, err, words)
			}
		}
		for _, column := range []string{"shard", "ulid"} {
			x.exec("ALTER TABLE events RENAME COLUMN " + column + " TO other")
			found(`it has no column "` + column + `" any more; give the column its name back`)
			for _, do := range []func() error{
				func() error { _, err := x.feed.Admin().Upgrade(x.ctx); return err },
				func() error { _, err := x.feed.Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(7)}); return err },
			} {
				if err := do(); !isCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "Next: give the column its name back") {
					t.Error(err)
				}
			}
			x.exec("ALTER TABLE events RENAME COLUMN other TO " + column)
			x.wantSound(x.feed)
		}
		if x.family() == "postgres" {
			x.exec("ALTER TABLE events ALTER COLUMN ulid TYPE bytea USING uuid_send(ulid)")
			found(`position column "ulid" is bytea, and was uuid`)
			if _, err := x.feed.Admin().Upgrade(x.ctx); err != nil {
				t.Error(err)
			}
			x.wantSound(x.feed)
			x.wantIDs(x.page(x.feed, 7, "", 10), false, 1, 2)
		}
	})
}

package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestBatchStatementEqualsSingleStatements (M70): a batch has the same result whether one statement publishes it or
// several. The test records every kind of change twice for keys that are shown, hidden, deleted, hidden and deleted,
// new, or deleted before they were published.
func TestBatchStatementEqualsSingleStatements(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Migrate()
		x.Exec("CREATE TABLE things (id BIGINT NOT NULL PRIMARY KEY)")
		whole := x.Dialect
		for kind := dialect.Changed; kind <= dialect.Placed; kind++ {
			positions := map[string][]string{}
			for _, way := range []string{"whole", "pieces"} {
				name := fmt.Sprint(way, int(kind))
				record := func(kind dialect.ChangeKind, ids ...int) {
					for _, id := range ids {
						x.Exec(fmt.Sprintf("INSERT INTO rowfeed_changes_%s (id, kind) VALUES (%d, %d)", name, id, kind))
					}
				}
				x.Exec("DELETE FROM things", "INSERT INTO things VALUES (1), (2), (3), (4)")
				x.Add(rowfeed.FeedSpec{Name: name, Table: "things", Capture: feedtype.CaptureApp})
				if x.Dialect = whole; way == "pieces" {
					makePiecemeal(x)
				}
				rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
				if err != nil {
					x.Fatal(err)
				}
				f, err := rf.Feed(x.Ctx, name)
				if err != nil {
					x.Fatal(err)
				}
				x.Publish(f)
				record(dialect.Unpublished, 2, 4)
				x.Publish(f)
				x.Exec("DELETE FROM things WHERE id IN (3, 4)", "INSERT INTO things VALUES (5)")
				record(dialect.Changed, 3, 4)
				x.Publish(f)
				record(kind, 2, 1, 6, 2, 5, 3, 4, 3, 1, 4, 6, 5)
				x.Publish(f)
				positions[way] = x.List("SELECT id, deleted, hidden FROM rowfeed_positions_" + name +
					" ORDER BY feed_sync_id")
				if n := x.Scalar("SELECT count(*) FROM rowfeed_changes_" + name); n != 0 {
					x.Errorf("kind %d, %s: %d changes are left", kind, way, n)
				}
				x.WantSound(f)
			}
			if !slices.Equal(positions["whole"], positions["pieces"]) {
				x.Errorf("kind %d: in one statement\n%s\nin several\n%s", kind,
					strings.Join(positions["whole"], "\n"), strings.Join(positions["pieces"], "\n"))
			}
			want := map[dialect.ChangeKind]int{
				dialect.Changed: 2, dialect.Republished: 0, dialect.Unpublished: 5, dialect.Placed: 2,
			}
			hidden := 0
			for _, row := range positions["whole"] {
				if strings.HasSuffix(row, " 1") {
					hidden++
				}
			}
			if hidden != want[kind] {
				x.Errorf("kind %d: %d hidden keys, want %d", kind, hidden, want[kind])
			}
		}
	})
}

package relay

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestMirrorHasOneRowForEachCaseInsensitiveKey (V1): a mirror has one row for each row of the table, whether or not the
// mirror's own key is case-insensitive. If the source's key is, the row has the text that it has in the source.
func TestMirrorHasOneRowForEachCaseInsensitiveKey(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		for _, e := range []*suite.Env{x, to} {
			e.Exec(e.Statements("relay.make_collation")...)
		}
		const columns = " NOT NULL PRIMARY KEY, u VARCHAR(20) UNIQUE, v INTEGER)"
		x.Exec("CREATE TABLE m (k VARCHAR(20) " + x.Text("relay.case_insensitive") + columns)
		f := x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"})
		mirrors := map[string]string{
			"same":  to.Text("relay.case_insensitive"),
			"apart": to.Text("relay.case_sensitive"),
		}
		for table, collation := range mirrors {
			to.Exec("CREATE TABLE " + table + " (k VARCHAR(20) " + collation + columns)
		}
		for _, step := range []struct {
			sql  []string
			want map[string][]string
		}{
			{[]string{"INSERT INTO m VALUES ('fred', 'a', 1), ('ann', 'b', 2)"},
				map[string][]string{"same": {"fred a 1", "ann b 2"}, "apart": {"fred a 1", "ann b 2"}}},
			{[]string{"UPDATE m SET k = 'FRED' WHERE k = 'fred'"},
				map[string][]string{"same": {"FRED a 1", "ann b 2"}, "apart": {"fred a 1", "ann b 2"}}},
			{[]string{"UPDATE m SET u = 'c' WHERE k = 'fred'", "UPDATE m SET u = 'a' WHERE k = 'ann'",
				"UPDATE m SET k = 'Fred', v = 3 WHERE k = 'fred'"},
				map[string][]string{"same": {"ann a 2", "Fred c 3"}, "apart": {"ann a 2", "fred c 3"}}},
			{[]string{"DELETE FROM m WHERE k = 'fred'"},
				map[string][]string{"same": {"ann a 2"}, "apart": {"ann a 2"}}},
		} {
			x.Exec(step.sql...)
			x.Publish(f)
			for table := range mirrors {
				m := &mirrored{Env: x, to: to, feed: f, sink: mirrorSink(to, table)}
				r := m.relay()
				r.Name = table
				if err := r.RunOnce(x.Ctx); err != nil {
					x.Fatal(err)
				}
				got := to.List("SELECT k, u, v FROM " + table + " ORDER BY u")
				if !slices.Equal(got, step.want[table]) {
					x.Fatalf("after %v the mirror %s has %q, want %q", step.sql, table, got, step.want[table])
				}
			}
		}
	})
}

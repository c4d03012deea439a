package relay

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestMirrorOfTwoTexts (V1): a mirror has one row for each of the table's, whether or not its own key
// takes the two texts for one. Where it does, the row has the text that it has in the source.
func TestMirrorOfTwoTexts(t *testing.T) {
	eachMirror(t, func(x, to *suite.Env) {
		nocase := map[string]string{"sqlite": "COLLATE NOCASE", "postgres": "COLLATE nocase", "mysql": "COLLATE utf8mb4_general_ci"}
		exact := map[string]string{"sqlite": "COLLATE BINARY", "postgres": `COLLATE "C"`, "mysql": "COLLATE utf8mb4_bin"}
		for _, e := range []*suite.Env{x, to} {
			if e.Family() == "postgres" {
				e.Exec("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
			}
		}
		const columns = " NOT NULL PRIMARY KEY, u VARCHAR(20) UNIQUE, v INTEGER)"
		x.Exec("CREATE TABLE m (k VARCHAR(20) " + nocase[x.Family()] + columns)
		f := x.Add(rowfeed.FeedSpec{Name: "m", Table: "m"})
		mirrors := map[string]string{"same": nocase[to.Family()], "apart": exact[to.Family()]}
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
			{[]string{"UPDATE m SET u = 'c' WHERE k = 'fred'", "UPDATE m SET u = 'a' WHERE k = 'ann'", "UPDATE m SET k = 'Fred', v = 3 WHERE k = 'fred'"},
				map[string][]string{"same": {"ann a 2", "Fred c 3"}, "apart": {"ann a 2", "fred c 3"}}},
			{[]string{"DELETE FROM m WHERE k = 'fred'"}, map[string][]string{"same": {"ann a 2"}, "apart": {"ann a 2"}}},
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
				if got := to.List("SELECT k, u, v FROM " + table + " ORDER BY u"); !slices.Equal(got, step.want[table]) {
					x.Fatalf("after %v the mirror %s has %q, want %q", step.sql, table, got, step.want[table])
				}
			}
		}
	})
}

package capture

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// newRole makes a role without rights. It is dropped with all that it owns when the test ends.
func newRole(x *suite.Env, name string) string {
	x.Helper()
	role := name + "_" + x.DB.Name
	x.Exec("CREATE ROLE " + role)
	x.Cleanup(func() { x.Exec(x.Statements("capture.drop_role", role)...) })
	return role
}

// dropIndex returns the statement that drops an index of a table.
func dropIndex(x *suite.Env, index, table string) string {
	x.Helper()
	return x.Text("capture.drop_index", index, table)
}

// eachRows runs f with capture "column", with one data shard and with several.
func eachRows(t *testing.T, f func(x *suite.Env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, shards := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
				x := suite.NewEnv(t, e, nil)
				x.Capture, x.Shards = feedtype.CaptureColumn, shards
				x.Migrate()
				f(x)
			})
		}
	})
}

package capture

import (
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

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

package feeds

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
)

// TestUntestedDatabaseNeedsFlag: a feed of a database on which rowfeed is not tested is made with --experimental only.
// The flag is refused on all others, so that no script has it without need.
func TestUntestedDatabaseNeedsFlag(t *testing.T) {
	plain, experimental := &feedAddOptions{name: "kv"}, &feedAddOptions{name: "kv", experimental: true}
	for _, d := range []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New()} {
		if err := plain.tested(d); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		if err := experimental.tested(d); !errors.Is(err, rowfeed.InvalidRequest) ||
			!strings.Contains(err.Error(), "leave --experimental out") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if err := experimental.tested(sqlserver.New()); err != nil {
		t.Error(err)
	}
	if err := plain.tested(sqlserver.New()); !errors.Is(err, rowfeed.Refused) ||
		!strings.Contains(err.Error(), "--print") || !strings.Contains(err.Error(), "--experimental") {
		t.Error(err)
	}
}

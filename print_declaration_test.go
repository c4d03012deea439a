package rowfeed

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TestPrintedScriptHasGivenKeyType (M28): the script contains the type that --print was given for a key. Anything that
// is not a type is refused.
func TestPrintedScriptHasGivenKeyType(t *testing.T) {
	for _, d := range []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New()} {
		for _, good := range []string{"bigint", "BIGINT UNSIGNED", "numeric(10,2)", "time(6) with time zone",
			"character varying(20)", "text[]", "public.citext",
			"enum('a','it''s; --')", `my."odd type"`, "varchar(20) CHARACTER SET utf8mb4 COLLATE `utf8mb4_bin`",
			"größe"} {
			if _, err := PrintFeed(d, nil, FeedSpec{Name: "kv", Table: "kv", Key: []string{"id:" + good}}); err != nil {
				t.Errorf("%s: %q: %v", d.Name, good, err)
			}
		}
		for _, bad := range []string{"bigint; DROP TABLE kv", "bigint); DROP TABLE kv; --", "int, x int",
			"int -- ", "int /* x */", "int # x", "enum('a'", "enum('a\\')", "char(3",
			"int\nNULL", `"open`, "int = 3", "$$"} {
			_, err := PrintFeed(d, nil, FeedSpec{Name: "kv", Table: "kv", Key: []string{"id:" + bad}})
			if !errors.Is(err, feedtype.InvalidRequest) || !strings.Contains(err.Error(), "is not a column type") ||
				!strings.Contains(err.Error(), `key column "id"`) {
				t.Errorf("%s: %q: %v", d.Name, bad, err)
			}
		}
		_, err := PrintFeed(d, nil, FeedSpec{Name: "kv", Table: "kv", Key: []string{"id:"}})
		if typeless := d.Name == "sqlite"; typeless != (err == nil) {
			t.Errorf("%s: no type: %v", d.Name, err)
		}
	}
}

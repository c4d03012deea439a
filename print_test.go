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

// TestPrintNeedsFittingColumnTypes (M28): without a server, each column needs a type, and the type must fit the
// column's purpose.
func TestPrintNeedsFittingColumnTypes(t *testing.T) {
	blocking := FeedSpec{
		Name:           "ev",
		Table:          "ev",
		Mode:           feedtype.ModeBlocking,
		Key:            []string{"id:bigint", "shard:int"},
		PositionColumn: "ulid:",
		ShardColumn:    "shard",
	}
	outbox := FeedSpec{Name: "ev", Table: "ev", Mode: feedtype.ModeOutbox, Key: []string{"id:bigint"}}
	all := map[*dialect.Dialect]string{sqlite.New(): "BLOB", postgres.New(): "UUID", mysql.New(): "BINARY(16)"}
	for d, ulidType := range all {
		good := blocking
		good.PositionColumn += ulidType
		refused := func(spec FeedSpec, code feedtype.Code, words string, change func(s *FeedSpec)) {
			t.Helper()
			change(&spec)
			if _, err := PrintFeed(d, nil, spec); !errors.Is(err, code) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %s and %q", d.Name, err, code, words)
			}
		}
		for _, spec := range []FeedSpec{good, outbox} {
			if _, err := PrintFeed(d, nil, spec); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
		refused(good, feedtype.InvalidRequest, `"ulid" has no type`, func(s *FeedSpec) { s.PositionColumn = "ulid" })
		refused(
			good,
			feedtype.InvalidRequest,
			`"customer" has no type`,
			func(s *FeedSpec) { s.ShardColumn = "customer" },
		)
		refused(good, feedtype.InvalidRequest, "two types", func(s *FeedSpec) { s.ShardColumn = "shard:bigint" })
		refused(good, feedtype.Refused, "position column", func(s *FeedSpec) { s.PositionColumn = "ulid:text" })
		refused(
			good,
			feedtype.InvalidRequest,
			"is not a column type",
			func(s *FeedSpec) { s.PositionColumn += "; DROP TABLE ev" },
		)
		refused(
			good,
			feedtype.InvalidRequest,
			"is not a column type",
			func(s *FeedSpec) { s.ShardColumn = "customer:int; --" },
		)
		refused(good, feedtype.InvalidRequest, "--key id:bigint", func(s *FeedSpec) { s.Key = nil })
		refused(
			outbox,
			feedtype.InvalidRequest,
			`"customer" has no type`,
			func(s *FeedSpec) { s.ShardColumn = "customer" },
		)
		refused(outbox, feedtype.InvalidRequest, `"made" has no type`, func(s *FeedSpec) { s.TimeColumn = "made" })
		refused(
			outbox,
			feedtype.InvalidRequest,
			"is not a column type",
			func(s *FeedSpec) { s.TimeColumn = "made:timestamp; --" },
		)
		refused(outbox, feedtype.Refused, "shard column", func(s *FeedSpec) { s.ShardColumn = "customer:text" })
		if d.Name == "mysql" {
			refused(good, feedtype.InvalidRequest, "--schema", func(s *FeedSpec) { s.Table = "shop.ev" })
		}
	}
}

package ulid

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPagesNeedUniqueIndex (M43): the unique index of shard and ULID is replaced by one that is not unique, and
// dropped. Without a unique index two rows could have one position, and a page could skip one of them. Pages are
// refused, and read again with a unique index of any name.
func TestPagesNeedUniqueIndex(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 2)
		first := x.Page(x.Feed, 1, "", 1)
		drop := x.Text("ulid.drop_index")
		refused := func() {
			x.Helper()
			for range 2 {
				_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: first.Cursor, Shards: rowfeed.One(1)})
				if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "CREATE UNIQUE INDEX") {
					t.Errorf("error %v, want one with a statement that creates the index", err)
				}
			}
		}
		if !x.Has.IndexHints { // a page's statement then accepts any index of the name
			x.Exec(drop, "CREATE INDEX events_feed ON events (shard, ulid)")
			refused()
			x.Exec(drop, "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x.WantIDs(x.Page(x.Feed, 1, first.Cursor, 10), false, 2)
		}
		x.Exec(drop)
		refused()
		x.Exec("CREATE UNIQUE INDEX another ON events (shard, ulid)")
		x.WantIDs(x.Page(x.Feed, 1, first.Cursor, 10), false, 2)
		x.WantSound(x.Feed)
	})
}

// TestInvisibleIndexIsRefused (M43): a unique index may be invisible to statements. Feed add refuses such an index, and
// verify reports it for an existing feed. A feed whose index is visible again can be read.
func TestInvisibleIndexIsRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere there is no such index
	suite.Each(t, func(x *suite.Env) {
		x.MakeEvents()
		hide, show := x.Text("ulid.hide_index"), x.Text("ulid.show_index")
		x.Exec(hide)
		_, err := x.RF.AddFeed(x.Ctx, suite.EventsSpec(), nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), `"events_feed" on (shard, ulid) is invisible`) {
			t.Errorf("error %v, want one about the invisible index", err)
		}
		x.Exec(show)
		e := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		e.Write(7, 1, 2)
		x.Exec(hide)
		problems, err := e.Feed.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "is invisible") {
			t.Errorf("verify: %v, %v; want one problem about the invisible index", problems, err)
		}
		if page, err := e.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7)}); err == nil {
			t.Errorf("a page was read without the index: %+v", page)
		}
		x.Exec(show)
		e.WantIDs(e.Page(e.Feed, 7, "", 10), false, 1, 2)
	})
}

// TestSuggestedIndexStatementWorks (M43): a table without the index is refused with a statement that creates it. The
// statement runs as it is, whatever the table's name, and the table is then accepted.
func TestSuggestedIndexStatementWorks(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		for i, name := range []string{`it's "odd"`, strings.Repeat("l", 63), "é" + strings.Repeat("é", 30)} {
			table := x.Dialect.Quote(name)
			x.Exec(x.EventsTable(table))
			spec := suite.EventsSpec()
			spec.Name, spec.Table = fmt.Sprint("f", i), `"`+strings.ReplaceAll(name, `"`, `""`)+`"`
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			var refused *rowfeed.Error
			if !errors.As(err, &refused) || !strings.HasPrefix(refused.Next, "run ") {
				t.Fatal(err)
			}
			x.Exec(strings.TrimPrefix(refused.Next, "run "))
			x.WantSound(x.Add(spec))
		}
	})
}

// TestShardColumnMustBeInteger (M30): a shard column of a type other than integer is refused in both modes.
func TestShardColumnMustBeInteger(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		for _, mode := range []string{rowfeed.ModeBlocking, rowfeed.ModeOutbox} {
			for i, kind := range strings.Fields(x.Text("ulid.no_shard_types")) {
				name := fmt.Sprint(mode, i)
				x.Exec(strings.Replace(x.EventsTable(name), "shard INT", "shard "+kind, 1),
					"CREATE UNIQUE INDEX "+name+"_feed ON "+name+" (shard, ulid)")
				spec := rowfeed.FeedSpec{Name: name, Table: name, Mode: mode, ShardColumn: "shard"}
				if mode == rowfeed.ModeBlocking {
					spec.PositionColumn = "ulid"
				}
				_, err := x.RF.AddFeed(x.Ctx, spec, nil)
				if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "make it an integer") {
					t.Errorf("%s: error %v, want one about the type", kind, err)
				}
			}
		}
	})
}

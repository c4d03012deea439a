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

// TestPagesNeedUniqueIndex (M43): without the unique index of shard and ULID two rows may share a place, and
// the edge of a page would pass one of them over: pages are refused, in a process that has read
// before, too, until there is one again, whatever its name (M43).
func TestPagesNeedUniqueIndex(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 2)
		first := x.Page(x.Feed, 1, "", 1)
		drop := "DROP INDEX events_feed"
		if x.Family() == "mysql" {
			drop += " ON events"
		}
		refused := func() {
			x.Helper()
			for range 2 {
				_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: first.Cursor, Shards: rowfeed.One(1)})
				if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "CREATE UNIQUE INDEX") {
					t.Error(err)
				}
			}
		}
		if x.Family() != "mysql" { // whose statement takes any index of the name
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

// TestInvisibleIndexIsRefused (M43): a unique index that statements may not use (MySQL's INVISIBLE, MariaDB's IGNORED)
// is refused by feed add, and reported by check for a feed that exists. A feed whose index is visible again works.
func TestInvisibleIndexIsRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere there is no such index
	suite.Each(t, func(x *suite.Env) {
		hide, show := "INVISIBLE", "VISIBLE"
		if strings.HasPrefix(x.Engine.Name, "mariadb") {
			hide, show = "IGNORED", "NOT IGNORED"
		}
		alter := "ALTER TABLE events ALTER INDEX events_feed "
		x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)", alter+hide)
		_, err := x.RF.AddFeed(x.Ctx, suite.EventsSpec(), nil)
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), `"events_feed" on (shard, ulid) is invisible`) {
			t.Error(err)
		}
		x.Exec(alter + show)
		e := &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
		e.Write(7, 1, 2)
		x.Exec(alter + hide)
		if problems, err := e.Feed.Admin().Verify(x.Ctx); err != nil || len(problems) != 1 || !strings.Contains(problems[0], "is invisible") {
			t.Errorf("%v, %v", problems, err)
		}
		if page, err := e.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7)}); err == nil {
			t.Errorf("%+v", page)
		}
		x.Exec(alter + show)
		e.WantIDs(e.Page(e.Feed, 7, "", 10), false, 1, 2)
	})
}

// TestSuggestedIndexStatementWorks (M43): the statement that a table without the index is refused with makes one as it
// stands, whatever the names, and be they as long as the database has them (M43).
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

// TestShardColumnMustBeInteger (M30): a column that does not keep integers as such is no column of shards (M30).
func TestShardColumnMustBeInteger(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		types := x.By(map[string]string{"sqlite": "TEXT REAL VARCHAR(9) BLOB", "postgres": "text numeric real boolean", "mysql": "VARCHAR(9) DECIMAL(9) DOUBLE BINARY(8)"})
		for _, mode := range []string{rowfeed.ModeBlocking, rowfeed.ModeOutbox} {
			for i, kind := range strings.Fields(types) {
				name := fmt.Sprint(mode, i)
				x.Exec("CREATE TABLE "+name+" (id BIGINT NOT NULL PRIMARY KEY, shard "+kind+" NOT NULL, ulid "+x.ULIDType()+" NOT NULL)", "CREATE UNIQUE INDEX "+name+"_feed ON "+name+" (shard, ulid)")
				spec := rowfeed.FeedSpec{Name: name, Table: name, Mode: mode, ShardColumn: "shard"}
				if mode == rowfeed.ModeBlocking {
					spec.PositionColumn = "ulid"
				}
				_, err := x.RF.AddFeed(x.Ctx, spec, nil)
				if x.WantCode(err, rowfeed.Refused); err == nil || !strings.Contains(err.Error(), "make it an integer") {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	})
}

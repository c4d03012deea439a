package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// wideTable makes a table of so many columns: keys, then those of ULIDs, then others.
func wideTable(x *suite.Env, keys, columns int) {
	x.Helper()
	var decls, key []string
	for i := range keys {
		key = append(key, fmt.Sprintf("k%d", i))
		decls = append(decls, key[i]+" SMALLINT NOT NULL")
	}
	decls = append(decls, "part INT NOT NULL DEFAULT 0", "ulid "+x.ULIDType())
	for i := len(decls); i < columns; i++ {
		decls = append(decls, fmt.Sprintf("c%d "+x.By(map[string]string{"sqlite": "SMALLINT", "postgres": "SMALLINT",
			"mysql": "TINYINT"}), i))
	}
	x.Exec("CREATE TABLE wide (" + strings.Join(decls, ", ") + ", PRIMARY KEY (" + strings.Join(key, ", ") + "))")
}

// wideRow inserts a row with a value in each column but the first of the others.
func wideRow(x *suite.Env, keys, columns, id int) {
	x.Helper()
	var names, values []string
	for i := range keys {
		names, values = append(names, fmt.Sprintf("k%d", i)), append(values, fmt.Sprint(id))
	}
	for i := keys + 3; i < columns; i++ {
		names, values = append(names, fmt.Sprintf("c%d", i)), append(values, "1")
	}
	x.Exec("INSERT INTO wide (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")")
}

// wideNames are the first columns of such a table.
func wideNames(keys, columns int) (names []string) {
	for i := range columns {
		switch {
		case i < keys:
			names = append(names, fmt.Sprintf("k%d", i))
		case i == keys:
			names = append(names, "part")
		case i == keys+1:
			names = append(names, "ulid")
		default:
			names = append(names, fmt.Sprintf("c%d", i))
		}
	}
	return names
}

// widest are a case of the widest tables: the highest number of columns with which a feed works, and whether it is
// the database's own.
type widest struct {
	name          string
	spec          rowfeed.FeedSpec
	keys, columns int
}

func widestTables(x *suite.Env) []widest {
	sharded := rowfeed.FeedSpec{DataShards: 4}
	column := rowfeed.FeedSpec{Capture: feedtype.CaptureColumn}
	outbox := rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "part"}
	switch x.Engine.Name {
	case "sqlite": // 2,000 columns of a statement, 9 or 12 of them rowfeed's
		named := column
		named.Columns = wideNames(1, 1990)
		return []widest{{"plain", rowfeed.FeedSpec{}, 1, 1990}, {"wide key", rowfeed.FeedSpec{}, 32, 1959}, {"sharded",
			sharded, 1, 1990}, {"column", column, 1, 1990},
			{"column, some delivered", named, 1, 1998}, {"outbox", outbox, 1, 1987}}
	case "mysql", "mariadb":
		keys := map[string]int{"mysql": 16, "mariadb": 32}[x.Engine.Name]
		return []widest{{"plain", rowfeed.FeedSpec{}, keys, 1017}, {"sharded", sharded, keys, 1017}, {"column", column,
			keys, 1015}, {"outbox", outbox, keys, 1017}}
	}
	return []widest{{"plain", rowfeed.FeedSpec{}, 32, 1600}, {"sharded", sharded, 32, 1600}, {"column", column, 32,
		1598}, {"outbox", outbox, 32, 1600}}
}

// TestWidestTables (V11): tables of as many columns as the database, or a page, takes are fed; wider ones are
// refused before anything is made, with the way out.
func TestWidestTables(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		for _, c := range widestTables(x) {
			x.Run(c.name, func(t *testing.T) {
				x := *x
				x.T = t
				c.spec.Name, c.spec.Table = "wide", "wide"
				wideTable(&x, c.keys, c.columns)
				wideRow(&x, c.keys, c.columns, 1)
				f := x.Add(c.spec)
				wideRow(&x, c.keys, c.columns, 2)
				x.Publish(f)
				var page rowfeed.Page
				for _, limit := range []int{100, 1} {
					got, err := f.Fetch(x.Ctx, rowfeed.Request{Limit: limit})
					if err != nil || len(got.Entries) != min(limit, 2) {
						x.Fatalf("%d entries of %d, %v", len(got.Entries), limit, err)
					}
					page = got
				}
				delivered := c.columns
				if c.spec.Columns != nil {
					delivered = len(c.spec.Columns)
				}
				if last, _ := page.Entries[0].Row.Get(fmt.Sprintf("c%d", delivered-1)); len(page.Columns) != delivered ||
					last != int64(1) {
					x.Errorf("%d columns, the last is %v", len(page.Columns), last)
				}
				if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
					x.Errorf("problems %q, %v", problems, err)
				}
				x.WantSound(f)
				wantTooWide(&x, f, c)
			})
		}
	})
}

// wantTooWide adds columns until there is one too many: to the table of a feed, and before there is one.
func wantTooWide(x *suite.Env, f *rowfeed.Feed, c widest) {
	x.Helper()
	drop := func() {
		x.Helper()
		if err := x.RF.DropFeed(x.Ctx, "wide"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DROP TABLE wide")
		delete(x.Columns, "wide")
	}
	_, declared := x.Dialect.MaxColumns()
	if x.Family() == "sqlite" && c.spec.Columns == nil {
		x.Exec("ALTER TABLE wide ADD COLUMN more SMALLINT")
		x.WantUnfit(f, "columns are to be delivered, and a page has room for", "with --columns")
		if _, err := f.Fetch(x.Ctx, rowfeed.Request{}); !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(),
			"with --columns") {
			x.Errorf("fetch: %v", err)
		}
		wideRow(x, c.keys, c.columns, 3)
		x.Publish(f) // what is not shown is not lost
		x.Exec("ALTER TABLE wide DROP COLUMN more")
		if page, err := f.Fetch(x.Ctx, rowfeed.Request{}); err != nil || len(page.Entries) != 3 {
			x.Errorf("%d entries, %v", len(page.Entries), err)
		}
	}
	drop()
	if c.columns == declared {
		return // no table is wider
	}
	wideTable(x, c.keys, c.columns+1)
	before := x.DB.Dump(x.T)
	_, err := x.RF.AddFeed(x.Ctx, c.spec, nil)
	says := "with --columns"
	if c.columns+3 > declared {
		says = "use another --capture"
	}
	if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), says) {
		x.Errorf("%d columns: %v", c.columns+1, err)
	}
	if x.DB.Dump(x.T) != before {
		x.Error("what was refused has left something")
	}
	if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state <> 'dropped'"); n != 0 {
		x.Errorf("%d feeds", n)
	}
	x.Exec("DROP TABLE wide")
}

// TestWidestULIDs (V11) is that of tables whose rows hold their ULIDs.
func TestWidestULIDs(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		keys, columns := 32, 1600
		switch x.Engine.Name {
		case "sqlite":
			keys, columns = 1, 1987
		case "mysql":
			keys, columns = 16, 1017
		case "mariadb":
			columns = 1017
		}
		spec := rowfeed.FeedSpec{Name: "wide", Table: "wide", Mode: rowfeed.ModeBlocking, ShardColumn: "part",
			PositionColumn: "ulid"}
		make := func(columns int) {
			names := wideNames(keys, columns)
			decls := slices.Clone(names)
			for i := range decls {
				switch {
				case i < keys:
					decls[i] += " SMALLINT NOT NULL"
				case i == keys:
					decls[i] += " INT NOT NULL"
				case i == keys+1:
					decls[i] += " " + x.ULIDType() + " NOT NULL"
				default:
					decls[i] += x.By(map[string]string{"sqlite": " SMALLINT", "postgres": " SMALLINT", "mysql": " TINYINT"})
				}
			}
			x.Exec("CREATE TABLE wide ("+strings.Join(decls, ", ")+", PRIMARY KEY ("+strings.Join(names[:keys], ", ")+"))",
				"CREATE UNIQUE INDEX wide_feed ON wide (part, ulid)")
		}
		make(columns)
		f := x.Add(spec)
		tx := x.Begin(0)
		u, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		if err != nil {
			x.Fatal(err)
		}
		id, err := u.At(0, 0)
		if err != nil {
			x.Fatal(err)
		}
		values := strings.Repeat("1, ", keys)
		if _, err := tx.ExecContext(x.Ctx, "INSERT INTO wide ("+strings.Join(wideNames(keys, keys+2), ", ")+
			") VALUES ("+values+"0, "+x.Dialect.Placeholder(1)+")", id); err != nil {
			x.Fatal(err)
		}
		x.Commit(tx)
		if page := x.Fetch(f, "", 10); len(page.Entries) != 1 || len(page.Columns) != columns {
			x.Errorf("%d entries with %d columns", len(page.Entries), len(page.Columns))
		}
		x.WantSound(f)
		if x.Family() != "sqlite" {
			return // no table is wider
		}
		x.Exec("ALTER TABLE wide ADD COLUMN more SMALLINT")
		x.WantUnfit(f, "columns are to be delivered, and a page has room for", "with --columns")
		if err := x.RF.DropFeed(x.Ctx, "wide"); err != nil {
			x.Fatal(err)
		}
		for _, columns := range [][]string{nil, append(wideNames(keys, columns), "more")} {
			spec.Columns = columns
			_, err = x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
		}
		spec.Columns = wideNames(keys, columns)
		x.Fetch(x.Add(spec), "", 10)
	})
}

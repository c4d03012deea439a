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

// wideTable makes a table of so many columns: the keys, a shard and a ULID, then others.
func wideTable(x *suite.Env, keys, columns int) {
	x.Helper()
	var decls, key []string
	for i := range keys {
		key = append(key, fmt.Sprintf("k%d", i))
		decls = append(decls, key[i]+" SMALLINT NOT NULL")
	}
	decls = append(decls, "part INT NOT NULL DEFAULT 0", "ulid "+x.ULIDType())
	for i := len(decls); i < columns; i++ {
		decls = append(decls, fmt.Sprintf("c%d %s", i, x.Text("values.narrow_type")))
	}
	x.Exec("CREATE TABLE wide (" + strings.Join(decls, ", ") + ", PRIMARY KEY (" + strings.Join(key, ", ") + "))")
}

// wideRow inserts a row with a value in each column but the shard, the ULID and the first of the others.
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

// wideNames returns the first columns of such a table.
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

// widest is the highest number of columns with which a kind of feed works.
type widest struct {
	name          string
	spec          rowfeed.FeedSpec
	keys, columns int
}

// widestTables returns the cases of the fixture. A line has the kind of feed, the number of key columns, and the number
// of columns.
func widestTables(x *suite.Env) (all []widest) {
	x.Helper()
	specs := map[string]rowfeed.FeedSpec{
		"plain":                  {},
		"wide key":               {},
		"sharded":                {DataShards: 4},
		"column":                 {Capture: feedtype.CaptureColumn},
		"column, some delivered": {Capture: feedtype.CaptureColumn, Columns: wideNames(1, 1988)},
		"outbox":                 {Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "part"},
	}
	for _, line := range strings.Split(x.Text("values.widest_tables"), "\n") {
		parts := strings.Split(line, " | ")
		spec, ok := specs[parts[0]]
		if !ok {
			x.Fatalf("there is no kind of feed %q", parts[0])
		}
		c := widest{name: parts[0], spec: spec}
		fmt.Sscan(parts[1]+" "+parts[2], &c.keys, &c.columns)
		all = append(all, c)
	}
	return all
}

// TestWidestTablesAreFed (V11): tables with as many columns as the database allows, or a page has room for, are fed.
// Wider tables are refused with a next step, and nothing is left behind.
func TestWidestTablesAreFed(t *testing.T) {
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
						x.Fatalf("a page of at most %d entries has %d, %v", limit, len(got.Entries), err)
					}
					page = got
				}
				delivered := c.columns
				if c.spec.Columns != nil {
					delivered = len(c.spec.Columns)
				}
				last, _ := page.Entries[0].Row.Get(fmt.Sprintf("c%d", delivered-1))
				if len(page.Columns) != delivered || last != int64(1) {
					x.Errorf("the page has %d columns, the last with %v", len(page.Columns), last)
				}
				if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
					x.Errorf("verify found %q, %v", problems, err)
				}
				x.WantSound(f)
				wantTooWide(&x, f, c)
			})
		}
	})
}

// wantTooWide adds a column too many, to the table of the feed and to a table without a feed.
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
	declared := x.Dialect.MaxDeclared
	if x.Has.NarrowPages && c.spec.Columns == nil {
		x.Exec("ALTER TABLE wide ADD COLUMN more SMALLINT")
		x.WantUnfit(f, "columns are to be delivered, and a page has room for", "with --columns")
		_, err := f.Fetch(x.Ctx, rowfeed.Request{})
		if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "with --columns") {
			x.Errorf("fetch failed with %v", err)
		}
		wideRow(x, c.keys, c.columns, 3)
		x.Publish(f) // changes are published although no page can show them
		x.Exec("ALTER TABLE wide DROP COLUMN more")
		if page, err := f.Fetch(x.Ctx, rowfeed.Request{}); err != nil || len(page.Entries) != 3 {
			x.Errorf("the page has %d entries, %v; want 3", len(page.Entries), err)
		}
	}
	drop()
	if c.columns == declared {
		return // no table can have more columns
	}
	wideTable(x, c.keys, c.columns+1)
	before := x.DB.Dump(x.T)
	_, err := x.RF.AddFeed(x.Ctx, c.spec, nil)
	says := "with --columns"
	if c.columns+3 > declared {
		says = "use another --capture"
	}
	if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), says) {
		x.Errorf("a feed of %d columns was refused with %v", c.columns+1, err)
	}
	if x.DB.Dump(x.T) != before {
		x.Error("the refused call has changed the schema")
	}
	if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state <> 'dropped'"); n != 0 {
		x.Errorf("the refused call has left %d feeds", n)
	}
	x.Exec("DROP TABLE wide")
}

// TestWidestULIDTablesAreFed (V11): tables in mode blocking with as many columns as the database allows, or a page has
// room for, are fed. Wider tables are refused.
func TestWidestULIDTablesAreFed(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var keys, columns int
		fmt.Sscan(x.Text("values.widest_table_of_ulids"), &keys, &columns)
		spec := rowfeed.FeedSpec{
			Name: "wide", Table: "wide", Mode: rowfeed.ModeBlocking, ShardColumn: "part", PositionColumn: "ulid",
		}
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
					decls[i] += " " + x.Text("values.narrow_type")
				}
			}
			x.Exec("CREATE TABLE wide ("+strings.Join(decls, ", ")+", PRIMARY KEY ("+strings.Join(names[:keys],
				", ")+"))",
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
			x.Errorf("the page has %d entries with %d columns", len(page.Entries), len(page.Columns))
		}
		x.WantSound(f)
		if !x.Has.NarrowPages {
			return // no table can have more columns
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

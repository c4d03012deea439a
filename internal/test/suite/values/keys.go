package values

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestKeysOfEveryTypeAreExact: keys of every type find their rows, entries show them as the rows have them, and
// republishing in batches passes over none.
func TestKeysOfEveryTypeAreExact(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Statements("values.types_of_keys")...)
		for n, key := range parseSamples(x.Text("values.keys")) {
			name, one, two := fmt.Sprintf("k%d", n), key.cells[0], key.cells[1]
			x.Exec(fmt.Sprintf("CREATE TABLE %s (k %s NOT NULL, v INTEGER, PRIMARY KEY (k))", name, key.decl),
				fmt.Sprintf("INSERT INTO %s VALUES (%s, 1), (%s, 2)", name, one.sql, two.sql))
			// A value of an inexact type can have two texts.
			if x.Capture == feedtype.CaptureColumn && key.kind == "inexact" {
				_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name, Capture: x.Capture}, nil)
				x.WantCode(err, rowfeed.Refused)
				continue
			}
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: name})
			upsert := func(key string, v int) string { return fmt.Sprintf(`upsert {"k":%s,"v":%d}`, key, v) }
			got, cursor := x.Drain(f, "")
			if want := []string{upsert(one.json, 1), upsert(two.json, 2)}; !slices.Equal(got, want) {
				x.Errorf("of keys of type %s the entries are %q, want %q", key.decl, got, want)
				continue
			}
			x.Exec("UPDATE "+name+" SET v = 3 WHERE v = 1", "DELETE FROM "+name+" WHERE v = 2")
			got, cursor = x.Drain(f, cursor)
			want := x.Order([]string{upsert(one.json, 3), fmt.Sprintf(`delete {"k":%s}`, two.json)})
			if !slices.Equal(got, want) {
				x.Errorf("of changed keys of type %s the entries are %q, want %q", key.decl, got, want)
			}
			// Batches of one row resume after the key of the batch before.
			x.Exec(fmt.Sprintf("INSERT INTO %s VALUES (%s, 2)", name, two.sql))
			x.Publish(f)
			rows, err := f.Admin().RepublishWhere(x.Ctx, "", 1, nil)
			if err != nil || rows != 2 {
				x.Errorf("of 2 rows with a key of type %s, %d were republished, %v", key.decl, rows, err)
				continue
			}
			x.Publish(f)
			page := x.Fetch(f, cursor, 0)
			for _, e := range page.Entries {
				wantRoundTrip(x, e, &rowfeed.Info{Key: []rowfeed.Column{e.Key.Column(0)}, Columns: page.Columns})
			}
			x.WantSound(f)
		}
	})
}

// TestArrayKeysAreRefused: a key that is an array is refused, since its JSON does not identify the row. Nothing is left
// behind.
func TestArrayKeysAreRefused(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		tables := x.Statements("values.tables_with_array_keys")
		if len(tables) == 0 {
			return
		}
		x.Exec(tables...)
		for _, table := range []string{"a", "b"} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: table, Table: table}, nil)
			if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "array") {
				x.Errorf("the feed of table %s was refused with %v", table, err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("refused calls have left %d feeds", n)
		}
	})
}

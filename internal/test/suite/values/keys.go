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

// TestKeysOfEveryType: rows are found by keys of every type that can be one, their
// keys are shown as the rows have them, and back-fill passes over none of them.
func TestKeysOfEveryType(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		var keys map[string][4]string // by the key's type: two SQL values, ascending, and their JSON
		switch x.Family() {
		case "postgres":
			x.Exec("CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE DOMAIN five AS char(5)")
			keys = map[string][4]string{
				"char(5)":          {`'a'`, `'b'`, `"a    "`, `"b    "`},
				"five":             {`'a'`, `'b'`, `"a    "`, `"b    "`},
				"uuid":             {`'00000000-0000-0000-0000-000000000001'`, `'ffffffff-0000-0000-0000-000000000001'`, `"00000000-0000-0000-0000-000000000001"`, `"ffffffff-0000-0000-0000-000000000001"`},
				"timestamptz":      {`'2026-10-25 02:30+02'`, `'infinity'`, `"2026-10-25T00:30:00Z"`, `"infinity"`},
				"numeric":          {`1.50`, `2.0`, `"1.50"`, `"2.0"`},
				"bytea":            {`'\x'`, `'\xff'`, `""`, `"/w=="`},
				"mood":             {`'sad'`, `'happy'`, `"sad"`, `"happy"`},
				"inet":             {`'10.0.0.0/8'`, `'10.0.0.1'`, `"10.0.0.0/8"`, `"10.0.0.1"`},
				"double precision": {`'-Infinity'`, `'NaN'`, `"-Infinity"`, `"NaN"`},
				"real":             {`0.1`, `0.2`, `0.1`, `0.2`},
				"boolean":          {`false`, `true`, `false`, `true`},
				"interval":         {`'1 day'`, `'1 mon'`, `"P1D"`, `"P1M"`},
				"money":            {`1`, `2.5`, `"1.00"`, `"2.50"`},
				"date":             {`'0044-03-15 BC'`, `'infinity'`, `"0044-03-15 BC"`, `"infinity"`},
				"int4range":        {`'empty'`, `'[1,3)'`, `"empty"`, `"[1,3)"`},
				"time":             {`'00:00'`, `'24:00'`, `"00:00:00"`, `"24:00:00"`},
				"jsonb":            {`'null'`, `'{"a":1}'`, `{"$json":null}`, `{"a":1}`},
				`"char"`:           {`'a'`, `'b'`, `"a"`, `"b"`},
				"oid":              {`0`, `4294967295`, `0`, `4294967295`},
			}
		case "mysql":
			keys = map[string][4]string{
				"bigint unsigned":                 {`0`, `18446744073709551615`, `0`, `18446744073709551615`},
				"decimal(65,30)":                  {`0.5`, `1.5`, `"0.500000000000000000000000000000"`, `"1.500000000000000000000000000000"`},
				"varbinary(9)":                    {`x''`, `x'ff00'`, `""`, `"/wA="`},
				"varchar(9) COLLATE utf8mb4_bin":  {`'a '`, `'b '`, `"a "`, `"b "`},
				"varchar(9) CHARACTER SET latin1": {`'a'`, `'é'`, `"a"`, `"é"`},
				"date":                            {`'1000-01-01'`, `'9999-12-31'`, `"1000-01-01"`, `"9999-12-31"`},
				"datetime(6)":                     {`'2026-03-29 02:30:00.000001'`, `'2026-03-29 02:30:00.000002'`, `"2026-03-29T02:30:00.000001"`, `"2026-03-29T02:30:00.000002"`},
				"time(6)":                         {`'-838:59:59'`, `'838:59:59'`, `"-838:59:59.000000"`, `"838:59:59.000000"`},
				"year":                            {`1901`, `2155`, `1901`, `2155`},
				"enum('z','é','a')":               {`'é'`, `'a'`, `"é"`, `"a"`},
				"double":                          {`-0.5`, `1e300`, `-0.5`, `1e+300`},
				"bit(64)":                         {`0`, `18446744073709551615`, `0`, `18446744073709551615`},
			}
		default:
			keys = map[string][4]string{
				"BLOB":    {`x''`, `x'ff00'`, `""`, `"/wA="`},
				"":        {`-9e999`, `x'ff'`, `{"$float":"-Infinity"}`, `{"$binary":"/w=="}`},
				"TEXT":    {`'a'||char(0)`, `CAST(x'ff' AS TEXT)`, `"a\u0000"`, `{"$text64":"/w=="}`},
				"REAL":    {`0.5`, `9e999`, `0.5`, `{"$float":"Infinity"}`},
				"DATE":    {`5`, `'2026-01-02'`, `5`, `"2026-01-02"`},
				"NUMERIC": {`1.0`, `'x'`, `1`, `"x"`},
			}
		}
		// One value can have two texts, which capture column refuses.
		inexact := []string{"", "BLOB", "five", "numeric", "double precision", "real", "interval", "int4range", "jsonb", "double",
			"varchar(9) COLLATE utf8mb4_bin", "varchar(9) CHARACTER SET latin1"}
		n := 0
		for decl, parts := range keys {
			n++
			name := fmt.Sprintf("k%d", n)
			x.Exec(fmt.Sprintf("CREATE TABLE %s (k %s NOT NULL, v INTEGER, PRIMARY KEY (k))", name, decl),
				fmt.Sprintf("INSERT INTO %s VALUES (%s, 1), (%s, 2)", name, parts[0], parts[1]))
			if x.Capture == feedtype.CaptureColumn && slices.Contains(inexact, decl) {
				_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name, Capture: x.Capture}, nil)
				x.WantCode(err, rowfeed.Refused)
				continue
			}
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: name})
			row := func(op string, i, v int) string {
				if op == "delete" {
					return fmt.Sprintf(`delete {"k":%s}`, parts[2+i])
				}
				return fmt.Sprintf(`upsert {"k":%s,"v":%d}`, parts[2+i], v)
			}
			got, cursor := x.Drain(f, "")
			if want := []string{row("", 0, 1), row("", 1, 2)}; !slices.Equal(got, want) {
				x.Errorf("key %s: got %q, want %q", decl, got, want)
				continue
			}
			x.Exec(fmt.Sprintf("UPDATE %s SET v = 3 WHERE v = 1", name), fmt.Sprintf("DELETE FROM %s WHERE v = 2", name))
			got, cursor = x.Drain(f, cursor)
			if want := x.Order([]string{row("", 0, 3), row("delete", 1, 0)}); !slices.Equal(got, want) {
				x.Errorf("key %s, changed: got %q, want %q", decl, got, want)
			}
			// In batches of one, each goes on after the key of the one before.
			x.Exec(fmt.Sprintf("INSERT INTO %s VALUES (%s, 2)", name, parts[1]))
			x.Publish(f)
			rows, err := f.Admin().RepublishWhere(x.Ctx, "", 1, nil)
			if err != nil || rows != 2 {
				x.Errorf("key %s: republished %d rows of 2, %v", decl, rows, err)
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

// TestArrayKeyRefused: an array travels as JSON, from which the key could not be
// found again; it is refused before anything is made.
func TestArrayKeyRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e.Family != "postgres" {
			return
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		x.Exec("CREATE DOMAIN numbers AS int[]", "CREATE TABLE a (k int[] PRIMARY KEY)", "CREATE TABLE b (k numbers PRIMARY KEY)")
		for _, table := range []string{"a", "b"} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: table, Table: table}, nil)
			if !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "array") {
				x.Errorf("%s: %v", table, err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("%d feeds are left behind", n)
		}
	})
}

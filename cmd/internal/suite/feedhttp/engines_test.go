package feedhttp_test

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// typed has, for each family of databases, a table t with a column of every kind, and rows with values at their
// limits.
var typed = map[string]struct {
	dialect *dialect.Dialect
	sql     []string
}{
	"sqlite": {sqlite.New(), []string{
		`CREATE TABLE t (id INTEGER PRIMARY KEY, a, b BLOB)`,
		`INSERT INTO t VALUES (1, 9223372036854775807, x'00ff'), (2, -9e999, -9e999), (3, NULL, NULL), (4, '1.50', ` +
			`'text'), (5, 1.0, x'')`,
	}},
	"postgres": {postgres.New(), []string{
		`CREATE TABLE t (id bigint PRIMARY KEY, s smallint, r real, d double precision, o boolean, n numeric,
		   c varchar(9), b bytea,
		   j json, jb jsonb, dt date, tm time, ts timestamp, tz timestamptz, u uuid, a int[], i interval)`,
		`INSERT INTO t VALUES
		   (9223372036854775807, -32768, 'NaN', 'Infinity', true, 123456789012345678901234567890.0100, 'é"<',
		    '\x00ff', ' {"a": [1, 1.0]}', 'null', '2026-01-31', '23:59:59.999999', '2026-01-31 12:00:00.5',
		    '2026-01-31 12:00:00+05:30', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL}', '1 mon 2 days'),
		   (-9223372036854775808, 32767, '-Infinity', '-0', false, 'NaN', '', '', 'null', '{"$json": 1}',
		    'infinity', '00:00', '-infinity', '0001-01-01 00:00:00+00 BC', NULL, '{}', '0'),
		   (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
	}},
	"mysql": {mysql.New(), []string{
		`CREATE TABLE t (id bigint unsigned PRIMARY KEY, s tinyint, r float, d double, n decimal(40,4), c varchar(9),
		   b varbinary(9), bi bit(9), j json, dt date, tm time(6), ts datetime(6), tz timestamp(6) NULL,
		   y year, e enum('x','y')) CHARACTER SET utf8mb4`,
		`INSERT INTO t VALUES
		   (18446744073709551615, -128, 0.1, 1.7976931348623157e308, 123456789012345678901234567890.0100, 'é"<',
		    x'00ff', b'100000001', '{"a": [1, 1.0]}',
		    '2026-01-31', '-838:59:59.000000', '2026-01-31 12:00:00.5', '2026-01-31 12:00:00.5', 2026, 'x'),
		   (1, 127, -0e0, 5e-324, -0.5, '', '', b'0', 'null', '1000-01-01', '00:00:00', '1000-01-01 00:00:00',
		    '1970-01-02 00:00:00', 1901, 'y'),
		   (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
	}},
}

func TestHTTPDeliversEveryKindOfValue(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		family := typed[e.Family]
		pool := e.New(t).OpenTapped(t, testdb.Hooks{})
		db, err := rowfeed.Open(t.Context(), pool, family.dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := fixture{sql: pool, db: db, server: serve(t, feedhttp.NewHandler(feedhttp.Of(db), &noHeartbeat))}
		for _, s := range family.sql {
			x.exec(t, s)
		}
		f := x.addFeed(t, "t")
		x.exec(t, `DELETE FROM t WHERE id = 0`)
		x.publish(t, f)
		c := x.client("t")
		page := compare(t, f, c, rowfeed.Request{Limit: 1})
		for page.More {
			page = compare(t, f, c, rowfeed.Request{After: page.Cursor, Limit: 1})
		}
		compare(t, f, c, rowfeed.Request{})
		if page = compare(t, f, c, rowfeed.Request{After: "1"}); len(page.Entries) == 0 {
			t.Error("nothing was compared")
		}
		events := listen(t, x.server, "/_feeds/stream/t?after=1")
		events.want(t, retry)
		for i, e := range page.Entries {
			id, err := page.CursorAt("1", i)
			if err != nil {
				t.Fatal(err)
			}
			events.want(t, terms.Fix("id: "+string(id))+"|data: "+string(e.AppendJSON(nil)))
		}
	})
}

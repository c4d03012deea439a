package mysql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sample is a column type with values, and what a feed shows for them.
type sample struct {
	decl   string
	values string // the SQL values, each of one row, separated by "; "
	want   string // their JSON, separated in the same way
	only   testdb.Engine
}

var samples = []sample{
	{decl: "tinyint", values: "-128; 127; NULL", want: "-128; 127; null"},
	{decl: "tinyint(1)", values: "1; 0; 2", want: "1; 0; 2"},
	{decl: "tinyint unsigned zerofill", values: "7; 255; 0", want: "7; 255; 0"},
	{decl: "smallint", values: "-32768; 32767; 0", want: "-32768; 32767; 0"},
	{decl: "mediumint unsigned", values: "16777215; 0; NULL", want: "16777215; 0; null"},
	{decl: "int unsigned", values: "4294967295; 0; NULL", want: "4294967295; 0; null"},
	{decl: "bigint", values: "-9223372036854775808; 9223372036854775807; 9007199254740993",
		want: "-9223372036854775808; 9223372036854775807; 9007199254740993"},
	{decl: "bigint unsigned", values: "18446744073709551615; 9223372036854775808; 0",
		want: "18446744073709551615; 9223372036854775808; 0"},
	{decl: "bit(1)", values: "b'1'; b'0'; NULL", want: "1; 0; null"},
	{decl: "bit(64)", values: "18446744073709551615; 1; 0", want: "18446744073709551615; 1; 0"},
	{decl: "year", values: "2026; 0; 1901", want: "2026; 0; 1901"},
	{decl: "decimal(65,30)", values: "-12345678901234567890123456789012345.123456789012345678901234567890; 0; NULL",
		want: `"-12345678901234567890123456789012345.123456789012345678901234567890"; ` +
			`"0.000000000000000000000000000000"; null`},
	{decl: "decimal(10,2)", values: "1.5; -0.01; 12345678.9", want: `"1.50"; "-0.01"; "12345678.90"`},
	{decl: "float", values: "0.1; 3.4028234e38; -1.1754944e-38", want: "0.1; 3.4028235e+38; -1.1754944e-38"},
	{decl: "float(7,2)", values: "0.1; 16777.21; NULL", want: "0.1; 16777.21; null"},
	{decl: "double", values: "0.1; 1.7976931348623157e308; 5e-324", want: "0.1; 1.7976931348623157e+308; 5e-324"},
	{decl: "double", values: "0.30000000000000004; 123456789.12345679; 1e0",
		want: "0.30000000000000004; 1.2345678912345679e+08; 1.0"},
	{decl: "double(20,3)", values: "1.005; -2.5; 0", want: "1.005; -2.5; 0.0"},
	{decl: "date", values: "'2026-02-28'; '9999-12-31'; '0000-00-00'",
		want: `"2026-02-28"; "9999-12-31"; "0000-00-00"`},
	{decl: "date", values: "'2024-00-00'; '2024-02-00'; NULL", want: `"2024-00-00"; "2024-02-00"; null`},
	{decl: "time", values: "'23:59:59'; '-838:59:59'; '838:59:59'", want: `"23:59:59"; "-838:59:59"; "838:59:59"`},
	{decl: "time(6)", values: "'-00:00:00.000001'; '01:02:03.5'; NULL",
		want: `"-00:00:00.000001"; "01:02:03.500000"; null`},
	{decl: "datetime", values: "'2026-03-29 02:30:00'; '1000-01-01 00:00:00'; '0000-00-00 00:00:00'",
		want: `"2026-03-29T02:30:00"; "1000-01-01T00:00:00"; "0000-00-00T00:00:00"`},
	{decl: "datetime(6)", values: "'9999-12-31 23:59:59.999999'; '2024-00-00 01:02:03.000004'; NULL",
		want: `"9999-12-31T23:59:59.999999"; "2024-00-00T01:02:03.000004"; null`},
	{decl: "timestamp NULL", values: "'2026-10-25 00:30:00'; '1970-01-01 00:00:01'; '0000-00-00 00:00:00'",
		want: `"2026-10-25T00:30:00Z"; "1970-01-01T00:00:01Z"; "0000-00-00T00:00:00Z"`},
	{decl: "timestamp(6) NULL", values: "'2026-10-25 01:30:00.5'; '2038-01-19 03:14:07.999999'; NULL",
		want: `"2026-10-25T01:30:00.500000Z"; "2038-01-19T03:14:07.999999Z"; null`},
	{decl: "timestamp(3) NULL", values: "'2026-07-01 12:00:00.001'; 0; NULL",
		want: `"2026-07-01T12:00:00.001Z"; "0000-00-00T00:00:00Z"; null`},
	{decl: "char(10)", values: "'a  '; 'é'; ''", want: `"a"; "é"; ""`},
	{decl: "varchar(20)", values: "'a  '; '😀\"\\\\'; ''", want: `"a  "; "😀\"\\"; ""`},
	{decl: "varchar(20) CHARACTER SET latin1", values: "'é'; '€'; NULL", want: `"é"; "€"; null`},
	{decl: "varchar(20) CHARACTER SET utf16", values: "'é😀'; 'a'; NULL", want: `"é😀"; "a"; null`},
	{decl: "longtext CHARACTER SET sjis", values: "'日本'; 'a'; NULL", want: `"日本"; "a"; null`},
	{decl: "varchar(3)", values: "'😀😀😀'; 'é'; NULL", want: `"😀😀😀"; "é"; null`},
	{decl: "varchar(3) CHARACTER SET latin1", values: "'ééé'; 'é'; NULL", want: `"ééé"; "é"; null`},
	{decl: "tinytext CHARACTER SET latin1", values: "REPEAT('é', 255); 'é'; NULL",
		want: `"` + strings.Repeat("é", 255) + `"; "é"; null`},
	{decl: "tinytext CHARACTER SET ascii", values: "'x'; ''; NULL", want: `"x"; ""; null`},
	{decl: "enum('b','é','')", values: "'é'; 1; ''", want: `"é"; "b"; ""`},
	{decl: "enum('b','ééé') CHARACTER SET latin1", values: "'ééé'; 1; ''", want: `"ééé"; "b"; ""`},
	{decl: "set('x','y','ü')", values: "'ü,x'; ''; 7", want: `"x,ü"; ""; "x,y,ü"`},
	{decl: "binary(4)", values: "'ab'; X'00FF'; NULL", want: `"YWIAAA=="; "AP8AAA=="; null`},
	{decl: "varbinary(10)", values: "X'00FF'; ''; 'a  '", want: `"AP8="; ""; "YSAg"`},
	{decl: "longblob", values: "X'FFFE'; ''; NULL", want: `"//4="; ""; null`},
	{decl: "point", values: "ST_GeomFromText('POINT(1 2)'); NULL; NULL",
		want: `"AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA=="; null; null`},
	{decl: "json", values: `'{"b": 1.0, "a": [null, "é", 18446744073709551615]}'; 'null'; NULL`,
		want: `{"a":[null,"é",18446744073709551615],"b":1.0}; {"$json":null}; null`, only: testdb.MySQL},
	{decl: "json", values: `CAST(CAST('2026-01-02 03:04:05.6' AS DATETIME(6)) AS JSON); CAST(CAST(1.50 AS DECIMAL(5,` +
		`2)) AS JSON); '"x"'`,
		want: `"2026-01-02 03:04:05.600000"; 1.50; "x"`, only: testdb.MySQL},
	{decl: "json", values: `'{"b":  1.0}'; 'null'; NULL`, want: `"{\"b\":  1.0}"; "null"; null`, only: testdb.MariaDB},
	{decl: "uuid", values: "'00112233-4455-6677-8899-AABBCCDDEEFF'; NULL; NULL",
		want: `"00112233-4455-6677-8899-aabbccddeeff"; null; null`, only: testdb.MariaDB},
	{decl: "inet4", values: "'192.0.2.1'; NULL; NULL", want: `"192.0.2.1"; null; null`, only: testdb.MariaDB},
	{decl: "inet6", values: "'2001:DB8::1'; '::ffff:192.0.2.1'; NULL",
		want: `"2001:db8::1"; "::ffff:192.0.2.1"; null`, only: testdb.MariaDB},
	{decl: "vector(2)", values: "TO_VECTOR('[1,2]'); NULL; NULL", want: `"AACAPwAAAEA="; null; null`,
		only: testdb.MySQL},
}

// dsns are settings that change a driver's representation of values.
var dsns = map[string][]string{
	"prepared": nil,
	"text":     {"interpolateParams=true"},
	"times":    {"parseTime=true", "loc=Asia%2FKathmandu", "columnsWithAlias=true"},
	"latin1":   {"charset=latin1", "interpolateParams=true", "parseTime=true"},
	"utf8":     {"charset=utf8", "parseTime=true"},
	"utf8text": {"charset=utf8", "parseTime=true", "interpolateParams=true"},
	"zone": {"time_zone=%27%2B05%3A45%27",
		"sql_mode=%27ANSI_QUOTES%2CPIPES_AS_CONCAT%2CSTRICT_ALL_TABLES%2CNO_ZERO_DATE%2CNO_ZERO_IN_DATE%27"},
	"levels": {"transaction_isolation=%27READ-UNCOMMITTED%27"},
}

func dsnFor(e testdb.Engine, params []string) []string {
	var out []string
	for _, p := range params {
		if e == testdb.MariaDB {
			p = strings.Replace(p, "transaction_isolation", "tx_isolation", 1)
		}
		out = append(out, p)
	}
	return out
}

// M15, M20: a page shows every value without loss, with all settings of the driver.
func TestValuesOfEveryType(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		var columns []string
		rows := [3][]string{{"1"}, {"2"}, {"3"}}
		want := [3][]string{}
		for i, s := range samples {
			if s.only.Name != "" && s.only != h.Engine {
				continue
			}
			columns = append(columns, fmt.Sprintf("c%d %s", i, s.decl))
			values, shown := strings.Split(s.values, "; "), strings.Split(s.want, "; ")
			for r := range rows {
				rows[r] = append(rows[r], values[r])
				want[r] = append(want[r], fmt.Sprintf(`"c%d":%s`, i, shown[r]))
			}
		}
		admin, err := h.Admin().Conn(h.ctx())
		h.must(err)
		defer admin.Close()
		run := func(query string) {
			if _, err := admin.ExecContext(h.ctx(), query); err != nil {
				h.Fatalf("%v\n%s", err, query)
			}
		}
		run("SET SESSION sql_mode = '', time_zone = '+00:00'")
		run("CREATE TABLE every (id int PRIMARY KEY, " + strings.Join(columns, ", ") + ") ROW_FORMAT=DYNAMIC")
		for _, r := range rows {
			run("INSERT INTO every VALUES (" + strings.Join(r, ", ") + ")")
		}
		h.publish(h.add(h.open(), "every"))
		for name, params := range dsns {
			db, err := rowfeed.Open(h.ctx(), h.pool(dsnFor(h.Engine, params)...), mysql.New(), nil)
			h.must(err)
			f, err := db.Feed(h.ctx(), "every")
			h.must(err)
			page, err := f.Fetch(h.ctx(), rowfeed.Request{})
			h.must(err)
			for r, e := range page.Entries {
				for i := 1; i < e.Row.Len(); i++ {
					one := rowJSON(e.Row, i)
					if one != want[r][i-1] {
						t.Errorf("%s, row %d, %s: got %s, want %s", name, r+1, e.Row.Column(i).Type, one, want[r][i-1])
					}
				}
			}
		}
	})
}

func rowJSON(r rowfeed.Row, i int) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.AppendJSON(nil), &members); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%q:%s", r.Column(i).Name, members[r.Column(i).Name])
}

// A value that is larger than max_allowed_packet in UTF-8 is delivered, and not NULL.
func TestValuesAbovePacketSize(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		s := e.Dedicated(t, testdb.Setting("max_allowed_packet=1M"))
		h := &harness{T: t, Database: s.NewDatabase(t)}
		h.sql("CREATE TABLE big (id int PRIMARY KEY, a longtext CHARACTER SET latin1)")
		h.sql("INSERT INTO big VALUES (1, REPEAT(CONVERT('é' USING latin1), 900000))")
		f := h.add(h.open(), "big")
		h.publish(f)
		page, err := f.Fetch(context.Background(), rowfeed.Request{})
		h.must(err)
		if v, _ := page.Entries[0].Row.Get("a"); v != strings.Repeat("é", 900000) {
			t.Errorf("a is %.20v…", v)
		}
	})
}

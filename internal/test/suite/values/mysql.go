package values

import (
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// mysqlSamples are the types of MariaDB and MySQL. The session that inserts them has
// the zone UTC and an empty sql_mode, so that zero dates go in.
func mysqlSamples(e testdb.Engine) []sample {
	samples := []sample{
		column("tinyint", feedtype.Integer, "-128", "-128", "127", "127"),
		column("tinyint unsigned", feedtype.Integer, "0", "0", "255", "255"),
		column("tinyint(1)", feedtype.Integer, "TRUE", "1", "FALSE", "0", "2", "2"), // BOOL is this, and holds a 2
		column("smallint", feedtype.Integer, "-32768", "-32768", "32767", "32767"),
		column("smallint unsigned", feedtype.Integer, "65535", "65535"),
		column("mediumint", feedtype.Integer, "-8388608", "-8388608", "8388607", "8388607"),
		column("mediumint unsigned", feedtype.Integer, "16777215", "16777215"),
		column("int", feedtype.Integer, "-2147483648", "-2147483648", "2147483647", "2147483647"),
		column("int unsigned", feedtype.Integer, "4294967295", "4294967295"),
		column("int(8) unsigned zerofill", feedtype.Integer, "7", "7"),
		column("bigint", feedtype.Integer, "-9223372036854775808", "-9223372036854775808", "9223372036854775807", "9223372036854775807", "9007199254740993", "9007199254740993"),
		column("bigint unsigned", feedtype.Integer, "18446744073709551615", "18446744073709551615", "9223372036854775808", "9223372036854775808", "1", "1"),
		column("bit(1)", feedtype.Integer, "b'1'", "1", "b'0'", "0"),
		column("bit(64)", feedtype.Integer, "18446744073709551615", "18446744073709551615", "5", "5"),
		column("year", feedtype.Integer, "2155", "2155", "0", "0", "1901", "1901"),
		column("decimal(65,30)", feedtype.Decimal, "-12345678901234567890123456789012345.123456789012345678901234567890", `"-12345678901234567890123456789012345.123456789012345678901234567890"`,
			"0", `"0.000000000000000000000000000000"`),
		column("decimal(10,2) unsigned", feedtype.Decimal, "1.5", `"1.50"`, "99999999.99", `"99999999.99"`),
		column("float", feedtype.Float32, "0.1", "0.1", "3.4028234e38", "3.4028235e+38", "-1.1754944e-38", "-1.1754944e-38", "16777216", "1.6777216e+07"),
		column("double", feedtype.Float64, "0.1", "0.1", "0.30000000000000004", "0.30000000000000004", "1.7976931348623157e308", "1.7976931348623157e+308", "5e-324", "5e-324"),
		column("double(20,3)", feedtype.Float64, "1.5", "1.5", "12345678.125", "1.2345678125e+07"),
		column("date", feedtype.Date, "'2026-02-28'", `"2026-02-28"`, "'9999-12-31'", `"9999-12-31"`, "'0000-00-00'", `"0000-00-00"`, "'2026-02-00'", `"2026-02-00"`),
		column("time", feedtype.Time, "'23:59:59'", `"23:59:59"`, "'-838:59:59'", `"-838:59:59"`, "'838:59:59'", `"838:59:59"`, "'00:00:00'", `"00:00:00"`),
		column("time(6)", feedtype.Time, "'-00:00:00.000001'", `"-00:00:00.000001"`, "'25:00:00.5'", `"25:00:00.500000"`),
		column("datetime", feedtype.Timestamp, "'2026-03-29 02:30:00'", `"2026-03-29T02:30:00"`, "'0000-00-00 00:00:00'", `"0000-00-00T00:00:00"`, "'1000-01-01 00:00:00'", `"1000-01-01T00:00:00"`),
		column("datetime(6)", feedtype.Timestamp, "'9999-12-31 23:59:59.999999'", `"9999-12-31T23:59:59.999999"`, "'2026-00-00 01:02:03.000004'", `"2026-00-00T01:02:03.000004"`),
		// In a zone with summer time both of the first two are called 02:30.
		column("timestamp(6) NULL", feedtype.TimestampTZ, "'2026-10-25 00:30:00'", `"2026-10-25T00:30:00.000000Z"`, "'2026-10-25 01:30:00.5'", `"2026-10-25T01:30:00.500000Z"`,
			"'2038-01-19 03:14:07.999999'", `"2038-01-19T03:14:07.999999Z"`, "'1970-01-01 00:00:01'", `"1970-01-01T00:00:01.000000Z"`, "'0000-00-00 00:00:00'", `"0000-00-00T00:00:00Z"`),
		column("timestamp NULL", feedtype.TimestampTZ, "'2026-03-29 00:59:59'", `"2026-03-29T00:59:59Z"`, "'2026-03-29 01:00:00'", `"2026-03-29T01:00:00Z"`, "0", `"0000-00-00T00:00:00Z"`),
		column("char(10)", feedtype.Text, "'a'", `"a"`, "'é'", `"é"`, "''", `""`),
		column("char(4) CHARACTER SET latin1", feedtype.Text, "'éa'", `"éa"`),
		column("varchar(20)", feedtype.Text, "'a  '", `"a  "`, `'😀"\\\n\0'`, `"😀\"\\\n\u0000"`, "''", `""`),
		column("varchar(20) CHARACTER SET latin1", feedtype.Text, "'é€'", `"é€"`, "''", `""`),
		column("varchar(20) CHARACTER SET utf16", feedtype.Text, "'é😀'", `"é😀"`),
		column("varchar(20) CHARACTER SET ascii", feedtype.Text, "'x'", `"x"`),
		column("tinytext CHARACTER SET latin1", feedtype.Text, "REPEAT('é', 255)", `"`+strings.Repeat("é", 255)+`"`),
		column("text", feedtype.Text, "'é'", `"é"`, "''", `""`),
		column("mediumtext CHARACTER SET sjis", feedtype.Text, "'日本'", `"日本"`),
		column("longtext", feedtype.Text, "REPEAT('é', 40000)", `"`+strings.Repeat("é", 40000)+`"`),
		column("binary(4)", feedtype.Binary, "'ab'", `"YWIAAA=="`, "X'00FF'", `"AP8AAA=="`),
		column("varbinary(10)", feedtype.Binary, "X'00FF0000'", `"AP8AAA=="`, "''", `""`, "'a  '", `"YSAg"`),
		column("tinyblob", feedtype.Binary, "X'FF'", `"/w=="`),
		column("blob", feedtype.Binary, "X'FFFE'", `"//4="`, "''", `""`),
		column("longblob", feedtype.Binary, "X'FFFE'", `"//4="`),
		column("enum('b','é','','0')", feedtype.Text, "'é'", `"é"`, "1", `"b"`, "''", `""`, "'0'", `"0"`),
		column("enum('ééé') CHARACTER SET latin1", feedtype.Text, "'ééé'", `"ééé"`),
		column("set('x','y','ü')", feedtype.Text, "'ü,x'", `"x,ü"`, "''", `""`, "7", `"x,y,ü"`),
		column("point", feedtype.Binary, "ST_GeomFromText('POINT(1 2)')", `"AAAAAAEBAAAAAAAAAAAA8D8AAAAAAAAAQA=="`),
	}
	if e == testdb.MariaDB {
		return append(samples,
			column("json", feedtype.Text, `'{"b":  1.0}'`, `"{\"b\":  1.0}"`, "'null'", `"null"`), // a longtext that is checked
			column("uuid", feedtype.Text, "'00112233-4455-6677-8899-AABBCCDDEEFF'", `"00112233-4455-6677-8899-aabbccddeeff"`),
			column("inet6", feedtype.Text, "'2001:DB8::1'", `"2001:db8::1"`, "'::ffff:192.0.2.1'", `"::ffff:192.0.2.1"`),
			column("inet4", feedtype.Text, "'192.0.2.1'", `"192.0.2.1"`))
	}
	return append(samples,
		column("double", feedtype.Float64, "-0e0", "-0.0"), // MariaDB stores 0
		column("json", feedtype.JSON, `'{"b": 1.0, "a": [null, "é", 18446744073709551615]}'`, `{"a":[null,"é",18446744073709551615],"b":1.0}`,
			"'null'", `{"$json":null}`, `'{"$json": null}'`, `{"$json":{"$json":null}}`, `'"x"'`, `"x"`,
			"CAST(CAST(1.50 AS DECIMAL(5,2)) AS JSON)", "1.50"))
}

// addBerlin teaches a MariaDB or MySQL server a time zone with the real shifts of
// 2026, since the servers of tests come without any.
func addBerlin(x *suite.Env) {
	x.Helper()
	if x.Scalar("SELECT count(*) FROM mysql.time_zone_name WHERE Name = 'Test/Berlin'") > 0 {
		return
	}
	summer, winter := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC).Unix(), time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC).Unix()
	// The id is found in the table, which counts by itself.
	x.Exec("INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')")
	id := x.Scalar("SELECT max(Time_zone_id) FROM mysql.time_zone")
	x.Exec(
		fmt.Sprintf("INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Test/Berlin', %d)", id),
		fmt.Sprintf("INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) VALUES (%d, 0, 3600, 0, 'CET'), (%d, 1, 7200, 1, 'CEST')", id, id),
		fmt.Sprintf("INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (%d, 0, 0), (%d, %d, 1), (%d, %d, 0)", id, id, summer, id, winter))
}

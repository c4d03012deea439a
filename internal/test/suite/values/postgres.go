package values

import (
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// postgresSamples are PostgreSQL's types. What an extension brings is there when the
// server has the extension.
func postgresSamples(x *suite.Env) []sample {
	x.Exec(
		"CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy')",
		"CREATE TYPE pair AS (a int, b text)",
		"CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)",
		"CREATE DOMAIN evenmore AS positive",
		"CREATE DOMAIN five AS char(5)",
		"CREATE DOMAIN numbers AS int[]",
		"CREATE DOMAIN amount AS numeric(10,2)",
		"CREATE DOMAIN document AS jsonb",
		"CREATE DOMAIN moment AS timestamptz")
	nested := func(n int) string { return fmt.Sprintf("(repeat('[', %d) || repeat(']', %d))::json", n, n) }
	brackets := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	samples := []sample{
		column("smallint", feedtype.Integer, "-32768", "-32768", "32767", "32767"),
		column("integer", feedtype.Integer, "-2147483648", "-2147483648", "2147483647", "2147483647"),
		column("bigint", feedtype.Integer, "-9223372036854775808", "-9223372036854775808", "9223372036854775807", "9223372036854775807"),
		column("oid", feedtype.Integer, "4294967295", "4294967295", "0", "0"),
		column("numeric", feedtype.Decimal, "1.500", `"1.500"`, "'NaN'", `"NaN"`, "'Infinity'", `"Infinity"`, "'-Infinity'", `"-Infinity"`,
			"123456789012345678901234567890.123456789012345678901234567890", `"123456789012345678901234567890.123456789012345678901234567890"`,
			"1e-20", `"0.00000000000000000001"`, "0", `"0"`),
		column("numeric(10,4)", feedtype.Decimal, "1.5", `"1.5000"`, "-0.00004", `"0.0000"`),
		column("amount", feedtype.Decimal, "1.5", `"1.50"`),
		column("money", feedtype.Decimal, "1234567.5", `"1234567.50"`, "-0.01", `"-0.01"`),
		column("real", feedtype.Float32, "0.1", "0.1", "'NaN'", `"NaN"`, "'Infinity'", `"Infinity"`, "'-Infinity'", `"-Infinity"`,
			"3.4028235e38", "3.4028235e+38", "1e-45", "1e-45", "'-0'", "-0.0", "16777216", "1.6777216e+07"),
		column("double precision", feedtype.Float64, "0.1", "0.1", "'NaN'", `"NaN"`, "'Infinity'", `"Infinity"`, "'-Infinity'", `"-Infinity"`,
			"0.30000000000000004", "0.30000000000000004", "5e-324", "5e-324", "1.7976931348623157e308", "1.7976931348623157e+308", "'-0'", "-0.0"),
		column("boolean", feedtype.Boolean, "true", "true", "false", "false"),
		column("char(5)", feedtype.Text, "'ab'", `"ab   "`, "''", `"     "`, "'é'", `"é    "`),
		column("five", feedtype.Text, "'ab'", `"ab   "`, "''", `"     "`),
		column("bpchar", feedtype.Text, "'ab  '", `"ab  "`, "''", `""`),
		column("varchar(10)", feedtype.Text, "'a  '", `"a  "`, "''", `""`),
		column("text", feedtype.Text, `E'a"b\\c\n\t\x01\u20ac😀'`, `"a\"b\\c\n\t\u0001€😀"`, "''", `""`, "'null'", `"null"`),
		column(`"char"`, feedtype.Text, "'x'", `"x"`),
		column("name", feedtype.Text, "'a b'", `"a b"`),
		column("bytea", feedtype.Binary, `'\x00ff5c27'`, `"AP9cJw=="`, `''`, `""`),
		column("date", feedtype.Date, "'2026-02-28'", `"2026-02-28"`, "'infinity'", `"infinity"`, "'-infinity'", `"-infinity"`,
			"'0044-03-15 BC'", `"0044-03-15 BC"`, "'5874897-12-31'", `"5874897-12-31"`),
		column("time", feedtype.Time, "'12:34:56.789012'", `"12:34:56.789012"`, "'24:00'", `"24:00:00"`, "'00:00:00'", `"00:00:00"`),
		column("time(3)", feedtype.Time, "'12:34:56.7'", `"12:34:56.7"`),
		column("timetz", feedtype.Time, "'12:34:56.5+05:30'", `"12:34:56.5+05:30"`, "'00:00-12'", `"00:00:00-12"`),
		column("timestamp", feedtype.Timestamp, "'2026-03-29 02:30:00.000001'", `"2026-03-29T02:30:00.000001"`, "'infinity'", `"infinity"`,
			"'-infinity'", `"-infinity"`, "'0044-03-15 12:00 BC'", `"0044-03-15 12:00:00 BC"`, "'294276-12-31 23:59:59.999999'", `"294276-12-31T23:59:59.999999"`),
		column("timestamp(0)", feedtype.Timestamp, "'2026-03-29 02:30:00'", `"2026-03-29T02:30:00"`),
		column("timestamptz", feedtype.TimestampTZ, "'2026-10-25 02:30:00.000001+02'", `"2026-10-25T00:30:00.000001Z"`, "'2026-10-25 02:30:00+01'", `"2026-10-25T01:30:00Z"`,
			"'infinity'", `"infinity"`, "'-infinity'", `"-infinity"`, "'0044-03-15 12:00:00+00 BC'", `"0044-03-15 12:00:00+00 BC"`),
		column("moment", feedtype.TimestampTZ, "'2026-10-25 02:30:00+02'", `"2026-10-25T00:30:00Z"`),
		column("interval", feedtype.Text, "'1 year 2 mons 3 days 04:05:06.7'", `"P1Y2M3DT4H5M6.7S"`, "'-1 mon +2 days'", `"P-1M2D"`, "'0'", `"PT0S"`, "'00:00:00.000001'", `"PT0.000001S"`),
		column("uuid", feedtype.Text, "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`),
		column("json", feedtype.JSON,
			`' {"b" : 1, "a":[1.0, null ], "b":2, "s":"x  y\u0000"} '`, `{"b":1,"a":[1.0,null],"b":2,"s":"x  y\u0000"}`,
			"'null'", `{"$json":null}`, `'{"$json": 1}'`, `{"$json":{"$json":1}}`, `'{"\u0024json": null}'`, `{"$json":{"\u0024json":null}}`,
			`'{"$text":"a"}'`, `{"$json":{"$text":"a"}}`, `'{"$ref":"a"}'`, `{"$ref":"a"}`,
			"'123456789012345678901234567890.10'", "123456789012345678901234567890.10", `'"text"'`, `"text"`, "'1e400'", "1e400", "'[]'", "[]",
			nested(8000), brackets(8000), nested(9001), `{"$text":"`+brackets(9001)+`"}`, nested(10500), `{"$text":"`+brackets(10500)+`"}`),
		column("jsonb", feedtype.JSON, `'{"b": 1.0, "a": 2}'`, `{"a":2,"b":1.0}`, "'null'", `{"$json":null}`, `'{"$json":null}'`, `{"$json":{"$json":null}}`, `'"é"'`, `"é"`),
		column("document", feedtype.JSON, `'{"a": 1}'`, `{"a":1}`, "'null'", `{"$json":null}`),
		column("int[]", feedtype.JSON, "'{1,NULL,3}'", "[1,null,3]", "'{{1,2},{3,4}}'", "[[1,2],[3,4]]", "'{}'", "[]"),
		column("numbers", feedtype.JSON, "'{1,NULL,3}'", "[1,null,3]", "'{}'", "[]"),
		column("text[]", feedtype.JSON, `ARRAY['a"b', NULL, 'NULL', 'x,y{}\', '', 'é']`, `["a\"b",null,"NULL","x,y{}\\","","é"]`),
		column("numeric[]", feedtype.JSON, "'{1.50,NaN,Infinity}'", `[1.50,"NaN","Infinity"]`),
		column("double precision[]", feedtype.JSON, "'{0.1,-0,NaN}'", `[0.1,-0,"NaN"]`),
		column("timestamptz[]", feedtype.JSON, "'{2026-10-25 02:30:00+02,infinity}'", `["2026-10-25T00:30:00+00:00","infinity"]`),
		column("bytea[]", feedtype.JSON, `ARRAY['\x00ff'::bytea]`, `["\\x00ff"]`),
		column("char(3)[]", feedtype.JSON, "'{a}'", `["a  "]`),
		column("int2vector", feedtype.JSON, "'1 2'", "[1,2]"),
		column("pair[]", feedtype.JSON, `ARRAY[ROW(1,'x y')::pair]`, `[{"a":1,"b":"x y"}]`),
		column("jsonb[]", feedtype.JSON, `ARRAY['{"a":1}'::jsonb]`, `[{"a":1}]`),
		column("mood", feedtype.Text, "'so so'", `"so so"`),
		column("positive", feedtype.Integer, "9223372036854775807", "9223372036854775807"),
		column("evenmore", feedtype.Integer, "1", "1"),
		column("pair", feedtype.Text, `ROW(1,'a "b"')`, `"(1,\"a \"\"b\"\"\")"`, "ROW(NULL,NULL)", `"(,)"`),
		column("int4range", feedtype.Text, "'[1,5]'", `"[1,6)"`, "'empty'", `"empty"`),
		column("tstzrange", feedtype.Text, "'[2026-10-25 02:30:00+02,)'", `"[\"2026-10-25 00:30:00+00\",)"`),
		column("daterange", feedtype.Text, "'(,2026-01-31]'", `"(,2026-02-01)"`),
		column("int4multirange", feedtype.Text, "'{[1,2),[5,6)}'", `"{[1,2),[5,6)}"`),
		column("inet", feedtype.Text, "'10.0.0.1'", `"10.0.0.1"`, "'10.0.0.1/8'", `"10.0.0.1/8"`, "'::ffff:1.2.3.4'", `"::ffff:1.2.3.4"`),
		column("cidr", feedtype.Text, "'10.0.0.0/8'", `"10.0.0.0/8"`),
		column("macaddr", feedtype.Text, "'08-00-2B-01-02-03'", `"08:00:2b:01:02:03"`),
		column("bit(4)", feedtype.Text, "B'1010'", `"1010"`),
		column("varbit", feedtype.Text, "B'10101'", `"10101"`, "B''", `""`),
		column("tsvector", feedtype.Text, "'fat:2 cat:1A'", `"'cat':1A 'fat':2"`),
		column("tsquery", feedtype.Text, "'fat & cat'", `"'fat' & 'cat'"`),
		column("point", feedtype.Text, "'(0.1,-0)'", `"(0.1,-0)"`),
		column("path", feedtype.Text, "'[(0,0),(1,1)]'", `"[(0,0),(1,1)]"`),
		column("pg_lsn", feedtype.Text, "'16/B374D848'", `"16/B374D848"`),
		column("regclass", feedtype.Text, "'pg_class'", `"pg_class"`),
		column("jsonpath", feedtype.Text, "'$.a[*]'", `"$.\"a\"[*]"`),
		column("int GENERATED BY DEFAULT AS IDENTITY", feedtype.Integer, "7", "7"),
	}
	// An identity is never NULL.
	samples = samples[:len(samples)-1]
	for name, s := range map[string]sample{
		"citext": column("citext", feedtype.Text, "'Fred'", `"Fred"`),
		"hstore": column("hstore", feedtype.Text, `'a=>1, b=>NULL'`, `"\"a\"=>\"1\", \"b\"=>NULL"`),
	} {
		if x.Scalar("SELECT count(*) FROM pg_available_extensions WHERE name = '"+name+"'") == 1 {
			x.Exec("CREATE EXTENSION " + name)
			samples = append(samples, s)
		}
	}
	if _, err := x.DB.Admin().ExecContext(x.Ctx, "SELECT '<a/>'::xml"); err == nil {
		samples = append(samples, column("xml", feedtype.Text, `'<a b="é">x</a>'`, `"<a b=\"é\">x</a>"`, "''", `""`))
	}
	return samples
}

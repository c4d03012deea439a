package install

import (
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// settingsTables are the tables of the life of a feed: their names, and what makes them. Their keys have every type
// whose values, texts or comparisons depend on a setting of the database; with capture column, those among them
// whose equal values have equal text.
func settingsTables(x *suite.Env) (names []string, statements []string) {
	names, statements = []string{"s", "numbered"}, []string{
		x.By(map[string]string{
			"sqlite": "CREATE TABLE s (code TEXT NOT NULL, n NUMERIC NOT NULL, v TEXT, b BLOB, PRIMARY KEY (code, n))",
			"postgres": "CREATE TABLE s (code char(5) NOT NULL, n numeric NOT NULL, f double precision NOT NULL, i " +
				"interval NOT NULL, " +
				"at timestamptz NOT NULL, d date NOT NULL, m money NOT NULL, \"q\\b\" text NOT NULL DEFAULT " +
				"'a\\b', mood types.mood NOT NULL DEFAULT 'sad', u uuid NOT NULL DEFAULT " +
				"'00112233-4455-6677-8899-aabbccddeeff', mail types.mail NOT NULL DEFAULT 'Fred', v text, " +
				"b bytea, a text[], j jsonb, " +
				"CONSTRAINT s_key PRIMARY KEY (mail, code, n, f, i, at, d, m, \"q\\b\", mood, u))",
			"mysql": "CREATE TABLE s (code CHAR(5) NOT NULL, d DATE NOT NULL, n DECIMAL(10,2) NOT NULL, at " +
				"DATETIME(6) NOT NULL, " +
				"wide CHAR(4) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'é', mood ENUM('a', 'b ', " +
				"'c') NOT NULL DEFAULT 'c', name VARCHAR(10) NOT NULL DEFAULT 'x\\\\y', " +
				"v VARCHAR(20), ch CHAR(7), ts TIMESTAMP(6) NULL, f FLOAT, j JSON, u BIGINT UNSIGNED, PRIMARY KEY " +
				"(code, d, n, at, wide, mood, name))",
		}),
		x.By(map[string]string{
			"sqlite": "CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, k TEXT UNIQUE, v TEXT)",
			"postgres": "CREATE TABLE numbered (id types.small PRIMARY KEY DEFAULT nextval('numbers'), k text " +
				"UNIQUE, v text)",
			"mysql": "CREATE TABLE numbered (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k VARCHAR(20) " +
				"UNIQUE, v VARCHAR(20))",
		}),
	}
	if x.Capture == feedtype.CaptureColumn {
		exact := strings.NewReplacer(
			"PRIMARY KEY (mail, code, n, f, i, at,",
			"PRIMARY KEY (code, at,",
			"id types.small",
			"id bigint",
			"code CHAR(5)",
			"code CHAR(5) COLLATE utf8mb4_bin",
			"name VARCHAR(10)",
			"name CHAR(10) COLLATE utf8mb4_bin",
		)
		for i := range statements {
			statements[i] = exact.Replace(statements[i])
		}
	}
	return names, statements
}

// settingsWrites are what writers do with these tables, in three parts.
func settingsWrites(x *suite.Env) [3][]string {
	first := "code LIKE 'a%'" // MySQL finds no code = 'a' where it reads blanks behind it
	if x.Family() == "sqlite" {
		first = "code = 'a'"
	}
	return [3][]string{{
		x.By(map[string]string{
			"sqlite": "INSERT INTO s VALUES ('a', 1.5, 'x', x'00ff'), ('A', 2, 'y', NULL), ('b', 3, 'z', x'')",
			"postgres": "INSERT INTO s (code, n, f, i, at, d, m, v, b, a, j) VALUES ('a', 1.50, 1.00001, '1 day " +
				"-02:03:04.5', '2026-10-25 02:30:00.5+02', '2026-02-03', 1234.5, 'x', decode('00ff5c', 'hex'), " +
				"ARRAY['NULL', NULL, 'é'], '{\"a\": 1.0}'), " +
				"('b', 0.1, 0.1, '-1 mon', '2026-10-25 02:30:00+01', '2026-03-02', -0.01, 'y', NULL, '{}', 'null')",
			"mysql": "INSERT INTO s (code, d, n, at, v, ch, ts, f, j, u) VALUES ('a', '2026-02-03', 1.50, " +
				"'2026-10-25 02:30:00.5', 'x  ', 'ab', '2026-10-25 00:30:00', 0.1, '{\"a\": 1}', " +
				"18446744073709551615), " +
				"('B', '2026-03-02', 0.10, '2026-10-25 02:30:00', '', '', NULL, NULL, NULL, 0), ('', '2026-03-02', " +
				"0.10, '2026-10-25 02:30:00', NULL, NULL, NULL, NULL, NULL, NULL)",
		}),
		"INSERT INTO numbered (k, v) VALUES ('a', '1'), ('b', '2'), ('c', '3'), ('d', '4'), ('e', '5')",
	}, {
		"UPDATE s SET v = 'changed' WHERE " + first,
		x.By(map[string]string{
			"sqlite":   "UPDATE s SET code = 'c' WHERE code = 'b'",
			"postgres": "UPDATE s SET f = 1.00002 WHERE code = 'a'; UPDATE s SET mail = 'fred' WHERE code = 'b'",
			"mysql":    "UPDATE s SET code = 'c' WHERE code LIKE 'B%'",
		}),
		"DELETE FROM numbered WHERE id = 2",
		"INSERT INTO numbered (k, v) VALUES ('f', '6')",
		"UPDATE numbered SET id = 12 WHERE id = 3",
		"UPDATE numbered SET v = 'w' WHERE id = 4",
	}, {
		"DELETE FROM s WHERE " + first,
		"UPDATE numbered SET v = 'u' WHERE id = 1",
	}}
}

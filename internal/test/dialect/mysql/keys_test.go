package mysql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// keyTypes are types of keys, with values in no particular order.
var keyTypes = []struct {
	decl, values string
	only         testdb.Engine
}{
	{decl: "int", values: "-1, 0, 5, 7, 2147483647"},
	{decl: "bigint unsigned", values: "0, 9007199254740992, 9007199254740993, 9223372036854775808, " +
		"18446744073709551615"},
	{decl: "decimal(20,4)", values: "-1.5, 0, 9007199254740992.0001, 9007199254740992.0002, 9007199254740993"},
	{decl: "double", values: "-1.5, 0, 0.1, 0.30000000000000004, 1e300"},
	{decl: "float", values: "-1.5, 0.1, 0.2, 0.3, 1e30"},
	{decl: "bit(20)", values: "0, 1, 255, 256, 1000000"},
	{decl: "year", values: "1999, 2000, 2024, 2025, 2026"},
	{decl: "date", values: "'1000-01-01', '1999-12-31', '2000-01-01', '2024-02-29', '9999-12-31'"},
	{decl: "datetime(6)", values: "'2025-01-01', '2026-01-01 00:00:00', '2026-01-01 00:00:00.000001', '2026-01-01 " +
		"00:00:00.000002', '9999-12-31 23:59:59.999999'"},
	{decl: "time(3)", values: "'-838:59:59', '-00:00:00.001', '00:00:00', '00:00:00.001', '838:59:59'"},
	{decl: "char(5)", values: "'', 'a', 'B', 'c', 'é'"},
	{decl: "varchar(20) COLLATE utf8mb4_bin", values: "'', 'A', 'B', 'a', 'é'"},
	{decl: "varchar(20) COLLATE utf8mb4_unicode_520_ci", values: "'', '🌍', '😀', '😁', 'z'"},
	{decl: "varchar(20) CHARACTER SET latin1", values: "'', 'a', 'B', 'é', 'z'"},
	{decl: "varchar(20) CHARACTER SET utf16 COLLATE utf16_unicode_ci", values: "'', 'a', 'B', 'é', '😀'"},
	{decl: "varchar(700)", values: "'', 'aa', 'é', 'b', 'c'"},
	{decl: "enum('z','b','a','é')", values: "'z', 'b', 'a', 'é'"},
	{decl: "enum('z','b','a') CHARACTER SET latin1", values: "'z', 'b', 'a'"},
	{decl: "set('z','b','a')", values: "'', 'z', 'b', 'a', 'z,a'"},
	{decl: "binary(3)", values: "'', X'00FF', X'FF00', 'a', 'A'"},
	{decl: "varbinary(20)", values: "'', X'00', X'FF00', 'a', 'A'"},
	{decl: "uuid", values: "'00112233-4455-1677-8899-aabbccddeeff', '10112233-4455-1677-8899-aabbccddeeff', " +
		"'20112233-4455-1677-8899-aabbccddee00', '20112233-4455-4677-8899-aabbccddee00'", only: testdb.MariaDB},
	{decl: "inet6", values: "'::', '2001:db8::1', '2001:db8::2', 'ffff::'", only: testdb.MariaDB},
	{decl: "inet4", values: "'0.0.0.0', '9.0.0.1', '10.0.0.1', '192.0.2.1'", only: testdb.MariaDB},
}

// A walk over a table in key order has every key once, for every type of key, alone or as part of a longer key, and
// with all settings of the driver.
func TestKeysOfEveryType(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		admin, err := h.Admin().Conn(h.ctx())
		h.must(err)
		defer admin.Close()
		run := func(query string) {
			t.Helper()
			if _, err := admin.ExecContext(h.ctx(), query); err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
		}
		run("SET SESSION sql_mode = '', time_zone = '+00:00'")
		db := h.open()
		for i, k := range keyTypes {
			if k.only.Name != "" && k.only != h.Engine {
				continue
			}
			table := fmt.Sprintf("keys%d", i)
			run(fmt.Sprintf("CREATE TABLE %s (a %s NOT NULL, b int NOT NULL, PRIMARY KEY (a, b)) ROW_FORMAT=DYNAMIC",
				table, k.decl))
			want := 0
			for _, v := range strings.Split(k.values, ", ") {
				run(fmt.Sprintf("INSERT INTO %s VALUES (%s, 1), (%s, 2)", table, v, v))
				want += 2
			}
			h.add(db, table)
			for _, name := range []string{"prepared", "text", "utf8", "zone"} {
				params := dsns[name]
				if name == "utf8" && strings.Contains(k.values, "😀") {
					continue // MariaDB refuses such a parameter: an error, no loss
				}
				t.Run(strings.ReplaceAll(k.decl, "/", "")+"/"+name, func(t *testing.T) {
					other, err := rowfeed.Open(h.ctx(), h.pool(dsnFor(h.Engine, params)...), mysql.New(), nil)
					h.must(err)
					f, err := other.Feed(h.ctx(), table)
					h.must(err)
					for _, batch := range []int{1, 3} {
						n, err := f.Admin().RepublishWhere(h.ctx(), "", batch, nil)
						if err != nil || int(n) != want {
							t.Errorf("batches of %d: %d of %d keys, %v", batch, n, want, err)
						}
						if n, err := f.Publish(h.ctx()); err != nil || n != want {
							t.Errorf("published %d of %d keys, %v", n, want, err)
						}
					}
					if findings, err := f.Admin().Check(h.ctx()); err != nil || len(findings) > 0 {
						t.Errorf("check: %v %v", findings, err)
					}
				})
			}
		}
	})
}

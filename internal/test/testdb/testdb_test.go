package testdb_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func count(t *testing.T, d *testdb.Database, query string) int {
	t.Helper()
	var n int
	if err := d.Admin().QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestNewDatabasesAreIsolated(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		a, b := e.New(t), e.New(t)
		if a.URL == b.URL {
			t.Fatalf("both are %s", a.URL)
		}
		a.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
		a.Exec(t, "INSERT INTO kv VALUES (1)")
		b.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
		if n := count(t, b, "SELECT count(*) FROM kv"); n != 0 {
			t.Errorf("b sees %d rows of a", n)
		}
	})
}

func TestDropWithOpenTransaction(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Run("test", func(t *testing.T) {
			d := e.New(t)
			d.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
			db, err := testdb.OpenURL(d.URL, testdb.Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			tx, err := db.Begin() // remains open
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO kv VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestAddressBelongsToOneProcess: no other process uses an address until its test has ended.
func TestAddressBelongsToOneProcess(t *testing.T) {
	taken := func(address string) bool {
		_, text, _ := strings.Cut(address, ":")
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		release := testdb.Reserve(port)
		if release != nil {
			release()
		}
		return release == nil
	}
	var address string
	t.Run("its test", func(t *testing.T) {
		if address = testdb.Address(t); !taken(address) {
			t.Errorf("%s is there for others, too", address)
		}
	})
	if taken(address) {
		t.Errorf("%s is not reserved", address)
	}
}

func TestServersRunWithExpectedSettings(t *testing.T) {
	testdb.Quick(t)
	settings := map[string]map[string]string{
		"postgres": {"synchronous_commit": "on", "max_connections": "200", "listen_addresses": "127.0.0.1"},
		"mysql": {"innodb_flush_log_at_trx_commit": "1", "max_connections": "300", "log_bin": "0",
			"bind_address": "127.0.0.1"},
	}
	versions := map[string]string{"postgres15": "15.", "postgres18": "18.", "mariadb": "MariaDB", "mysql": "9."}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			t.Skip("no server")
		}
		d := e.New(t)
		show := map[string]string{"postgres": "SELECT current_setting($1)",
			"mysql": "SELECT variable_value FROM performance_schema.global_variables WHERE variable_name = ?"}
		if e == testdb.MariaDB {
			show["mysql"] = "SELECT variable_value FROM information_schema.global_variables WHERE variable_name = ?"
		}
		for name, want := range settings[e.Family] {
			var got string
			if err := d.Admin().QueryRow(show[e.Family], name).Scan(&got); err != nil {
				t.Fatal(err)
			}
			got = strings.Replace(got, "OFF", "0", 1)
			if got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		var version string
		if err := d.Admin().QueryRow("SELECT version()").Scan(&version); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(version, versions[e.Name]) {
			t.Errorf("%s is version %s", e.Name, version)
		}
	})
}

func TestKillAndStartRecovers(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			t.Skip("no server")
		}
		s := e.Dedicated(t, testdb.Durable())
		d := s.NewDatabase(t)
		d.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
		for i := range 20 {
			d.Exec(t, "INSERT INTO kv VALUES ("+strconv.Itoa(i)+")")
		}
		tx, err := d.Admin().Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO kv VALUES (1000)"); err != nil {
			t.Fatal(err)
		}
		s.Kill(t)
		if err := tx.Commit(); err == nil {
			t.Error("a transaction committed on a dead server")
		}
		s.Start(t)
		if n := count(t, d, "SELECT count(*) FROM kv"); n != 20 {
			t.Errorf("%d rows after the crash, want the 20 committed ones", n)
		}
		s.Kill(t) // removed while it is down
	})
}

func TestPausedServerAnswersAfterResume(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			t.Skip("no server")
		}
		s := e.Dedicated(t)
		d := s.NewDatabase(t)
		if err := d.Admin().Ping(); err != nil {
			t.Fatal(err)
		}
		s.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := d.Admin().ExecContext(ctx, "SELECT 1"); err == nil {
			t.Error("a paused server answered")
		}
		s.Resume(t)
		if n := count(t, d, "SELECT 1"); n != 1 {
			t.Error(n)
		}
	})
}

func TestServerStartsWithGivenSetting(t *testing.T) {
	testdb.Quick(t)
	for _, c := range []struct {
		e                    testdb.Engine
		setting, query, want string
	}{
		{testdb.Postgres15, "timezone=Asia/Kathmandu", "SHOW timezone", "Asia/Kathmandu"},
		{testdb.MariaDB, "log_bin=binlog", "SELECT @@log_bin", "1"},
		{testdb.MySQL, "default-time-zone=+05:45", "SELECT @@time_zone", "+05:45"},
	} {
		t.Run(c.e.Name, func(t *testing.T) {
			c.e.Require(t)
			d := c.e.Dedicated(t, testdb.Setting(c.setting)).NewDatabase(t)
			var got string
			if err := d.Admin().QueryRow(c.query).Scan(&got); err != nil || got != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestDumpShowsSchemaAndNoRows(t *testing.T) {
	testdb.Quick(t)
	changes := map[string][][2]string{
		"sqlite": {
			{"CREATE TRIGGER tr AFTER INSERT ON kv BEGIN SELECT 1; END", "DROP TRIGGER tr"},
			{"ALTER TABLE kv ADD COLUMN extra bigint", "ALTER TABLE kv DROP COLUMN extra"},
			{"CREATE INDEX ix ON kv (v)", "DROP INDEX ix"},
		},
		"postgres": {
			{"CREATE FUNCTION fn() RETURNS trigger LANGUAGE plpgsql AS 'begin return null; end'", "DROP FUNCTION fn"},
			{"CREATE FUNCTION fn() RETURNS trigger LANGUAGE plpgsql AS 'begin return null; end'; " +
				"CREATE TRIGGER tr AFTER INSERT ON kv FOR EACH ROW EXECUTE FUNCTION fn()", "DROP FUNCTION fn CASCADE"},
			{"ALTER TABLE kv ADD COLUMN extra bigint", "ALTER TABLE kv DROP COLUMN extra"},
			{"CREATE INDEX ix ON kv (v)", "DROP INDEX ix"},
			{"GRANT SELECT ON kv TO PUBLIC", "REVOKE SELECT ON kv FROM PUBLIC; ALTER TABLE kv OWNER TO postgres"},
			{"COMMENT ON TABLE kv IS 'x'", "COMMENT ON TABLE kv IS NULL"},
			{"CREATE SEQUENCE sq", "DROP SEQUENCE sq"},
			{"CREATE TYPE ty AS ENUM ('a')", "DROP TYPE ty"},
			{"CREATE SCHEMA other", "DROP SCHEMA other"},
		},
		"mysql": {
			{"CREATE TRIGGER tr AFTER INSERT ON kv FOR EACH ROW SET @x = 1", "DROP TRIGGER tr"},
			{"ALTER TABLE kv ADD COLUMN extra bigint", "ALTER TABLE kv DROP COLUMN extra"},
			{"CREATE INDEX ix ON kv (v)", "DROP INDEX ix ON kv"},
			{"CREATE PROCEDURE pr() SELECT 1", "DROP PROCEDURE pr"},
			{"CREATE VIEW vw AS SELECT 1", "DROP VIEW vw"},
		},
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		d := e.New(t)
		identity := map[string]string{
			"sqlite": "integer PRIMARY KEY", "postgres": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
			"mysql": "bigint AUTO_INCREMENT PRIMARY KEY",
		}[e.Family]
		d.Exec(t, "CREATE TABLE kv (id "+identity+", v varchar(20) NOT NULL DEFAULT 'é')")
		before := d.Dump(t)
		if !strings.Contains(before, "kv") || !strings.Contains(before, "é") {
			t.Fatalf("no table in the dump:\n%s", before)
		}
		d.Exec(t, "INSERT INTO kv (v) VALUES ('a'), ('b')")
		if now := d.Dump(t); now != before {
			t.Errorf("rows change the dump:\n%s\n%s", before, now)
		}
		for _, c := range changes[e.Family] {
			d.Exec(t, c[0])
			if d.Dump(t) == before {
				t.Errorf("the dump does not show %s", c[0])
			}
			d.Exec(t, c[1])
			if now := d.Dump(t); now != before && !strings.HasPrefix(c[0], "GRANT") {
				t.Errorf("%s leaves something:\n%s", c[1], now)
			} else {
				before = now // a revoked right leaves an explicit list of rights
			}
		}
	})
}

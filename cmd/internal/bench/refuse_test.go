package bench

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// refused fails unless Run returns an error with the code, the parts and a next step, before it calls Planned.
func refused(t *testing.T, cfg Config, code rowfeed.Code, parts ...string) {
	t.Helper()
	cfg.Planned = func(p Plan) error {
		t.Errorf("%v: planned: %+v", parts, p)
		return nil
	}
	fails(t, cfg, code, parts...)
}

// fails is like refused, but allows that Run calls Planned.
func fails(t *testing.T, cfg Config, code rowfeed.Code, parts ...string) {
	t.Helper()
	_, err := Run(t.Context(), cfg)
	if !errors.Is(err, code) {
		t.Errorf("ended with %v, want %s", err, code)
		return
	}
	for _, part := range append(parts, "Next: ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

// TestBadOptionsAreRefusedBeforeConnecting names a database that does not exist.
func TestBadOptionsAreRefusedBeforeConnecting(t *testing.T) {
	for part, change := range map[string]func(*Config){
		`no measure "speed"`:               func(c *Config) { c.Measures = []string{Drain, "speed"} },
		"--rows 0 is not between 1":        func(c *Config) { c.Rows = 0 },
		"--rows -1":                        func(c *Config) { c.Rows = -1 },
		"--payload 10001":                  func(c *Config) { c.Payload = 10_001 },
		"--writers 0":                      func(c *Config) { c.Writers = 0 },
		"--repetitions 0":                  func(c *Config) { c.Repetitions = 0 },
		"--seconds 0 is not between 0.001": func(c *Config) { c.Window = 0 },
		"--seconds 7200":                   func(c *Config) { c.Window = 2 * time.Hour },
		"--rate NaN":                       func(c *Config) { c.Rate = math.NaN() },
		"--rate 1e+06":                     func(c *Config) { c.Rate = 1_000_000 },
	} {
		cfg := tiny("sqlite:absent.db")
		change(&cfg)
		refused(t, cfg, rowfeed.InvalidRequest, part)
	}
	cfg := tiny("sqlite:absent.db")
	refused(t, cfg, rowfeed.NotInitialized, "absent.db")
	cfg.DB.Replica = true
	refused(t, cfg, rowfeed.ReadOnly, "--replica")
	cfg.DB.Replica, cfg.DB.NoPublish = false, true
	refused(t, cfg, rowfeed.Refused, "--no-publish")
}

// TestUnsafeServerNeedsConsent: a database that may forget commits is measured only with UnsafeDurability. The report
// says that it is not durable.
func TestUnsafeServerNeedsConsent(t *testing.T) {
	d := testdb.SQLite.New(t)
	d.Exec(t, "CREATE TABLE kv (id int)")
	cfg := tiny(d.URL + "?_synchronous=NORMAL")
	cfg.Measures, cfg.DB.UnsafeDurability = []string{Pages}, false
	refused(t, cfg, rowfeed.UnsafeDurability, "synchronous", "--unsafe-durability")
	cfg.DB.UnsafeDurability = true
	report, err := Run(t.Context(), cfg)
	if err != nil || report.Database.Durable || report.Database.Settings["synchronous"] != "NORMAL" {
		t.Errorf("accepted: %+v, %v", report, err)
	}
	cfg.URL, cfg.DB.UnsafeDurability = d.URL, false
	report, err = Run(t.Context(), cfg)
	if err != nil || !report.Database.Durable || report.Database.Settings["synchronous"] != "FULL" ||
		report.Database.Settings["journal_mode"] != "wal" {
		t.Errorf("durable: %+v, %v", report, err)
	}
}

// TestMissingRightsAreRefused has read-only connections, and users without the right to create tables.
func TestMissingRightsAreRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		d := e.New(t)
		d.Exec(t, "CREATE TABLE kv (id int)")
		before := d.Dump(t)
		as := func(login string) string {
			u, err := url.Parse(d.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.User(login)
			return u.String()
		}
		switch e.Family {
		case "sqlite":
			fails(t, tiny(d.URL+"?mode=ro"), rowfeed.Refused, "create the table", "to write the file")
		case "postgres":
			fails(t, tiny(d.URL+"&default_transaction_read_only=on"), rowfeed.ReadOnly, "primary")
			d.Exec(t, "DROP ROLE IF EXISTS bench_poor")
			d.Exec(t, "CREATE ROLE bench_poor LOGIN")
			d.Exec(t, "REVOKE CREATE ON SCHEMA public FROM PUBLIC") // the default since PostgreSQL 15
			t.Cleanup(func() { d.Exec(t, "DROP ROLE bench_poor") })
			before = d.Dump(t)
			fails(t, tiny(as("bench_poor")), rowfeed.Refused, "create the table",
				"the rights to create and drop tables")
		default:
			d.Exec(t, "DROP USER IF EXISTS bench_poor@'%'")
			d.Exec(t, "CREATE USER bench_poor@'%'")
			d.Exec(t, "GRANT SELECT ON "+d.Name+".* TO bench_poor@'%'")
			t.Cleanup(func() { d.Exec(t, "DROP USER bench_poor@'%'") })
			before = d.Dump(t)
			fails(t, tiny(as("bench_poor")), rowfeed.Refused, "create the table",
				"the rights to create and drop tables")
		}
		if after := d.Dump(t); after != before {
			t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
		}
	})
}

// TestStandbyIsRefused has a user whose writes the standby would not refuse.
func TestStandbyIsRefused(t *testing.T) {
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		primary := e.Primary(t)
		d := primary.NewDatabase(t)
		d.Exec(t, "CREATE TABLE kv (id int)")
		replica := primary.Replica(t)
		on := d.On(t, replica)
		for n := 0; on.Admin().QueryRowContext(t.Context(), "SELECT count(*) FROM kv").Scan(&n) != nil; {
			if pause(t.Context(), 10*time.Millisecond) != nil {
				t.Fatal("the replica has not caught up")
			}
		}
		refused(t, tiny(on.URL), rowfeed.ReadOnly, "connect to the primary")
	})
}

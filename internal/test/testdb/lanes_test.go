package testdb_test

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLanes: a test runs on the second engine of a family only if it is in the quick set, or if all tests are
// asked for; never on an engine that it, or ROWFEED_TEST_ENGINES, leaves out.
func TestLanes(t *testing.T) {
	want := func(step string, engines ...testdb.Engine) {
		t.Helper()
		var runs []testdb.Engine
		for _, e := range []testdb.Engine{
			testdb.SQLite, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL,
		} {
			if testdb.Excluded(t, e) == "" {
				runs = append(runs, e)
			}
		}
		if !slices.Equal(runs, engines) {
			t.Errorf("%s: runs on %v, want %v", step, runs, engines)
		}
	}
	t.Setenv("ROWFEED_TEST_ENGINES", "")
	t.Setenv("ROWFEED_TEST_ALL", "")
	want("at first", testdb.SQLite, testdb.Postgres15, testdb.MariaDB)
	t.Setenv("ROWFEED_TEST_ALL", "1")
	want("with all tests", testdb.SQLite, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL)
	t.Setenv("ROWFEED_TEST_ALL", "")
	t.Run("subtest", testdb.Quick)
	want("in the quick set", testdb.SQLite, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL)
	testdb.Only(t, testdb.Servers...)
	want("only on servers", testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL)
	testdb.Only(t, testdb.SQLite, testdb.MariaDB, testdb.MySQL)
	want("neither on PostgreSQL", testdb.MariaDB, testdb.MySQL)
	t.Setenv("ROWFEED_TEST_ENGINES", "sqlite,mysql")
	want("with ROWFEED_TEST_ENGINES", testdb.MySQL)
	t.Run("each", func(t *testing.T) {
		t.Setenv("ROWFEED_TEST_ENGINES", "sqlite")
		testdb.Each(t, func(t *testing.T, e testdb.Engine) { t.Errorf("Each runs on %s", e) })
		t.Error("Each does not skip a test that runs nowhere")
	})
}

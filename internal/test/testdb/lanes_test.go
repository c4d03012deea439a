package testdb_test

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestSecondEngineRunsTheQuickSet: a test runs on the second engine of a family only if it is in the quick set, or if
// all tests run. It never runs on an engine that it, or ROWFEED_TEST_ENGINES, excludes.
func TestSecondEngineRunsTheQuickSet(t *testing.T) {
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

// TestSuite: what a test of the suite declares applies to its subtests, and to no other test.
func TestSuite(t *testing.T) {
	t.Setenv("ROWFEED_TEST_ENGINES", "")
	t.Run("folder/TestOnly", func(t *testing.T) {
		testdb.Only(t, testdb.SQLite)
		t.Run("subtest", func(t *testing.T) {
			if testdb.Excluded(t, testdb.MariaDB) == "" {
				t.Error("a subtest runs on a database that its test excludes")
			}
		})
	})
	t.Run("folder/TestOther", func(t *testing.T) {
		if why := testdb.Excluded(t, testdb.MariaDB); why != "" {
			t.Error(why)
		}
	})
}

// Package testdb starts real, private database servers for tests.
//
// A server listens on a random port of 127.0.0.1, has a temporary folder, and is stopped by its process id. It starts
// when a test first needs it, and all tests of the process share it. Each test gets databases of its own:
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
//
//	func TestPublish(t *testing.T) {
//		testdb.Each(t, func(t *testing.T, e testdb.Engine) {
//			db := e.New(t)
//			db.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
//			rowfeed.Open(..., db.URL)
//		})
//	}
//
// It also has what tests of failures need: a server that may be killed or paused (Engine.Dedicated), a driver that
// observes, holds and fails statements (Tap, Hold), a child process that dies before statement n (CrashChild), and
// schema dumps to compare (Database.Dump).
//
// Nothing outlives the test process: the kernel kills the servers with it, and the next process removes the folders of
// killed processes.
//
// Environment:
//
//	ROWFEED_TEST_ENGINES  sqlite,mariadb: only these; a missing one is a failure
//	ROWFEED_TEST_ALL      1: all tests run on PostgreSQL 18 and MySQL, not only the quick set
//	ROWFEED_TEST_SQLSERVER
//	                      sqlserver://sa:password@host:1433: the server of the engine sqlserver, which runs tests
//	                      only if ROWFEED_TEST_ENGINES names it; each test makes a database there, and drops it
//	ROWFEED_ENGINES_DIR   the folder into which scripts/setup.sh unpacks servers
//	                      (.engines next to go.work)
//	ROWFEED_NOT_TESTED    a file that gets a line for every engine not tested
//	ROWFEED_TEST_PROGRAMS a folder with the programs rowfeed and checker, which tests otherwise build
//	CI                    true: a missing engine is a failure (MySQL is optional)
package testdb

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Engine is a database product that tests run on. It is comparable.
type Engine struct {
	Name   string // sqlite, postgres15, postgres18, mariadb, mysql, sqlserver
	Family string // sqlite, postgres, mysql, sqlserver: it has this family's SQL and driver
}

// The engines, in the order in which tests run.
var (
	SQLite     = Engine{"sqlite", "sqlite"}
	Postgres15 = Engine{"postgres15", "postgres"}
	Postgres18 = Engine{"postgres18", "postgres"}
	MariaDB    = Engine{"mariadb", "mysql"}
	MySQL      = Engine{"mysql", "mysql"}
	SQLServer  = Engine{"sqlserver", "sqlserver"}

	all = []Engine{SQLite, Postgres15, Postgres18, MariaDB, MySQL, SQLServer}

	// Sets of engines, for Only.
	PostgreSQL = []Engine{Postgres15, Postgres18}
	InnoDB     = []Engine{MariaDB, MySQL}
	Servers    = []Engine{Postgres15, Postgres18, MariaDB, MySQL, SQLServer}
)

func (e Engine) String() string { return e.Name }

// second reports whether the engine is the second one of its family. Such an engine runs only the quick set, unless
// ROWFEED_TEST_ALL is 1. The first one runs every test.
func (e Engine) second() bool { return e == Postgres18 || e == MySQL }

// lent reports whether the engine's server is not this package's: it cannot be killed, paused or configured, and runs
// only the tests of which ROWFEED_TEST_ENGINES names the engine.
func (e Engine) lent() bool { return e == SQLServer }

// HasServer reports whether the engine is a server. SQLite is not.
func (e Engine) HasServer() bool { return e.Family != "sqlite" }

// Engines returns the engines that tests should run on, whether or not they are installed: all of our own, or those in
// ROWFEED_TEST_ENGINES. It panics if that has an unknown name, so that a typing error does not look like a green run.
func Engines() []Engine {
	named := namedEngines()
	if named == nil {
		return slices.DeleteFunc(slices.Clone(all), Engine.lent)
	}
	var engines []Engine
	for _, e := range all {
		if slices.Contains(named, e.Name) {
			engines = append(engines, e)
		}
	}
	return engines
}

// namedEngines returns the engines in ROWFEED_TEST_ENGINES, or nil if it is unset.
func namedEngines() []string {
	value := os.Getenv("ROWFEED_TEST_ENGINES")
	if value == "" {
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(all, func(e Engine) bool { return e.Name == name }) {
			panic(fmt.Sprintf("testdb: ROWFEED_TEST_ENGINES names %q; the engines are %v", name, all))
		}
		names = append(names, name)
	}
	return names
}

// What test functions have declared, by their names.
var (
	quick sync.Map // string -> struct{}
	only  sync.Map // string -> []Engine
)

// Quick adds the test to the quick set: it also runs on PostgreSQL 18 and MySQL, where other tests run only
// if ROWFEED_TEST_ALL is 1. Call it before Each. The quick set shows every guarantee once, and all that
// versions of a database do differently.
func Quick(t *testing.T) { quick.Store(caseOf(t), struct{}{}) }

// All reports whether ROWFEED_TEST_ALL is 1.
func All() bool { return os.Getenv("ROWFEED_TEST_ALL") == "1" }

// Only limits the test to the engines on which it has something to test. Call it before Each. If it is called several
// times, all calls limit every Each of the test.
func Only(t *testing.T, engines ...Engine) {
	if before, limited := only.Load(caseOf(t)); limited {
		left := func(e Engine) bool { return !slices.Contains(before.([]Engine), e) }
		engines = slices.DeleteFunc(slices.Clone(engines), left)
	}
	only.Store(caseOf(t), engines)
}

// Suite is the name of the test whose subtests are the test functions of folders:
// TestSuite/publish/TestCollapse.
const Suite = "TestSuite"

// caseOf returns the name of the test function that t belongs to.
func caseOf(t testing.TB) string {
	names := strings.Split(t.Name(), "/")
	if names[0] == Suite {
		return strings.Join(names[:min(3, len(names))], "/")
	}
	return names[0]
}

// excluded returns why the test does not run on the engine, whether or not it is installed, or "".
func (e Engine) excluded(t testing.TB) string {
	if named := namedEngines(); (named != nil || e.lent()) && !slices.Contains(named, e.Name) {
		return "ROWFEED_TEST_ENGINES leaves " + e.Name + " out"
	}
	if engines, limited := only.Load(caseOf(t)); limited && !slices.Contains(engines.([]Engine), e) {
		return "the test is not about " + e.Name
	}
	if _, isQuick := quick.Load(caseOf(t)); e.second() && !isQuick && !All() {
		return e.Name + " runs the quick set only: set ROWFEED_TEST_ALL=1 to run all tests on it"
	}
	return ""
}

// Each runs f as one subtest per engine, named after the engine, one after the other. f may call t.Parallel. Excluded
// engines have no subtest: those that ROWFEED_TEST_ENGINES or Only leaves out, and PostgreSQL 18 and MySQL if the test
// is not in the quick set. If no engine remains, the test is skipped.
//
// A missing engine fails its subtest if CI is true or ROWFEED_TEST_ENGINES names the engine. Otherwise, and always for
// the optional MySQL if it is not named, the subtest is skipped with a line on stderr.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	ran, reason := false, ""
	for _, e := range all {
		why := e.excluded(t)
		if why != "" {
			reason = why
			continue
		}
		ran = true
		t.Run(e.Name, func(t *testing.T) {
			e.Require(t)
			f(t, e)
		})
	}
	if !ran {
		t.Skip(reason)
	}
}

// Require fails or skips the test if the engine is missing, as Each does. It skips the test if Each would have no
// subtest for the engine. It is for tests of one engine only.
func (e Engine) Require(t testing.TB) {
	t.Helper()
	if reason := e.excluded(t); reason != "" {
		t.Skip(reason)
	}
	e.RequireInstalled(t)
}

// RequireInstalled fails or skips the test if the engine is missing, whichever engines this process tests. It is for
// the second database of a test with two.
func (e Engine) RequireInstalled(t testing.TB) {
	t.Helper()
	err := e.Missing()
	switch {
	case err == nil:
	case namedEngines() != nil, os.Getenv("CI") == "true" && e != MySQL:
		t.Fatalf("%s: %v", e.Name, err)
	default:
		notTested(e, err)
		t.Skipf("%s: %v", e.Name, err)
	}
}

// Missing returns why the engine is not available here, or nil.
func (e Engine) Missing() error {
	_, err := findPrograms(e)
	return err
}

var toldMissing sync.Map // Engine -> struct{}

// notTested reports once per process that an engine is not tested. go test hides the output of packages that pass, so
// the line is also written to the file that scripts/test.sh prints at its end.
func notTested(e Engine, err error) {
	if _, told := toldMissing.LoadOrStore(e, struct{}{}); told {
		return
	}
	line := fmt.Sprintf("NOT TESTED on %s: %v\n", e.Name, err)
	fmt.Fprint(os.Stderr, "\n*** ", line, "\n")
	if name := os.Getenv("ROWFEED_NOT_TESTED"); name != "" {
		if f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, _ = f.WriteString(line)
			_ = f.Close()
		}
	}
}

// Main runs the tests, stops all servers, removes their folders, and exits with the tests' code. In a process that
// CrashChild started it runs the child's function instead. Call it from TestMain, after RegisterChild. ends are called
// after the tests.
func Main(m *testing.M, ends ...func()) {
	if name := os.Getenv(childVariable); name != "" {
		runChild(name)
	}
	code := m.Run()
	stopAll()
	for _, end := range ends {
		end()
	}
	os.Exit(code)
}

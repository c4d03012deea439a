package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryCaseOfTheInventoryExists: every case of the inventory still exists, where moved.txt says, and still runs on
// its databases. Every case is in the inventory.
func TestEveryCaseOfTheInventoryExists(t *testing.T) {
	r := opened(t)
	for _, problem := range check(r.inventory, r.moved, r.cases) {
		t.Error(problem)
	}
}

// TestCapabilitiesAreUpToDate: docs/CAPABILITIES.md is up to date with the labels of the cases.
func TestCapabilitiesAreUpToDate(t *testing.T) {
	r := opened(t)
	made, problems := page(r.template, r.cases)
	for _, problem := range problems {
		t.Error(problem)
	}
	is, err := os.ReadFile(filepath.Join(r.root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != made {
		t.Errorf("%s is out of date: run go run ./internal/test/cases", pageFile)
	}
}

// TestSuiteFoldersListAllTheirTests: a folder of the suite lists all its tests, in the order of its files.
func TestSuiteFoldersListAllTheirTests(t *testing.T) {
	r := opened(t)
	run, err := os.ReadFile(filepath.Join(r.root, "cmd/internal/suite/suite_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for folder, tests := range r.lists {
		if !strings.Contains(string(run), "\t"+path.Base(folder)+".Tests,\n") {
			t.Errorf("TestSuite of cmd/internal/suite does not run the tests of %s", folder)
		}
		is, err := os.ReadFile(filepath.Join(r.root, folder, listFile))
		if err != nil || string(is) != list(folder, tests) {
			t.Errorf("%s/%s is out of date: run go run ./internal/test/cases", folder, listFile)
		}
	}
}

func opened(t *testing.T) *repository {
	t.Helper()
	r, err := open(".")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const before = "a\n\tTestOne sqlite mariadb (mysql)\n\tTestTwo\n"

// TestLostAndNewCasesAreFound: lost, new and changed cases are found.
func TestLostAndNewCasesAreFound(t *testing.T) {
	for _, c := range []struct{ name, moved, now, want string }{
		{"the same", "", before, ""},
		{"lost", "", "a\n\tTestTwo\n", "the case a.TestOne no longer exists"},
		{"fewer databases", "", "a\n\tTestOne sqlite (mysql)\n\tTestTwo\n",
			"a.TestOne does not run on mariadb any more"},
		{"only with all", "", "a\n\tTestOne sqlite (mariadb mysql)\n\tTestTwo\n", "does not run on mariadb any more"},
		{"not even with all", "", "a\n\tTestOne sqlite mariadb\n\tTestTwo\n",
			"does not run on mysql any more, not even"},
		{"more databases", "", "a\n\tTestOne sqlite mariadb mysql\n\tTestTwo\n", "cases.txt is out of date"},
		{"new", "", before + "b\n\tTestThree\n", "b.TestThree is not in cases.txt"},
		{"moved, not mapped", "", "b\n\tTestOne sqlite mariadb (mysql)\n\tTestTwo\n",
			"the case a.TestOne no longer exists"},
		{"moved", "a -> b", "b\n\tTestOne sqlite mariadb (mysql)\n\tTestTwo\n", ""},
		{"moved twice", "a -> b\nb -> c/d\nc/d.TestTwo -> e.TestTow",
			"c/d\n\tTestOne sqlite mariadb (mysql)\ne\n\tTestTow\n", ""},
		{"gone", "a.TestTwo -> gone: nobody needs it", "a\n\tTestOne sqlite mariadb (mysql)\n", ""},
		{"a map to nothing", "a.TestTwo -> b.TestTwo", "a\n\tTestOne sqlite mariadb (mysql)\n",
			"the case b.TestTwo no longer exists"},
		{"a map to another case", "a.TestTwo -> a.TestOne", "a\n\tTestOne sqlite mariadb (mysql)\n",
			"two cases of cases.txt are now a.TestOne"},
		{"only with all", "", "a\n\tTestOne (mysql)\n\tTestTwo\n", "runs on no database unless ROWFEED_TEST_ALL is 1"},
		{"a map of nothing", "a.TestTw -> b.TestTwo", before, "had the path a.TestTw"},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, err := parseInventory(before)
			if err != nil {
				t.Fatal(err)
			}
			now, err := parseInventory(c.now)
			if err != nil {
				t.Fatal(err)
			}
			moved, err := parseMoved(c.moved)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(check(was, moved, now), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			renewed := added(was, moved, now)
			for _, problem := range check(renewed, moved, now) {
				if strings.Contains(problem, "run go run") {
					t.Errorf("after renewing: %s", problem)
				}
			}
			if len(renewed) < len(was) {
				t.Error("renewing removes a case")
			}
			again, err := parseInventory(formatInventory(renewed))
			if err != nil || formatInventory(again) != formatInventory(renewed) {
				t.Errorf("the inventory is read as\n%s, %v", formatInventory(again), err)
			}
		})
	}
}

// TestRowsAndLabelsMustMatch: rows without cases and labels without rows are found.
func TestRowsAndLabelsMustMatch(t *testing.T) {
	one := Case{Folder: "a", Name: "TestOne", On: []string{"sqlite"}, WithAll: []string{"mysql"}}
	one.Labels = []string{"M1"}
	const head = "| row | what | state |\n|---|---|---|\n"
	for _, c := range []struct{ name, rows, want string }{
		{"made", "| M1 | it works | run |\n| M2 | it flies | not yet |\n", ""},
		{"no case", "| M1 | it works | run |\n| M2 | it flies | run, nearly |\n", "M2 says run"},
		{"a case of what is not run", "| M1 | it works | not run |\n", "M1 says that it was not run"},
		{"no row", "| M2 | it works | not run |\n", `a.TestOne names the row "M1"`},
		{"no state", "| M1 | it works | well |\n", "state of row M1 begins with none"},
		{"twice", "| M1 | it works | run |\n| M1 | it works | run |\n", "M1 is there twice"},
		{"a cell too many", "| M1 | it works | run | a |\n", "has three cells"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, problems := page(head+c.rows, []Case{one})
			got := strings.Join(problems, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			const rows = "| M1 | it works | run | sqlite (mysql) | TestOne |\n| M2 | it flies | not yet |  |  |\n"
			if c.want == "" && !strings.Contains(made, rows) {
				t.Error(made)
			}
		})
	}
}

// TestDatabasesOfACase: the databases of a case are those that it and its helpers name, without those that it only
// compares with, and without those that Only leaves out.
func TestDatabasesOfACase(t *testing.T) {
	const helpers = `package p
func each(f func()) { testdb.Each(t, f) }
func servers(f func()) { testdb.Only(t, testdb.Servers...); each(f) }
func (x *env) pair() { testdb.Postgres15.Require(t) }
`
	suite := &folder{functions: map[string][]*ast.FuncDecl{}}
	shared, err := parser.ParseFile(token.NewFileSet(), "", `package suite
func Each(f func()) { each(f) }
func each(f func()) { testdb.Quick(t); testdb.Only(t, testdb.SQLite, testdb.MariaDB); testdb.Each(t, f) }
func (x *Env) Crash() { testdb.MariaDB.Require(t) }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range shared.Decls {
		suite.add(declared.(*ast.FuncDecl), true)
	}
	for body, want := range map[string]string{
		"f()":                      "",
		"each(nil)":                "sqlite postgres15 mariadb (postgres18 mysql)",
		"testdb.Quick(t); each(f)": "sqlite postgres15 mariadb postgres18 mysql",
		"testdb.Only(t, testdb.SQLite, testdb.MySQL); each(f)":      "sqlite (mysql)",
		"testdb.Only(t, testdb.SQLite, testdb.MariaDB); servers(f)": "mariadb",
		"x.pair()":                       "postgres15",
		"x.each()":                       "",
		"suite.Each(f)":                  "sqlite mariadb",
		"x.Crash()":                      "mariadb",
		"Each(f); suite.Crash()":         "",
		"use(each)":                      "sqlite postgres15 mariadb (postgres18 mysql)",
		"_ = pair":                       "",
		"if e == testdb.MariaDB { f() }": "",
		"switch { case e != testdb.MySQL: testdb.SQLite.New(t) }":                    "sqlite",
		"for _, e := range []testdb.Engine{testdb.MariaDB, testdb.MySQL} { run(e) }": "mariadb (mysql)",
	} {
		source := helpers + "\n// TestIt (M1, H2): it holds.\nfunc TestIt(t *testing.T) { " + body + " }\n"
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
		if err != nil {
			t.Fatal(body, err)
		}
		f := &folder{functions: map[string][]*ast.FuncDecl{}, suite: suite}
		for _, declared := range file.Decls {
			f.add(declared.(*ast.FuncDecl), false)
		}
		c := Case{Name: "TestIt", Labels: labels(f.functions["TestIt"][0])}
		f.databases(&c)
		if c.databases() != want || !slices.Equal(c.Labels, []string{"M1", "H2"}) {
			t.Errorf("%s: %q %q, want %q", body, c.databases(), c.Labels, want)
		}
	}
}

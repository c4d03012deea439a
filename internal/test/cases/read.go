package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Case is a test function.
type Case struct {
	Folder, Name string
	Labels       []string // the rows of docs/CAPABILITIES.md that it shows
	On           []string // the databases that it runs on
	WithAll      []string // the databases that it runs on only if ROWFEED_TEST_ALL is 1
}

func (c Case) path() string { return c.Folder + "." + c.Name }

// The databases in the order in which tests run, with their names in tests.
var (
	everyEngine = []testdb.Engine{testdb.SQLite, testdb.Postgres15, testdb.MariaDB, testdb.Postgres18, testdb.MySQL}
	engineNames = map[string][]testdb.Engine{
		"Each": everyEngine, "Engines": everyEngine,
		"SQLite": {testdb.SQLite}, "Postgres15": {testdb.Postgres15}, "Postgres18": {testdb.Postgres18},
		"MariaDB": {testdb.MariaDB}, "MySQL": {testdb.MySQL},
		"PostgreSQL": testdb.PostgreSQL, "InnoDB": testdb.InnoDB, "Servers": testdb.Servers,
	}
	// These run the quick set only.
	quickEngines = []testdb.Engine{testdb.Postgres18, testdb.MySQL}
)

var (
	caseName = regexp.MustCompile(`^(Test|Fuzz|Example)($|[^a-z])`)
	label    = regexp.MustCompile(`^\w+ \(([^)]*)\)`)
)

// measures is the folder of measurements, which are not cases.
const measures = "cmd/bench"

// Folders below these have tests that are ordinary functions. One test runs all of them.
const (
	suiteFolder    = "internal/test/suite" // what its folders share
	programsFolder = "cmd/internal/suite"
	listFile       = "tests.go" // a folder's list of its tests
)

// inSuite reports whether a folder may have tests outside files that end in _test.go.
func inSuite(folder string) bool {
	return folder == suiteFolder || strings.HasPrefix(folder, suiteFolder+"/") ||
		strings.HasPrefix(folder, programsFolder+"/")
}

// read finds the cases of all modules below the root, the tests of the suite's folders in the order in which they run,
// and the folder of this package.
func read(root string) (cases []Case, lists map[string][]string, own string, err error) {
	folders := map[string]*folder{}
	lists = map[string][]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" ||
			filepath.ToSlash(below) == measures) {
			return filepath.SkipDir
		}
		if name == inventoryFile {
			own = filepath.Dir(path)
		}
		at, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		at = filepath.ToSlash(at)
		isTest := strings.HasSuffix(name, "_test.go")
		isCode := strings.HasSuffix(name, ".go") && !isTest && inSuite(at) && name != listFile
		if !isCode && !isTest {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if folders[at] == nil {
			folders[at] = &folder{functions: map[string][]*ast.FuncDecl{}}
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				folders[at].add(f, isCode)
			}
		}
		return nil
	})
	for at, f := range folders {
		if inSuite(at) && at != suiteFolder {
			f.suite = folders[suiteFolder]
		}
		if len(f.listed) > 0 {
			lists[at] = f.listed
		}
		for name, declared := range f.functions {
			if caseName.MatchString(name) && name != "TestMain" && name != testdb.Suite {
				c := Case{Folder: at, Name: name, Labels: labels(declared[0])}
				f.databases(&c)
				cases = append(cases, c)
			}
		}
	}
	slices.SortFunc(cases, compare)
	return cases, lists, own, err
}

func compare(a, b Case) int {
	if n := strings.Compare(a.Folder, b.Folder); n != 0 {
		return n
	}
	return strings.Compare(a.Name, b.Name)
}

// labels returns the text in parentheses after the name, in the first line of the comment.
func labels(f *ast.FuncDecl) []string {
	found := label.FindStringSubmatch(f.Doc.Text())
	if found == nil || !strings.HasPrefix(found[0], f.Name.Name+" ") {
		return nil
	}
	return strings.Split(found[1], ", ")
}

// folder has the functions of a directory's tests by name, and the methods by a point and the name.
type folder struct {
	functions map[string][]*ast.FuncDecl
	listed    []string // tests outside files that end in _test.go
	suite     *folder  // what the folders of the suite share; nil for other folders
}

func (f *folder) add(declared *ast.FuncDecl, isCode bool) {
	name := declaredName(declared)
	f.functions[name] = append(f.functions[name], declared)
	if isCode && caseName.MatchString(name) && strings.HasPrefix(name, "Test") {
		f.listed = append(f.listed, name)
	}
}

func declaredName(f *ast.FuncDecl) string {
	if f.Recv != nil {
		return "." + f.Name.Name
	}
	return f.Name.Name
}

// use is what a function and the functions that it calls say about databases.
type use struct {
	engines []testdb.Engine
	only    [][]testdb.Engine
	quick   bool
	seen    map[*ast.FuncDecl]bool
}

// databases returns the databases of a case: those that the case and the functions that it calls name, without those
// that testdb.Only excludes. A comparison with a database names none.
func (f *folder) databases(c *Case) {
	u := use{seen: map[*ast.FuncDecl]bool{}}
	f.follow(c.Name, &u)
	for _, e := range everyEngine {
		left := func(only []testdb.Engine) bool { return !slices.Contains(only, e) }
		switch {
		case !slices.Contains(u.engines, e) || slices.ContainsFunc(u.only, left):
		case slices.Contains(quickEngines, e) && !u.quick:
			c.WithAll = append(c.WithAll, e.Name)
		default:
			c.On = append(c.On, e.Name)
		}
	}
}

func (f *folder) follow(name string, u *use) {
	if f == nil {
		return
	}
	for _, declared := range f.functions[name] {
		if declared.Body != nil && !u.seen[declared] {
			u.seen[declared] = true
			ast.Inspect(declared.Body, func(n ast.Node) bool { return f.visit(n, u) })
		}
	}
}

// visit adds a node, and reports whether to visit its children.
func (f *folder) visit(n ast.Node, u *use) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.Op != token.EQL && n.Op != token.NEQ || engine(n.X) == nil && engine(n.Y) == nil
	case *ast.CaseClause:
		for _, s := range n.Body {
			ast.Inspect(s, func(n ast.Node) bool { return f.visit(n, u) })
		}
		return false
	case *ast.CallExpr:
		if selected(n.Fun) == "Only" {
			var only []testdb.Engine
			for _, argument := range n.Args {
				only = append(only, engine(argument)...)
			}
			u.only = append(u.only, only)
			return false
		}
		u.quick = u.quick || selected(n.Fun) == "Quick"
	case *ast.SelectorExpr:
		u.engines = append(u.engines, engine(n)...)
		if f.suite != nil && isNamed(n.X, "suite") {
			f.suite.follow(n.Sel.Name, u)
			return false
		}
		f.follow("."+n.Sel.Name, u)
		f.suite.follow("."+n.Sel.Name, u)
		ast.Inspect(n.X, func(n ast.Node) bool { return f.visit(n, u) })
		return false // Sel is no function of the folder
	case *ast.Ident:
		f.follow(n.Name, u)
	}
	return true
}

// engine returns the databases that an expression names, or nil.
func engine(e ast.Expr) []testdb.Engine { return engineNames[selected(e)] }

// selected returns X of testdb.X.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok && isNamed(s.X, "testdb") {
		return s.Sel.Name
	}
	return ""
}

func isNamed(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

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

// The databases in the order in which tests run, and what tests call them.
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

// measures is the folder of measurements, which are no cases.
const measures = "cmd/bench"

// read finds the cases of all modules below the root, and the folder of this package.
func read(root string) (cases []Case, own string, err error) {
	folders := map[string]folder{}
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
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if folders[at] == nil {
			folders[at] = folder{}
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				folders[at][declaredName(f)] = append(folders[at][declaredName(f)], f)
			}
		}
		return nil
	})
	for at, functions := range folders {
		for name, declared := range functions {
			if f := declared[0]; caseName.MatchString(name) && name != "TestMain" {
				c := Case{Folder: filepath.ToSlash(at), Name: name, Labels: labels(f)}
				functions.databases(&c)
				cases = append(cases, c)
			}
		}
	}
	slices.SortFunc(cases, compare)
	return cases, own, err
}

func compare(a, b Case) int {
	if n := strings.Compare(a.Folder, b.Folder); n != 0 {
		return n
	}
	return strings.Compare(a.Name, b.Name)
}

// labels returns what stands in parentheses behind the name, in the first line of the comment.
func labels(f *ast.FuncDecl) []string {
	found := label.FindStringSubmatch(f.Doc.Text())
	if found == nil || !strings.HasPrefix(found[0], f.Name.Name+" ") {
		return nil
	}
	return strings.Split(found[1], ", ")
}

// folder has the functions of a directory's tests by name, and the methods by a point and the name.
type folder map[string][]*ast.FuncDecl

func declaredName(f *ast.FuncDecl) string {
	if f.Recv != nil {
		return "." + f.Name.Name
	}
	return f.Name.Name
}

// use is what a function and those that it calls say about databases.
type use struct {
	engines []testdb.Engine
	only    [][]testdb.Engine
	quick   bool
	seen    map[string]bool
}

// databases finds the databases of a case: those that it and the functions that it calls name, less those that
// testdb.Only leaves out. Comparing with a database names none.
func (f folder) databases(c *Case) {
	u := use{seen: map[string]bool{}}
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

func (f folder) follow(name string, u *use) {
	if u.seen[name] {
		return
	}
	u.seen[name] = true
	for _, declared := range f[name] {
		if declared.Body != nil {
			ast.Inspect(declared.Body, func(n ast.Node) bool { return f.look(n, u) })
		}
	}
}

// look takes a node in, and says whether its children are to be looked at.
func (f folder) look(n ast.Node, u *use) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.Op != token.EQL && n.Op != token.NEQ || engine(n.X) == nil && engine(n.Y) == nil
	case *ast.CaseClause:
		for _, s := range n.Body {
			ast.Inspect(s, func(n ast.Node) bool { return f.look(n, u) })
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
		f.follow("."+n.Sel.Name, u)
		ast.Inspect(n.X, func(n ast.Node) bool { return f.look(n, u) })
		return false // Sel is no function of the folder's
	case *ast.Ident:
		f.follow(n.Name, u)
	}
	return true
}

// engine returns the databases that an expression names, nil when it names none.
func engine(e ast.Expr) []testdb.Engine { return engineNames[selected(e)] }

// selected returns X of testdb.X.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.Ident); ok && of.Name == "testdb" {
			return s.Sel.Name
		}
	}
	return ""
}

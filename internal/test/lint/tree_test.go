package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of the library's module. Every other module of the repository has the path of its folder below
// this one.
const module = "github.com/rowfeed/rowfeed"

// pkg is a folder with Go files that are neither tests nor generated, with any build tags.
type pkg struct {
	Path    string // below the repository, "." for its root
	Dir     string
	GoFiles []string
	Imports []string
}

// packages returns those of all modules of the repository, found in its folders.
func packages(t *testing.T) []pkg {
	t.Helper()
	top, found := root(t), map[string]*pkg{}
	err := filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != top &&
				(strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		dir := filepath.Dir(file)
		below, err := filepath.Rel(top, dir)
		if err != nil {
			return err
		}
		p := found[below]
		if p == nil {
			p = &pkg{Path: filepath.ToSlash(below), Dir: dir}
			found[below] = p
		}
		p.GoFiles = append(p.GoFiles, d.Name())
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(p.Imports, imported) {
				p.Imports = append(p.Imports, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]pkg, 0, len(found))
	for _, p := range found {
		slices.Sort(p.Imports)
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b pkg) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// fromRoot returns the path of an imported package below the repository.
func fromRoot(imported string) (below string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// root returns the nearest folder above the test's with the library's go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+module+"\n") {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatalf("no folder above has the go.mod of %s", module)
		}
		dir = filepath.Dir(dir)
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checker type-checks packages with an edit laid over them. It reads a file that no mutant changes once, so that
// checking all mutants takes as long as compiling a few of them.
type checker struct {
	packages map[string]listed // by folder
	exports  map[string]string // import path to the file with its compiled declarations
	fset     *token.FileSet
	imported types.Importer
	parsed   map[string]*ast.File // by path, as they are without a mutant
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// newChecker reads the packages that the mutants change. It names their folders: in a workspace, `./...` means
// the packages of one module only.
func newChecker(root string, mutants []mutant) (*checker, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, m := range mutants {
		if _, err := os.Stat(filepath.Join(root, m.File)); err == nil && filepath.Ext(m.File) == ".go" {
			args = append(args, "./"+path.Dir(m.File))
		}
	}
	slices.Sort(args[4:])
	cmd := exec.Command("go", slices.Compact(args)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &checker{
		packages: map[string]listed{},
		exports:  map[string]string{},
		fset:     token.NewFileSet(),
		parsed:   map[string]*ast.File{},
	}
	c.imported = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(c.exports[path])
	})
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return c, cmd.Wait()
		} else if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		c.packages[p.Dir], c.exports[p.ImportPath] = p, p.Export
	}
}

// check returns an error if the mutant does not apply or does not compile.
func (c *checker) check(root string, m mutant) error {
	edited, err := m.edited(root, false)
	if err != nil || filepath.Ext(m.File) != ".go" { // only the tests of other languages can tell more
		return err
	}
	file := filepath.Join(root, m.File)
	p, ok := c.packages[filepath.Dir(file)]
	if !ok || !slices.Contains(p.GoFiles, filepath.Base(file)) {
		return fmt.Errorf("%s is in no package that is built", m.File)
	}
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		if name == filepath.Base(file) {
			files[i], err = parser.ParseFile(c.fset, file, edited, parser.SkipObjectResolution)
		} else {
			files[i], err = c.parse(filepath.Join(p.Dir, name))
		}
		if err != nil {
			return err
		}
	}
	config := types.Config{Importer: c.imported}
	_, err = config.Check(p.ImportPath, c.fset, files, nil)
	return err
}

// parse reads a file as it is without a mutant.
func (c *checker) parse(path string) (*ast.File, error) {
	file := c.parsed[path]
	if file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
	c.parsed[path] = file
	return file, err
}

// tests returns an error if the mutant's test does not exist. Only `go test` can tell of a subtest.
func (c *checker) tests(root string, m mutant) error {
	names := strings.Split(m.Test, "/")
	folders, name := []string{filepath.Join(m.Package, "*_test.go")}, names[0]
	if name == "TestSuite" && len(names) > 2 { // TestSuite/folder/test
		folders, name = suiteFolders, names[2]
	}
	pattern, err := regexp.Compile(name)
	if err != nil {
		return err
	}
	var files []string
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(root, folder))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(names) > 2 && names[0] == "TestSuite" {
		inFolder, err := regexp.Compile(names[1])
		if err != nil {
			return err
		}
		files = slices.DeleteFunc(files, func(file string) bool {
			return !inFolder.MatchString(filepath.Base(filepath.Dir(file)))
		})
	}
	for _, file := range files {
		parsed, err := c.parse(file)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && pattern.MatchString(f.Name.Name) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no test %s", m.Package, name)
}

// suiteFolders are the files of the suite's folders.
var suiteFolders = []string{"internal/test/suite/*/*.go", "cmd/internal/suite/*/*.go"}

// compile prints which mutants do not apply or compile, or have no test, and returns their number.
func compile(root string, chosen []mutant) (bad int) {
	c, err := newChecker(root, chosen)
	if err != nil {
		fail("go list:", err)
	}
	for _, m := range chosen {
		if err := errors.Join(c.check(root, m), c.tests(root, m)); err != nil {
			fmt.Printf("%s: %v\n", m.ID, err)
			bad++
		}
	}
	fmt.Printf("%d mutants, %d apply, %d do not\n", len(chosen), len(chosen)-bad, bad)
	return bad
}

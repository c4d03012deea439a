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
	"path/filepath"
	"slices"
)

// checker type-checks packages with an edit laid over them: all mutants in the time
// that compiling a few of them takes. A mutant that does not compile guards nothing,
// and is otherwise found only when its turn comes. What no mutant changes is read once.
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

func newChecker(root string) (*checker, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &checker{packages: map[string]listed{}, exports: map[string]string{}, fset: token.NewFileSet(), parsed: map[string]*ast.File{}}
	c.imported = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(c.exports[path]) })
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

// check answers why the mutant does not compile; nil when it does.
func (c *checker) check(root string, m mutant) error {
	if filepath.Ext(m.File) != ".go" { // of a client in another language: its tests tell
		_, err := m.edited(root, false)
		return err
	}
	path := filepath.Join(root, m.File)
	p, ok := c.packages[filepath.Dir(path)]
	if !ok || !slices.Contains(p.GoFiles, filepath.Base(path)) {
		return fmt.Errorf("%s is in no package that is built", m.File)
	}
	edited, err := m.edited(root, false)
	if err != nil {
		return err
	}
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		if name == filepath.Base(path) {
			files[i], err = parser.ParseFile(c.fset, path, edited, parser.SkipObjectResolution)
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

// parse answers a file as it is.
func (c *checker) parse(path string) (*ast.File, error) {
	file := c.parsed[path]
	if file != nil {
		return file, nil
	}
	file, err := parser.ParseFile(c.fset, path, nil, parser.SkipObjectResolution)
	c.parsed[path] = file
	return file, err
}

// compile says which mutants do not apply or compile, and answers their number.
func compile(root string, chosen []mutant) (bad int) {
	c, err := newChecker(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: go list:", err)
		os.Exit(2)
	}
	for _, m := range chosen {
		if err := c.check(root, m); err != nil {
			fmt.Printf("%s: %v\n", m.Name, err)
			bad++
		}
	}
	fmt.Printf("%d mutants, %d compile, %d do not\n", len(chosen), len(chosen)-bad, bad)
	return bad
}

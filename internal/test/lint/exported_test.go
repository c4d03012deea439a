package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// notLibrary matches packages that applications cannot import, or do not import.
var notLibrary = regexp.MustCompile(`(^|/)(internal|examples)(/|$)|^cmd/(rowfeed|bench)(/|$)`)

// TestNoInternalTypesExported: what the library exports has no type of an internal package, also
// not by an alias. Applications could neither name such a type nor read its documentation.
func TestNoInternalTypesExported(t *testing.T) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,DepOnly"}
	for _, p := range packages(t) {
		if !notLibrary.MatchString(p.Path) {
			args = append(args, "./"+p.Path)
		}
	}
	exported, library := compiled(t, args)
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exported[path])
	})
	for _, path := range library {
		p, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range internalTypes(p) {
			t.Error(wrong)
		}
	}
}

// compiled runs go list with args. It returns the files with the types of all packages that it
// lists, and the packages that args name.
func compiled(t *testing.T, args []string) (exported map[string]string, named []string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root(t), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	exported = map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Export string
			DepOnly            bool
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return exported, named
		} else if err != nil {
			t.Fatal(err)
		}
		exported[p.ImportPath] = p.Export
		if !p.DepOnly {
			named = append(named, p.ImportPath)
		}
	}
}

// internalTypes lists where the exported identifiers of a package lead to types of internal packages.
func internalTypes(p *types.Package) (wrong []string) {
	seen := map[types.Type]bool{}
	var walk func(where string, t types.Type)
	members := func(where string, t types.Type) {
		methods := types.NewMethodSet(types.NewPointer(t))
		for i := range methods.Len() { // also those of embedded fields
			if m := methods.At(i).Obj(); m.Exported() {
				walk(where+"."+m.Name(), m.Type())
			}
		}
	}
	named := func(where string, name *types.TypeName, args *types.TypeList) bool {
		for i := range args.Len() {
			walk(where, args.At(i))
		}
		if name.Pkg() != nil && isInternal(name.Pkg().Path()) {
			wrong = append(wrong, fmt.Sprintf("%s: %s has the type %s.%s of an internal package",
				p.Path(), where, name.Pkg().Path(), name.Name()))
		}
		return name.Pkg() == p
	}
	walk = func(where string, t types.Type) {
		switch t := t.(type) {
		case *types.Alias:
			named(where, t.Obj(), t.TypeArgs())
			walk(where, t.Rhs())
		case *types.Named:
			if named(where, t.Obj(), t.TypeArgs()) && !seen[t] {
				seen[t] = true
				members(t.Obj().Name(), t)
				walk(t.Obj().Name(), t.Underlying())
			}
		case *types.TypeParam:
			if !seen[t] {
				seen[t] = true
				walk(where, t.Constraint())
			}
		case *types.Signature:
			for i := range t.TypeParams().Len() {
				walk(where, t.TypeParams().At(i))
			}
			walk(where, t.Params())
			walk(where, t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				walk(where, v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				walk(where+"."+m.Name(), m.Type())
			}
			for e := range t.EmbeddedTypes() {
				walk(where, e)
			}
		case *types.Union:
			for term := range t.Terms() {
				walk(where, term.Type())
			}
		case *types.Map:
			walk(where, t.Key())
			walk(where, t.Elem())
		case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
			walk(where, t.Elem())
		}
	}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			walk(name, o.Type())
		}
	}
	return wrong
}

// isInternal reports whether a package of the repository is internal.
func isInternal(imported string) bool {
	below, ok := fromRoot(imported)
	return ok && strings.Contains("/"+below+"/", "/internal/")
}

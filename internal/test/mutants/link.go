package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// linker builds the test binary of a mutant. It compiles only the package with the edit, and links it with packages
// that are already compiled. `go test` would compile every package above the edit again, which takes ten times as long
// with 40,000 lines of tests. The toolchain's linker compares checksums of what each package was compiled against and
// of what it is linked to. If an edit changes them (a declaration, the body of a generic function), the linker refuses,
// and `go test` builds the binary.
type linker struct {
	root string

	mu   sync.Mutex
	sets map[string]func() (*archives, error) // by test package
}

// archives are the compiled packages of a test binary.
type archives struct {
	dir      string // the tests' folder, in which they run
	main     archive
	packages []archive
}

type archive struct {
	ImportPath, Dir, Export, ForTest, Name   string
	GoFiles, CgoFiles, SFiles, EmbedPatterns []string
	Module                                   *struct{ GoVersion string }
}

// errNotLinked means that only `go test` can build the mutant's tests.
var errNotLinked = errors.New("not linked")

func newLinker(root string) *linker {
	return &linker{root: root, sets: map[string]func() (*archives, error){}}
}

// compiled returns the packages of a test package's binary. They are compiled without inlining, so that a package
// depends on the declarations of others only.
func (l *linker) compiled(pkg string) (*archives, error) {
	l.mu.Lock()
	once, ok := l.sets[pkg]
	if !ok {
		once = sync.OnceValues(func() (*archives, error) { return l.list(pkg) })
		l.sets[pkg] = once
	}
	l.mu.Unlock()
	return once()
}

func (l *linker) list(pkg string) (*archives, error) {
	cmd := exec.Command("go", "list", "-export", "-test", "-deps", "-gcflags=./...=-l",
		"-json=ImportPath,Dir,Export,ForTest,Name,GoFiles,CgoFiles,SFiles,EmbedPatterns,Module", pkg)
	cmd.Dir, cmd.Stderr = l.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	set := &archives{dir: filepath.Join(l.root, pkg)}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var a archive
		if err := dec.Decode(&a); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if a.Name == "main" && strings.HasSuffix(a.ImportPath, ".test") {
			set.main = a
		} else if a.Export != "" {
			set.packages = append(set.packages, a)
		}
	}
	if set.main.Export == "" {
		return nil, fmt.Errorf("%s: %w: no tests", pkg, errNotLinked)
	}
	return set, nil
}

// target returns the package with the mutant's edit, and the packages of its test binary. It returns errNotLinked if
// only the go command can build the binary.
func (l *linker) target(m mutant) (set *archives, target archive, err error) {
	if set, err = l.compiled(m.Package); err != nil {
		return nil, archive{}, err
	}
	folder := filepath.Join(l.root, filepath.Dir(m.File))
	for _, a := range set.packages {
		if a.Dir != folder {
			continue
		}
		if target = a; a.ForTest != "" {
			return nil, archive{}, errNotLinked // compiled together with its own tests
		}
	}
	// the compiler needs more than Go files
	more := len(target.CgoFiles) + len(target.SFiles) + len(target.EmbedPatterns)
	if !slices.Contains(target.GoFiles, filepath.Base(m.File)) || target.Module == nil || more > 0 {
		return nil, archive{}, errNotLinked
	}
	return set, target, nil
}

// links reports whether a mutant's tests can be linked.
func (l *linker) links(m mutant) bool {
	_, _, err := l.target(m)
	return err == nil
}

// link builds the mutant's test binary in the folder work. It returns the path of the binary and the folder in which
// it runs, or errNotLinked.
func (l *linker) link(m mutant, work string) (binary, dir string, err error) {
	set, target, err := l.target(m)
	if err != nil {
		return "", "", err
	}
	edited, err := m.edited(l.root, true)
	if err != nil {
		return "", "", err
	}
	sources := filepath.Join(work, "link")
	source := filepath.Join(sources, filepath.Base(m.File))
	if err := errors.Join(os.Mkdir(sources, 0o700), os.WriteFile(source, edited, 0o600)); err != nil {
		return "", "", err
	}
	binary, object := filepath.Join(work, "mutant.test"), filepath.Join(work, "mutant.a")
	config := filepath.Join(work, "importcfg")
	if err := set.importcfg(config, target.ImportPath, object); err != nil {
		return "", "", err
	}
	compile := []string{"tool", "compile", "-o", object, "-p", target.ImportPath,
		"-lang=go" + major(target.Module.GoVersion), "-complete", "-pack", "-nolocalimports",
		"-l", "-dwarf=false", "-importcfg", config, "-trimpath", sources + "=>" + target.Dir}
	for _, name := range target.GoFiles {
		if name == filepath.Base(m.File) {
			compile = append(compile, source)
		} else {
			compile = append(compile, filepath.Join(target.Dir, name))
		}
	}
	link := []string{"tool", "link", "-o", binary, "-importcfg", config, "-buildmode=exe", "-s", "-w",
		"-X", "testing.testBinary=1", set.main.Export}
	for _, args := range [][]string{compile, link} {
		cmd := exec.Command("go", args...)
		cmd.Dir = target.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("%w: %s: %s", errNotLinked, args[1], out)
		}
	}
	return binary, set.dir, nil
}

// importcfg writes the list of all packages for compiler and linker, with the mutant's package in place of the
// original.
func (s *archives) importcfg(path, mutated, object string) error {
	var b strings.Builder
	for _, a := range s.packages {
		name, _, _ := strings.Cut(a.ImportPath, " ") // of a package compiled for the test: "path [test]"
		file := a.Export
		if name == mutated {
			file = object
		}
		fmt.Fprintf(&b, "packagefile %s=%s\n", name, file)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// major returns the language version of a go directive: 1.26 of 1.26.8.
func major(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// sameLines returns the new text of an edit with as many lines as the old text has, because packages are compiled
// against the lines of declarations, too. It leaves the edit unchanged if it ends within the text of a statement.
func sameLines(before, old, replacement string) string {
	missing := strings.Count(old, "\n") - strings.Count(replacement, "\n")
	if missing <= 0 || strings.Count(before+replacement, "`")%2 == 1 {
		return replacement
	}
	return replacement + strings.Repeat("\n", missing)
}

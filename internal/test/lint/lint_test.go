// Package lint has the rules of the code that the compiler does not check. It has tests only.
package lint

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDatabaseNamesStayInDialects: a database's name is only in its dialect, in packages that open databases, and in
// tests. No other behaviour depends on it.
func TestDatabaseNamesStayInDialects(t *testing.T) {
	branch := regexp.MustCompile(`(==|!=|case)\s*"(sqlite|postgres|postgresql|mysql|mariadb|sqlserver)"`)
	for _, p := range packages(t) {
		below := p.Path
		if strings.HasPrefix(below, "dialect/") || below == "cmd/internal/open" || below == "internal/test/testdb" ||
			below == "internal/test/lint" || inSuite(p) {
			continue
		}
		eachLine(t, p, func(file string, n int, line string) {
			if branch.MatchString(line) {
				t.Errorf("%s:%d branches on a database's name", file, n)
			}
		})
	}
}

// TestHouseStyle: no sleeping outside of tests' helpers, no package without a comment, no file longer than 450 lines,
// no registries filled by init.
func TestHouseStyle(t *testing.T) {
	for _, p := range packages(t) {
		documented := len(p.GoFiles) == 0
		for _, file := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if regexp.MustCompile(`(?m)^// .*\n(//.*\n)*package `).MatchString(text) ||
				regexp.MustCompile(`(?m)^\*/\npackage `).MatchString(text) {
				documented = true
			}
			if n := strings.Count(text, "\n"); n > 450 {
				t.Errorf("%s/%s has %d lines: split it by verb", p.Path, file, n)
			}
			// It waits for servers, for a limited time.
			if strings.Contains(text, "time.Sleep(") && !strings.HasSuffix(p.Path, "internal/test/testdb") {
				t.Errorf("%s/%s sleeps: wait for the event instead", p.Path, file)
			}
			if strings.Contains(text, "\nfunc init()") && !inSuite(p) { // its child processes are found by their names
				t.Errorf("%s/%s has an init function", p.Path, file)
			}
		}
		if !documented {
			t.Errorf("%s has no package comment", p.Path)
		}
	}
}

// TestNoSleepsInTests: a test that sleeps is slow, or flaky, or both.
func TestNoSleepsInTests(t *testing.T) {
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "bench" || d.Name() == "testdb" || d.Name() == ".engines") {
			return filepath.SkipDir // measurements take time; waits for servers are bounded
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "lint_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "time.Sleep(") {
			t.Errorf("%s sleeps", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTestsNamedInPagesExist: tests that pages name exist.
func TestTestsNamedInPagesExist(t *testing.T) {
	tests, named := map[string]bool{}, map[string]string{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)
	name := regexp.MustCompile(`\bTest[A-Z]\w*`)
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".md") {
			for _, test := range name.FindAllString(string(data), -1) {
				named[test] = path
			}
			return err
		}
		for _, test := range declaration.FindAllStringSubmatch(string(data), -1) {
			tests[test[1]] = true
		}
		return err
	})
	if err != nil || len(named) == 0 {
		t.Fatal(len(named), err)
	}
	for test, page := range named {
		if !tests[test] {
			t.Errorf("%s names %s, which does not exist", page, test)
		}
	}
}

// TestErrorsAreClassifiedByCode: the code checks an error's code, never its text.
func TestErrorsAreClassifiedByCode(t *testing.T) {
	byText := regexp.MustCompile(`(strings\.(Contains|HasPrefix|HasSuffix)|MatchString)\([^)]*\.Error\(\)`)
	for _, p := range packages(t) {
		if inSuite(p) { // tests check messages, too
			continue
		}
		eachLine(t, p, func(file string, n int, line string) {
			if byText.MatchString(line) {
				t.Errorf("%s:%d reads an error's text", file, n)
			}
		})
	}
}

// inSuite reports whether a package has tests that are ordinary functions.
func inSuite(p pkg) bool {
	return strings.HasPrefix(p.Path+"/", "internal/test/suite/") || strings.HasPrefix(p.Path, "cmd/internal/suite/")
}

func eachLine(t *testing.T, p pkg, f func(file string, n int, line string)) {
	t.Helper()
	for _, name := range p.GoFiles {
		file, err := os.Open(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, 1<<20)
		for n := 1; scanner.Scan(); n++ {
			f(name, n, scanner.Text())
		}
		file.Close()
	}
}

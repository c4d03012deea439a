// Package lint holds the rules of the house that the compiler does not know. It has
// tests only.
package lint

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rowfeed/rowfeed"

type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// packages are those of all modules.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports", module+"/...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// root is the folder of go.work.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// drivers are imported by internal/open alone (and by tests' helpers): whoever uses
// the library brings a driver of their own.
var drivers = regexp.MustCompile(`^(github\.com/(jackc/pgx|lib/pq|go-sql-driver/mysql|mattn/go-sqlite3|microsoft/go-mssqldb)|modernc\.org/sqlite)`)

// TestImportsPointDown: the house has three bands, and nothing imports from a band
// above its own. Each rule has its reason.
func TestImportsPointDown(t *testing.T) {
	rules := []struct {
		who    string // packages of the module, as a pattern on the path below it
		banned func(imported string) bool
		reason string
	}{
		{`^(dialect(/.*)?)?$`, func(i string) bool {
			return strings.Contains(strings.SplitN(i, "/", 2)[0], ".") && !strings.HasPrefix(i, module) && i != "github.com/oklog/ulid/v2"
		},
			"root and dialects import the standard library and the ULID library only: users inherit every dependency"},
		{`^$`, func(i string) bool { return strings.HasPrefix(i, module+"/") && i != module+"/dialect" },
			"the root sees the contract, never a database"},
		{`^dialect(/.*)?$`, func(i string) bool { return strings.HasPrefix(i, module) && i != module+"/dialect" },
			"a dialect sees the contract, never the root nor another dialect"},
		{`^(feedhttp|access|metrics|tracing|console|server|relay|sink)(/.*)?$`, func(i string) bool {
			return strings.HasPrefix(i, module+"/cmd") || strings.HasPrefix(i, module+"/internal") || strings.HasPrefix(i, module+"/dialect/")
		}, "what serves feeds knows neither commands nor databases"},
		{`^feedhttp$`, func(i string) bool {
			return i == module+"/server" || i == module+"/console" || i == module+"/access"
		}, "the protocol is below the server, and below who may use it"},
		{`^access$`, func(i string) bool { return i == module+"/server" || i == module+"/console" }, "rights are below what is served under them"},
		{`^(metrics|tracing)$`, func(i string) bool { return strings.HasPrefix(i, module+"/") && i != module+"/dialect" },
			"what is measured and traced of the library is good for those who serve nothing, too"},
		{`^console$`, func(i string) bool { return i == module+"/server" }, "the console is below the server"},
		{`^sink(/.*)?$`, func(i string) bool {
			return strings.HasPrefix(i, module+"/") && i != module+"/dialect" && i != module+"/sink" && i != module+"/sink/sinktest"
		}, "a sink sees the library and the seam, neither relays nor other sinks"},
		{`^sink(/(sinktest|stdout|sqlmirror))?$`, func(i string) bool {
			return strings.Contains(strings.SplitN(i, "/", 2)[0], ".") && !strings.HasPrefix(i, module)
		}, "the seam, its suite and the sinks without a client of their own import the standard library only"},
		{`^relay$`, func(i string) bool { return strings.HasPrefix(i, module+"/sink/") }, "a relay knows the seam, no sink"},
		{`^internal/checker`, func(i string) bool {
			return strings.HasPrefix(i, module) && !strings.HasPrefix(i, module+"/internal/checker")
		},
			"the judge shares no code with what it judges"},
		{`^internal/conform$`, func(i string) bool { return strings.HasPrefix(i, module) }, "nor does what tries a server of anybody's"},
		{`^internal/faults`, func(i string) bool { return strings.HasPrefix(i, module) }, "nor does this one"},
		{`.*`, func(i string) bool { return strings.HasPrefix(i, module+"/cmd") }, "nothing imports a command"},
		{`.*`, func(i string) bool { return strings.HasPrefix(i, "github.com/santhosh-tekuri/jsonschema") },
			"it compiles the schemas of all drafts whenever a program starts: 7 ms of each command"},
	}
	for _, p := range packages(t) {
		below := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, rule := range rules {
			if !regexp.MustCompile(rule.who).MatchString(below) {
				continue
			}
			for _, i := range p.Imports {
				if rule.banned(i) {
					t.Errorf("%s imports %s: %s", p.ImportPath, i, rule.reason)
				}
			}
		}
		if !slices.Contains([]string{"internal/open", "internal/testdb", "pgxtx", "bench"}, below) && !strings.HasPrefix(below, "examples/") && !strings.HasPrefix(below, "internal/conformance") {
			for _, i := range p.Imports {
				if drivers.MatchString(i) {
					t.Errorf("%s imports the driver %s: only internal/open does", p.ImportPath, i)
				}
			}
		}
	}
}

// clients of receivers are imported by one sink each: whoever uses the library or another
// sink does not get them.
var clients = map[string]string{
	"github.com/nats-io/":           "sink/nats",
	"github.com/twmb/franz-go":      "sink/kafka",
	"github.com/standard-webhooks/": "sink/webhook",
}

// TestClients: see clients.
func TestClients(t *testing.T) {
	for _, p := range packages(t) {
		below := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for _, i := range p.Imports {
			for client, owner := range clients {
				if strings.HasPrefix(i, client) && below != owner {
					t.Errorf("%s imports %s: only %s does", p.ImportPath, i, owner)
				}
			}
		}
	}
}

// TestDatabaseNames: a database's name stands in its dialect, in what opens one and
// in tests, nowhere above: no behaviour branches on it.
func TestDatabaseNames(t *testing.T) {
	branch := regexp.MustCompile(`(==|!=|case)\s*"(sqlite|postgres|postgresql|mysql|mariadb|sqlserver)"`)
	for _, p := range packages(t) {
		below := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if strings.HasPrefix(below, "dialect/") || below == "internal/open" || below == "internal/testdb" || below == "internal/lint" {
			continue
		}
		eachLine(t, p, func(file string, n int, line string) {
			if branch.MatchString(line) {
				t.Errorf("%s:%d branches on a database's name", file, n)
			}
		})
	}
}

// TestHouseStyle: no sleeping outside tests' helpers, no package without a comment,
// no file beyond 450 lines, no init registries.
func TestHouseStyle(t *testing.T) {
	for _, p := range packages(t) {
		documented := len(p.GoFiles) == 0
		for _, file := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if regexp.MustCompile(`(?m)^// .*\n(//.*\n)*package `).MatchString(text) || regexp.MustCompile(`(?m)^\*/\npackage `).MatchString(text) {
				documented = true
			}
			if n := strings.Count(text, "\n"); n > 450 {
				t.Errorf("%s/%s has %d lines: split it by verb", p.ImportPath, file, n)
			}
			if strings.Contains(text, "time.Sleep(") && !strings.HasSuffix(p.ImportPath, "internal/testdb") { // which waits for servers, bounded
				t.Errorf("%s/%s sleeps: wait for what it waits for", p.ImportPath, file)
			}
			if strings.Contains(text, "\nfunc init()") {
				t.Errorf("%s/%s has an init function", p.ImportPath, file)
			}
		}
		if !documented {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// TestNoSleepsInTests: a test that sleeps is slow, or flaky, or both.
func TestNoSleepsInTests(t *testing.T) {
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "bench" || d.Name() == "testdb" || d.Name() == ".engines") {
			return filepath.SkipDir // measurements take time; servers are waited for, bounded
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

// TestNamedTests: the tests that pages name, as what shows a capability, exist.
func TestNamedTests(t *testing.T) {
	tests, named := map[string]bool{}, map[string]string{}
	declaration, name := regexp.MustCompile(`(?m)^func (Test\w+)\(`), regexp.MustCompile(`\bTest[A-Z]\w*`)
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".md"):
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
			t.Errorf("%s names %s, which there is not", page, test)
		}
	}
}

// TestErrorsByCode: an error is asked for its code, never for its text.
func TestErrorsByCode(t *testing.T) {
	byText := regexp.MustCompile(`(strings\.(Contains|HasPrefix|HasSuffix)|MatchString)\([^)]*\.Error\(\)`)
	for _, p := range packages(t) {
		eachLine(t, p, func(file string, n int, line string) {
			if byText.MatchString(line) {
				t.Errorf("%s:%d reads an error's text", file, n)
			}
		})
	}
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

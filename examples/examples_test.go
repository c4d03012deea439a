// Package examples has tests only: of what is said about the examples.
package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples: each is listed, has a test, and fewer than 100 lines. Those that belong to a
// document run with it; what is a module of its own may be larger.
func TestExamples(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("*/main.go")
	if err != nil || len(programs) < 9 {
		t.Fatal(programs, err)
	}
	for _, path := range programs {
		folder := filepath.Dir(path)
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(folder, "go.mod"))
		module := err == nil
		lines, tested := 0, folder == "tutorial"
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(file, "_test.go"):
				tested = true
			case filepath.Base(file) == "queries.go": // which sqlc writes
			default:
				lines += strings.Count(string(data), "\n")
			}
		}
		if lines >= 100 && !module {
			t.Errorf("%s has %d lines", folder, lines)
		}
		if !tested {
			t.Errorf("%s has no test", folder)
		}
		if !strings.Contains(string(page), "("+path+")") {
			t.Errorf("README.md does not list %s", path)
		}
	}
}

package frozen

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// TestFrozenGoDoc: the output of go doc for each public package is in the files of testdata/godoc.
func TestFrozenGoDoc(t *testing.T) {
	const all = "github.com/rowfeed/rowfeed"
	out, err := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", all+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue // a folder with only tests
		}
		path := strings.TrimPrefix(words[1]+"/", all)
		if words[0] == "main" ||
			slices.ContainsFunc([]string{"/internal/", "/examples/", "/bench/"}, func(hidden string) bool {
				return strings.Contains(path, hidden)
			}) {
			continue
		}
		text, err := exec.Command("go", "doc", "-all", words[1]).Output()
		if err != nil {
			t.Fatalf("go doc -all %s: %v", words[1], err)
		}
		name := strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")
		if name == "" {
			name = "rowfeed"
		}
		texts[name+".txt"] = string(text)
	}
	if len(texts) < 10 {
		t.Fatalf("%d public packages were found", len(texts))
	}
	golden.Compare(t, "testdata/godoc", texts)
}

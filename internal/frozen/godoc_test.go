package frozen

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/golden"
)

// repository is the folder of the library's module.
const repository = "../.."

// modules are the folders of the modules with public packages.
var modules = []string{repository}

// TestFrozenGoDoc: what go doc says of each public package is what the files of testdata/godoc say.
func TestFrozenGoDoc(t *testing.T) {
	texts := map[string]string{}
	for _, folder := range modules {
		list := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", "./...")
		list.Dir = folder
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			words := strings.Fields(line)
			if len(words) == 0 {
				continue // only tests
			}
			path := words[1]
			if words[0] == "main" || strings.Contains(path+"/", "/internal/") || strings.Contains(path+"/", "/examples/") {
				continue
			}
			doc := exec.Command("go", "doc", "-all", path)
			doc.Dir = folder
			text, err := doc.Output()
			if err != nil {
				t.Fatalf("go doc -all %s: %v", path, err)
			}
			_, name, _ := strings.Cut(path, "rowfeed/rowfeed")
			if name = strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "-"); name == "" {
				name = "rowfeed"
			}
			texts[name+".txt"] = string(text)
		}
	}
	if len(texts) < 10 {
		t.Fatalf("%d public packages were found", len(texts))
	}
	golden.Compare(t, "testdata/godoc", texts)
}

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/docs"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func root(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// build makes the binary, once.
var build = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "rowfeed-docs-"); err != nil {
		return "", err
	}
	return folder, exec.Command("go", "build", "-o", filepath.Join(folder, "rowfeed"), "../../../cmd/rowfeed").Run()
})

// TestDocuments (H20, O6) types every command line of the documents into a shell, as a reader would: each session in a
// new folder, on a database of its own, block after block. The output must be what the document shows. A block in "sh"
// or "sql" is in a session, or names the test that runs it, or the reason why it is not run.
func TestDocuments(t *testing.T) {
	root := root(t)
	documents, err := docs.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(bin) })
	ran := 0
	for _, document := range documents {
		blocks, _, err := docs.Read(root, document)
		if err != nil {
			t.Fatal(err)
		}
		first := slices.IndexFunc(blocks, func(b docs.Block) bool { return b.Verb == "run" })
		for i, b := range blocks {
			told := b.Verb != "" || first >= 0 && i >= first
			if (b.Language == "sh" || b.Language == "sql") && !told {
				t.Errorf("%s:%d is not run, and does not say why", document, b.Line)
			}
			if (b.Verb == "not run" || b.Verb == "run by") && b.Detail == "" {
				t.Errorf("%s:%d does not say why", document, b.Line)
			}
		}
		for first >= 0 && first < len(blocks) {
			end := first + 1
			for end < len(blocks) && blocks[end].Verb != "run" {
				end++
			}
			engines := strings.Split(blocks[first].Detail, ", ")
			session := blocks[first:end]
			t.Run(document+"/"+strings.Join(engines, "+"), func(t *testing.T) {
				testdb.Each(t, func(t *testing.T, e testdb.Engine) {
					if !slices.Contains(engines, e.Name) {
						return
					}
					s := newSession(t, e, bin)
					for _, b := range session {
						s.follow(b)
					}
					s.withoutEach()
				})
			})
			ran++
			first = end
		}
	}
	if ran == 0 {
		t.Error("no document has a session")
	}
}

// TestSnippetsEqualTheirFiles: what documents show of files is in these files, which are compiled and run by their own
// tests.
func TestSnippetsEqualTheirFiles(t *testing.T) {
	root := root(t)
	documents, err := docs.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		blocks, _, err := docs.Read(root, document)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if b.Language == "go" && b.Verb != "file" && b.Verb != "not run" && b.Verb != "run by" {
				t.Errorf("%s:%d does not say in which file it is compiled", document, b.Line)
			}
			if b.Verb != "file" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(root, b.Detail))
			if err != nil {
				t.Error(err)
			} else if missing, all := docs.Contains(string(data), b.Text); !all {
				t.Errorf("%s:%d shows %q of %s, where the line is missing or in another order",
					document, b.Line, missing, b.Detail)
			}
		}
	}
}

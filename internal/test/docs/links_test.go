package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/docs"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unsaid  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksInDocumentsLeadSomewhere: links of documents lead to existing files and headings.
func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	root := root(t)
	documents, err := docs.Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	anchors := func(document string) map[string]bool {
		data, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(string(data), -1) {
			all[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
		return all
	}
	for _, document := range documents {
		_, prose, err := docs.Read(root, document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := document
			if file != "" {
				target = path.Join(path.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: %s leads nowhere", document, m[1])
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !anchors(target)[anchor] {
				t.Errorf("%s: %s has no such heading", document, m[1])
			}
		}
	}
}

// TestEachAlertHasRunBook: every alert has its run-book in docs/OPERATIONS.md.
func TestEachAlertHasRunBook(t *testing.T) {
	root := root(t)
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/rowfeed.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	book, err := os.ReadFile(filepath.Join(root, "docs/OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) == 0 {
		t.Error("there are no alerts")
	}
	for _, m := range alerts {
		if !strings.Contains(string(book), "`"+m[1]+"`") {
			t.Errorf("%s has no run-book", m[1])
		}
	}
}

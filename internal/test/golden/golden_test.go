package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failures collects what a comparison reports.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

// TestDifferencesAreReported: a file that differs, that is missing, or that has no text is reported with its lines that
// differ, and the command that updates it.
func TestDifferencesAreReported(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"same": "a\n", "changed": "a\nb\nc\n", "left": "x\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := &failures{TB: t}
	Compare(f, folder, map[string]string{"same": "a\n", "changed": "a\nB\nc\n", "new/one": "n\n"})
	all := strings.Join(f.said, "\n")
	for _, want := range []string{
		filepath.Join(folder, "changed") + ": differs from line 2 on",
		"- b\n+ B\n", filepath.Join(folder, "new/one") + ": the file does not exist yet",
		filepath.Join(folder, "left") + ": the test produces no such text any more",
		"go test -run '^TestDifferencesAreReported$' -update",
	} {
		if !strings.Contains(all+"\n", want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "same") || len(f.said) != 4 {
		t.Errorf("%d reports:\n%s", len(f.said), all)
	}
	f.said = nil
	if Compare(f, folder, map[string]string{"same": "a\n", "changed": "a\nb\nc\n", "left": "x\n"}); len(f.said) > 0 {
		t.Errorf("of equal files: %q", f.said)
	}
}

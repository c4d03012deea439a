package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedExamplesPrintWhatTheySay runs the examples of the library's documentation. The library's module has no
// driver, so its own tests only compile them. Here an overlay adds a file that imports a driver, and replaces "Prints"
// by "Output".
func TestDocumentedExamplesPrintWhatTheySay(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	replaced := map[string]string{}
	lay := func(file, text string) {
		over := filepath.Join(folder, filepath.Base(file))
		if err := os.WriteFile(over, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[file] = over
	}
	lay(filepath.Join(root, "driver_test.go"), "package rowfeed_test\n\nimport _ \"modernc.org/sqlite\"\n")
	files, err := filepath.Glob(filepath.Join(root, "example*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		examples += strings.Count(string(data), "\t// Prints:")
		lay(file, strings.ReplaceAll(string(data), "\t// Prints:", "\t// Output:"))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	lay("overlay.json", string(overlay))
	cmd := exec.Command("go", "test", "-vet=off", "-v", "-run", "^Example", "-overlay", replaced["overlay.json"], ".")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS: Example"); err != nil || passed != examples {
		t.Errorf("%d of %d examples print the documented output (%v):\n%s", passed, examples, err, out)
	}
}

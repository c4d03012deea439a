package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratorsReadOpenAPI: the usual generators turn the OpenAPI description into a Go client that compiles, and
// into TypeScript types, without any settings.
func TestGeneratorsReadOpenAPI(t *testing.T) {
	description, err := filepath.Abs("../../../feedhttp/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errors.String())
		}
		return string(out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("client.go", run("go", "run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2",
		"-generate", "types,client", "-package", "feeds", description))
	write("go.mod", "module example.com/feeds\n\ngo 1.26\n\nrequire github.com/oapi-codegen/runtime v1.9.0\n")
	run("go", "build", ".")
	run("npx", "--yes", "openapi-typescript@7.13.0", description, "-o", "feeds.d.ts")
	types, err := os.ReadFile(filepath.Join(folder, "feeds.d.ts"))
	if err != nil || !strings.Contains(string(types), "shard_count") {
		t.Errorf("types of TypeScript without the parameter shard_count: %v\n%s", err, types)
	}
}

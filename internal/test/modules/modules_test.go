// Package modules tests what a program gets from rowfeed: the modules that it inherits with the library, and the
// clients that generators make from the OpenAPI description. It has tests only.
package modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program uses the library with one database, and clients in versions of its own.
const program = `package main

import (
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func main() {
	fmt.Println(sql.Drivers(), rowfeed.Open, postgres.New(), feedhttp.NewHandler, nats.Version, otel.Version())
}
`

// old are the program's own versions, below those of the binary.
var old = []string{"github.com/jackc/pgx/v5 v5.5.5", "github.com/nats-io/nats.go v1.34.0",
	"go.opentelemetry.io/otel v1.28.0"}

// TestLibraryKeepsDependencyVersionsOfItsUsers: a program that imports the library keeps its versions of pgx, nats and
// otel, and inherits one module, ulid. (feedhttp also needs klauspost/compress, in a version that nats brings already.)
func TestLibraryKeepsDependencyVersionsOfItsUsers(t *testing.T) {
	library, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	write("main.go", program)
	requires := "module example.com/program\n\ngo 1.26\n\nrequire (\n" + strings.Join(old, "\n") + "\n"
	write("go.mod", requires+")\n")
	before := strings.Split(run("list", "-m", "all"), "\n")
	write("go.mod",
		requires+"github.com/rowfeed/rowfeed v0.0.0\n)\nreplace github.com/rowfeed/rowfeed => "+library+"\n")
	all := run("list", "-m", "all")
	var inherited []string
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(line); !slices.Contains(before, line) {
			path, _, _ := strings.Cut(line, " ")
			inherited = append(inherited, path)
		}
	}
	run("build", "-o", os.DevNull, ".")
	all = run("list", "-m", "all")
	want := []string{"github.com/oklog/ulid/v2", "github.com/rowfeed/rowfeed"}
	if !slices.Equal(inherited, want) {
		t.Errorf("with the library, these modules are there or are raised: %q, want %q", inherited, want)
	}
	for _, m := range old {
		if !strings.Contains(all, m+"\n") {
			t.Errorf("%s was raised", m)
		}
	}
	t.Logf("go list -m all:\n%s", all)
}

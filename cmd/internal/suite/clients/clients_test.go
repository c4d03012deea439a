// Package clients has tests only. It runs the tests of the clients in other languages against servers of this source
// tree.
package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/internal/test/testtls"
)

// clients is the folder of the clients' sources.
const clients = "../../../../clients"

var made = filepath.Join(os.TempDir(), fmt.Sprintf("rowfeed-clients-%d", os.Getpid())) // shared by all tests

func TestMain(m *testing.M) { testdb.Main(m, func() { os.RemoveAll(made) }) }

// binary is the rowfeed command, built once.
var binary = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(made, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(made, "rowfeed")
	out, err := exec.Command("go", "build", "-o", path, "../../../rowfeed").CombinedOutput()
	if err != nil {
		return "", errors.New("go build: " + err.Error() + "\n" + string(out))
	}
	return path, nil
})

// client is a copy of a client's sources, with the files of GOFLAGS=-overlay. So mutants of these sources are found
// by the same command as those of Go.
func client(t *testing.T, name string) string {
	t.Helper()
	return copied(t, name, filepath.Join(t.TempDir(), name))
}

func copied(t *testing.T, name, folder string) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(clients, name))
	if err != nil {
		t.Fatal(err)
	}
	over := overlay(t)
	err = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist" || d.Name() == "__pycache__"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(folder, below), 0o700)
		}
		if edited, ok := over[path]; ok {
			path = edited
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, below), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// overlay returns the files of GOFLAGS=-overlay, by their paths.
func overlay(t *testing.T) map[string]string {
	t.Helper()
	for flag := range strings.FieldsSeq(os.Getenv("GOFLAGS")) {
		path, ok := strings.CutPrefix(flag, "-overlay=")
		if !ok {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var o struct{ Replace map[string]string }
		if err := json.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		return o.Replace
	}
	return nil
}

// run runs a program in a client's folder. The program must succeed.
func run(t *testing.T, folder string, env []string, program string, args ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), "ROWFEED_BIN="+path, "PYTHONDONTWRITEBYTECODE=1"), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

// addresses are for servers that the tests start, kill and start again.
func addresses(t *testing.T) string {
	t.Helper()
	all := make([]string, 20)
	for i := range all {
		all[i] = testdb.Address(t)
	}
	return "ROWFEED_TEST_ADDRESSES=" + strings.Join(all, ",")
}

// python is the interpreter of the distribution, which has its database drivers, or another one.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("THE PYTHON CLIENT IS NOT TESTED: there is no python3; run scripts/setup.sh")
	return ""
}

// certificates are those of a server on 127.0.0.1 and of a client, each with its own authority.
func certificates(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name+".pem") }
	for name, authority := range map[string]string{"127.0.0.1": "server", "a client": "client"} {
		a := testtls.New(t, authority+"s")
		a.Write(t, file(authority+"s"))
		a.Sign(t, name, file(authority), file(authority+"-key"))
	}
	return folder
}

// TestPythonClientPassesItsTests (O8) runs the Python client's own tests.
func TestPythonClientPassesItsTests(t *testing.T) {
	testdb.SQLite.Require(t)
	modules, err := filepath.Glob(clients + "/python/tests/test_*.py")
	if err != nil || len(modules) == 0 {
		t.Fatal(modules, err)
	}
	for _, path := range modules {
		name := strings.TrimSuffix(filepath.Base(path), ".py")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, client(t, "python"), []string{"ROWFEED_TEST_TLS=" + certificates(t), addresses(t)}, python(t),
				"-m", "unittest", "-b", "tests."+name)
			if !strings.Contains(out, "\nOK\n") || strings.Contains(out, "skipped") {
				t.Errorf("not all tests were run:\n%s", out)
			}
		})
	}
}

// TestPythonOnServers (O8) runs concurrent instances of a consumer on servers, with drivers of two styles.
func TestPythonOnServers(t *testing.T) {
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		run(t, client(t, "python"), []string{"ROWFEED_TEST_DATABASE=" + e.New(t).URL, addresses(t)}, python(t), "-m",
			"unittest", "-b", "tests.on_server")
	})
}

var compiling sync.Mutex

// typescript compiles the TypeScript client once, with the packages that scripts/setup.sh has installed with npm.
func typescript(t *testing.T) (folder string) {
	t.Helper()
	compiling.Lock()
	defer compiling.Unlock()
	folder = filepath.Join(made, "typescript")
	if _, err := os.Stat(filepath.Join(folder, "dist")); err == nil {
		return folder
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("THE TYPESCRIPT CLIENT IS NOT TESTED: there is no node; run scripts/setup.sh")
	}
	modules, err := filepath.Abs(clients + "/typescript/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	compiler := filepath.Join(modules, "typescript", "bin", "tsc")
	if _, err := os.Stat(compiler); err != nil {
		t.Fatalf("THE TYPESCRIPT CLIENT IS NOT TESTED: %v; run scripts/setup.sh", err)
	}
	copied(t, "typescript", folder)
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	run(t, folder, nil, "node", compiler)
	return folder
}

// TestTypeScriptClientPassesItsTests (O9) compiles the TypeScript client and runs its own tests.
func TestTypeScriptClientPassesItsTests(t *testing.T) {
	testdb.SQLite.Require(t)
	folder := typescript(t)
	for _, name := range []string{"json", "client", "access"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node(t, folder, []string{"ROWFEED_TEST_TLS=" + certificates(t)}, name)
		})
	}
}

// TestTypeScriptConsumersRunOnOtherDatabases (O9) runs the consumers of the TypeScript client on other databases, with
// two more drivers.
func TestTypeScriptConsumersRunOnOtherDatabases(t *testing.T) {
	testdb.Only(t, testdb.SQLite, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		node(t, typescript(t), []string{"ROWFEED_TEST_DATABASE=" + e.New(t).URL}, "stores")
	})
}

// TestTypeScriptConsumersRunOnPostgres (O9) runs the consumers of the TypeScript client on PostgreSQL.
func TestTypeScriptConsumersRunOnPostgres(t *testing.T) {
	testdb.Postgres15.Require(t)
	folder := typescript(t)
	for _, name := range []string{"consumer", "readme"} { // not concurrently: their tables have the same names
		node(t, folder, []string{"ROWFEED_TEST_DATABASE=" + testdb.Postgres15.New(t).URL}, name)
	}
}

// node runs all tests of a file.
func node(t *testing.T, folder string, env []string, name string) {
	t.Helper()
	out := run(t, folder, append(env, addresses(t)), "node", "--test", "dist/tests/"+name+".test.js")
	if !strings.Contains(out, "# fail 0") || !strings.Contains(out, "# skipped 0") {
		t.Errorf("not all tests were run:\n%s", out)
	}
}

// Package suite is the one suite of tests that every database passes, through the public API of the library and, if a
// rule is about statements, against the dialect. Its folders have the tests, one folder for each capability; this
// package has what the folders share, above all Env, a fresh database with rowfeed on it.
//
// Tests are ordinary functions, so that one binary runs all of them. A folder lists them in its file tests.go, which
// "go run ./internal/test/cases" writes. The binary of cmd/internal/suite runs the folders of this package, and those
// beside itself, whose tests need packages of the commands:
//
//	go test ./cmd/internal/suite
//	go test ./cmd/internal/suite -run 'TestSuite/publish/TestChangesOfOneKeyBecomeOneEntry'
//	ROWFEED_TEST_PART=1/2 go test ./cmd/internal/suite    every other test
//
// Each test runs on every engine of internal/test/testdb with a database of its own, unless the test calls testdb.Only.
// If a database lacks a behavior, the test asserts the refusal and is not skipped. Env.Needs skips a test that has not
// been written for a database yet. On PostgreSQL 18 and MySQL only tests run that call testdb.Quick. The first line of
// a test's comment has, after the test's name, the labels of the rows of docs/CAPABILITIES.md that the test shows
// (internal/test/cases).
//
// Tests that mostly wait, for example until a claim on a lease ends, call t.Parallel. They run concurrently after all
// other tests, so that those have the server and the processor to themselves.
package suite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/tap"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Connector opens databases for the tests: the binary that runs them provides it, because drivers belong to commands.
type Connector struct {
	// Open opens a pool of connections on the database of a URL. The hooks, if there are any, see every statement.
	Open func(ctx context.Context, url string, hooks *tap.Hooks) (*sql.DB, *dialect.Dialect, error)
	// Dialect returns the dialect of a URL.
	Dialect func(url string) (*dialect.Dialect, error)
}

var connector Connector

// Open opens a pool of connections as the Connector does.
func Open(ctx context.Context, url string, hooks *tap.Hooks) (*sql.DB, *dialect.Dialect, error) {
	return connector.Open(ctx, url, hooks)
}

// DialectOf returns the dialect of a URL.
func DialectOf(url string) (*dialect.Dialect, error) { return connector.Dialect(url) }

// Main runs the tests of a binary, or the function of a child process, and exits. Call it from TestMain.
func Main(m *testing.M, c Connector) {
	connector = c
	testdb.Main(m)
}

// Run runs the tests of folders as subtests named folder/test, one after another. If the environment variable
// ROWFEED_TEST_PART is 1/2, it runs the first test of two, the third and so on; if it is 2/2, the others. Call it from
// a test that is called TestSuite.
func Run(t *testing.T, folders ...[]func(*testing.T)) {
	if t.Name() != testdb.Suite {
		t.Fatalf("%s runs the suite: call it %s, which testdb knows", t.Name(), testdb.Suite)
	}
	part, parts := 1, 1
	if text := os.Getenv("ROWFEED_TEST_PART"); text != "" {
		if _, err := fmt.Sscanf(text, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
			t.Fatalf("ROWFEED_TEST_PART is %q, not like 1/2", text)
		}
	}
	n := 0
	for _, tests := range folders {
		for _, test := range tests {
			if n++; n%parts == part%parts {
				t.Run(nameOf(test), test)
			}
		}
	}
}

// nameOf returns publish/TestChangesOfOneKeyBecomeOneEntry for publish.TestChangesOfOneKeyBecomeOneEntry.
func nameOf(test func(*testing.T)) string {
	name := path.Base(runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name())
	return strings.Replace(name, ".", "/", 1)
}

package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/internal/test/testleaks"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// shell runs commands in a folder with a database.
type shell struct {
	t   *testing.T
	env map[string]string
}

// newShell changes to a new folder, whose database is sqlite:rowfeed.db.
func newShell(t *testing.T) *shell {
	t.Helper()
	testleaks.None(t)
	t.Chdir(t.TempDir())
	return &shell{t: t, env: map[string]string{}}
}

type result struct {
	out, err string
	code     int
}

// run runs a command line.
func (s *shell) run(args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	code := run(s.t.Context(), args, &out, &errs, func(name string) string { return s.env[name] })
	return result{out.String(), errs.String(), code}
}

// ok runs a command that must succeed and print nothing to stderr. It returns stdout.
func (s *shell) ok(line string) string {
	s.t.Helper()
	r := s.run(strings.Fields(line)...)
	if r.code != cli.ExitDone || r.err != "" {
		s.t.Fatalf("rowfeed %s: exit code %d, stderr %q, stdout %q", line, r.code, r.err, r.out)
	}
	return r.out
}

// fails runs a command that must fail with the code. It returns stderr.
func (s *shell) fails(code int, line string) string {
	s.t.Helper()
	r := s.run(strings.Fields(line)...)
	if r.code != code {
		s.t.Fatalf("rowfeed %s: exit code %d, want %d; stderr %q", line, r.code, code, r.err)
	}
	return r.err
}

// prints runs a command that must succeed and print exactly want, in which terms are terms.Fixed.
func (s *shell) prints(line, want string) {
	s.t.Helper()
	if got := terms.Fix(s.ok(line)); got != want {
		s.t.Errorf("rowfeed %s\n got: %s\nwant: %s", line, got, want)
	}
}

// pool opens the database and creates the file if it does not exist.
func (s *shell) pool() *sql.DB {
	s.t.Helper()
	pool, _, err := open.Open(s.t.Context(), "sqlite:rowfeed.db", open.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { pool.Close() })
	return pool
}

// sql runs statements on the database.
func (s *shell) sql(statements ...string) {
	s.t.Helper()
	pool := s.pool()
	defer pool.Close()
	for _, statement := range statements {
		if _, err := pool.Exec(statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

const createKV = "CREATE TABLE kv (id INTEGER PRIMARY KEY, ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, UNIQUE (ns, k))"

// withFeed returns a shell whose database has a feed kv with three published rows.
func withFeed(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim'), (2, 'a', 'b', NULL), (3, 'a', 'c', 'x')")
	s.ok("init")
	s.ok("feed add kv --table kv")
	s.ok("publish --once")
	return s
}

// execute runs a command line with an App of a test, and returns the error of the command.
func execute(ctx context.Context, a *cli.App, line string) error {
	root := newRoot(a)
	root.SetArgs(strings.Fields(line))
	return root.ExecuteContext(ctx)
}

// quietApp returns an App whose errors are written to the buffer.
func quietApp(t *testing.T) (*cli.App, *bytes.Buffer) {
	t.Helper()
	var errs bytes.Buffer
	return &cli.App{Stdout: &bytes.Buffer{}, Stderr: &errs, Getenv: func(string) string { return "" }}, &errs
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lines is a Writer that sends each line to a channel. A test must receive them.
type lines struct {
	ctx  context.Context
	rest []byte
	c    chan string
}

func newLines(ctx context.Context) *lines { return &lines{ctx: ctx, c: make(chan string, 1000)} }

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.rest = append([]byte(nil), rest...)
		select {
		case l.c <- string(line):
		case <-l.ctx.Done():
		}
	}
}

// next returns the next line.
func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.c:
		return line
	case <-l.ctx.Done():
		t.Fatal("ended while waiting for a line")
		return ""
	}
}

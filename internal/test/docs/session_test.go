package docs_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/docs"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// session is a shell and a database of a reader of a document.
type session struct {
	t       *testing.T
	db      *testdb.Database
	stdin   io.Writer
	out     *bufio.Reader
	address string // what the document calls 127.0.0.1:8080
	printed string // by the last block
	folder  string
	grants  []grant
}

// newSession begins in a new folder. The shell ends with the first command that fails, and ends the processes that it
// has started.
func newSession(t *testing.T, e testdb.Engine, bin string) *session {
	t.Helper()
	s := &session{t: t, db: e.New(t), folder: t.TempDir()}
	s.db.Admin() // also for cleaning up: its pool is closed last
	s.address = testdb.Address(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	cmd := exec.CommandContext(ctx, "bash", "-e", "-u", "-o", "pipefail", "-m", "-s")
	cmd.Dir = s.folder
	if err := os.WriteFile(filepath.Join(s.folder, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "CURL_HOME="+s.folder, "PATH="+bin+":"+os.Getenv("PATH"), "ROWFEED_SOURCE="+root(t))
	if e.HasServer() {
		cmd.Env = append(cmd.Env, "ROWFEED_DB="+s.db.URL)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	s.stdin, s.out = stdin, bufio.NewReader(reader)
	t.Cleanup(func() {
		stdin.Close()
		_, _ = io.Copy(io.Discard, s.out)
		_ = cmd.Wait()
		cancel()
		reader.Close()
	})
	_, _ = io.WriteString(stdin, "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	return s
}

// mark follows the output of a block, with the exit code of its last command.
const mark = "\x1e"

// typed types lines into the shell, and returns their output. It checks whether they fail as expected.
func (s *session) typed(lines string, fails bool) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "typed")
	if err := os.WriteFile(file, []byte(s.here(lines)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	before, behind := "", ""
	if fails {
		before, behind = "set +e; ", "; set -e"
	}
	fmt.Fprintf(s.stdin, "%ssource %s </dev/null; printf '%s%%s\\n' \"$?\"%s\n", before, file, mark, behind)
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		text, code, ended := strings.Cut(line, mark)
		out.WriteString(text)
		if err != nil {
			s.t.Fatalf("the shell has ended (%v):\n%s\nprinted:\n%s", err, lines, out.String())
		}
		if ended {
			if failed := strings.TrimSpace(code) != "0"; failed != fails {
				s.t.Fatalf("exit code %s of\n%s\nwhich printed\n%s", strings.TrimSpace(code), lines, out.String())
			}
			return out.String()
		}
	}
}

// here returns the text with this machine's addresses, and without commands for what the machine already has.
func (s *session) here(text string) string {
	text = doneBefore.ReplaceAllString(text, "")
	text = serving.ReplaceAllString(text,
		fmt.Sprintf("rowfeed serve$1 --listen %s &\nuntil curl -s -o /dev/null %s/readyz; do kill -0 $$!; done\n",
			s.address, s.address))
	text = strings.ReplaceAll(text, "kill $!\n", "kill $! && wait $! || true\n")
	text = strings.ReplaceAll(text, "127.0.0.1:8080", s.address)
	if u, err := url.Parse(s.db.URL); err == nil && s.db.HasServer() {
		text = server.ReplaceAllString(text, u.Host+"/"+s.db.Name)
	}
	return text
}

var (
	doneBefore = regexp.MustCompile(
		`(?m)^(apt-get install .*|go build -o rowfeed \./cmd/rowfeed|export ROWFEED_SOURCE="\$PWD"|` +
			`export PATH="\$PWD:\$PATH" && cd "\$\(mktemp -d\)")$`,
	)
	serving    = regexp.MustCompile(`rowfeed serve( [^&\n]*?)? *& sleep 1`)
	server     = regexp.MustCompile(`127\.0\.0\.1:(5432|3306)/shop\b`)
	shop       = regexp.MustCompile(`\bshop\b`)
	login      = regexp.MustCompile(`CREATE (ROLE|USER) (\w+|'\w+'@'[^']*')`)
	sqliteLine = regexp.MustCompile(`^sqlite3 rowfeed\.db "(.*)"$`)
)

// sql runs statements as the administrator. Logins that they make are removed at the end of the session. A block that
// begins with SELECT is one query, whose rows are printed.
func (s *session) sql(text string) {
	s.t.Helper()
	s.printed = ""
	if strings.HasPrefix(text, "SELECT ") {
		s.printed = s.query(text)
		return
	}
	for _, m := range login.FindAllStringSubmatch(text, -1) {
		s.t.Cleanup(func() {
			if s.db.Family == "postgres" {
				s.db.Exec(s.t, "DROP OWNED BY "+m[2]+" CASCADE")
			}
			s.db.Exec(s.t, "DROP "+m[1]+" "+m[2])
		})
	}
	s.grants = append(s.grants, grants(text)...)
	s.db.Exec(s.t, shop.ReplaceAllString(text, s.db.Name))
}

// query returns the rows of a query, one a line.
func (s *session) query(text string) string {
	s.t.Helper()
	rows, err := s.db.Admin().QueryContext(context.Background(), text)
	if err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	var printed strings.Builder
	for rows.Next() {
		values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			s.t.Fatal(err)
		}
		row := make([]string, len(values))
		for i, v := range values {
			if row[i] = v.String; !v.Valid {
				row[i] = "NULL"
			}
		}
		printed.WriteString(strings.Join(row, " | ") + "\n")
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return printed.String()
}

// refused runs statements that fail, and returns the error's text.
func (s *session) refused(text string) string {
	s.t.Helper()
	_, err := s.db.Admin().ExecContext(context.Background(), text)
	if err == nil {
		s.t.Fatalf("no error of\n%s", text)
	}
	return err.Error()
}

// shell types a block. On a server, statements for SQLite's shell are sent to the server.
func (s *session) shell(text string) {
	s.t.Helper()
	s.printed = ""
	if !s.db.HasServer() {
		s.printed = s.typed(text, false)
		return
	}
	lines := ""
	for line := range strings.Lines(text) {
		if m := sqliteLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			s.printed += s.typed(lines, false)
			lines = ""
			s.db.Exec(s.t, m[1])
			continue
		}
		lines += line
	}
	s.printed += s.typed(lines, false)
}

// follow does what a block says.
func (s *session) follow(b docs.Block) {
	s.t.Helper()
	switch {
	case b.Verb == "shows":
		if missing, all := docs.Contains(terms.Fix(s.printed), b.Text); !all {
			s.t.Errorf("%s:%d shows\n%s\nwhich is not in, or not in this order,\n%s",
				b.Document, b.Line, missing, s.printed)
		}
	case b.Verb == "fails":
		if b.Language == "sql" {
			s.printed = s.refused(b.Text)
		} else {
			s.printed = s.typed(b.Text, true)
		}
		if !strings.Contains(s.printed, b.Detail) {
			s.t.Errorf("%s:%d fails with %q, but printed\n%s", b.Document, b.Line, b.Detail, s.printed)
		}
	case b.Verb != "" && b.Verb != "run":
	case b.Language == "sh":
		s.t.Logf("%s:%d", b.Document, b.Line)
		s.shell(b.Text)
	case b.Language == "sql":
		s.sql(b.Text)
	}
}

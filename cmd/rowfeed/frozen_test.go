package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/golden"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/spf13/cobra"
)

// frozen is the folder of expected outputs: frozen/help and frozen/sessions.
const frozen = "testdata/frozen"

// TestFrozenHelp: --help of each command prints the text of its file in testdata/frozen/help.
func TestFrozenHelp(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(frozen, "help"))
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	texts := map[string]string{}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		words := strings.Fields(cmd.CommandPath())
		texts[strings.Join(words, "-")+".txt"] = s.ok(strings.Join(append(words[1:], "--help"), " "))
		for _, below := range cmd.Commands() {
			add(below)
		}
	}
	add(newRoot(&cli.App{Getenv: func(string) string { return "" }}))
	golden.Compare(t, folder, texts)
}

// TestFrozenSessions: commands on a small database print the text of the files in testdata/frozen/sessions. Each file
// has one session: its lines, each with its output.
func TestFrozenSessions(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(frozen, "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, lines := range sessions {
		s := newShell(t)
		s.env["USER"] = "operator"
		s.sql(createKV, "INSERT INTO kv VALUES (1, '', 'fred', 'jim'), (2, 'a', 'b', NULL), (3, 'a', 'c', 'x')",
			"CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL, v TEXT)")
		var b strings.Builder
		for line := range strings.Lines(lines) {
			s.frozen(&b, strings.TrimSpace(line))
		}
		texts[name+".txt"] = b.String()
	}
	golden.Compare(t, folder, texts)
}

// frozen runs a line of a session and appends its output to b. A line is "sql" with a statement, "consume" for a
// consumer that sets row 2 aside, or a command line.
func (s *shell) frozen(b *strings.Builder, line string) {
	s.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "sql":
		fmt.Fprintf(b, "# %s\n\n", rest)
		s.sql(rest)
	case "consume":
		fmt.Fprint(b, "# the consumer app reads the feed, and sets row 2 aside\n\n")
		s.setAside()
	default:
		r := s.run(strings.Fields(line)...)
		fmt.Fprintf(b, "$ rowfeed %s\n%s", line, steady(r.out))
		for said := range strings.Lines(steady(r.err)) {
			b.WriteString("stderr: " + said)
		}
		if r.code != cli.ExitDone {
			fmt.Fprintf(b, "exit code %d\n", r.code)
		}
		b.WriteString("\n")
	}
}

// setAside runs a consumer that cannot handle row 2.
func (s *shell) setAside() {
	s.t.Helper()
	ctx := s.t.Context()
	pool, d, err := open.Open(ctx, "sqlite:rowfeed.db", open.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer pool.Close()
	db, err := rowfeed.Open(ctx, pool, d, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := db.Feed(ctx, "kv")
	if err != nil {
		s.t.Fatal(err)
	}
	c := &rowfeed.Consumer{Name: "app", Source: f, DB: db, OnFailure: rowfeed.SetAside,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1}},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if id, _ := e.Key.Get("id"); id == int64(2) {
					return errors.New("row 2 is not wanted")
				}
			}
			return nil
		}}
	if err := c.RunOnce(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// varying has patterns of text that differs between two runs, and the replacement of each.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`time=\S+`), "time=TIME"},
	{regexp.MustCompile(`(_seconds": )[\d.e-]+`), "${1}SECONDS"},
	{regexp.MustCompile(`\b1[7-9]\d{8}\b`), "GENERATION"},
	{regexp.MustCompile(`\brf_[\w-]{20,}`), "TOKEN"},
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ULID"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|s)\b`), "DURATION"},
}

// padding is the space between two columns of a table.
var padding = regexp.MustCompile(`(\S) {2,}`)

// steady returns an output in which text that differs between two runs is replaced.
func steady(out string) string {
	if folder, err := os.Getwd(); err == nil {
		out = strings.ReplaceAll(out, folder, "FOLDER")
	}
	if host, err := os.Hostname(); err == nil {
		out = regexp.MustCompile(`\w+@`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(out, "USER@HOST")
	}
	text := terms.Fix(out)
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	if text != out { // the widths of a table's columns vary, too
		text = narrow(text)
	}
	return text
}

// narrow returns a printed table without the widths of its columns.
func narrow(text string) string { return padding.ReplaceAllString(text, "$1  ") }

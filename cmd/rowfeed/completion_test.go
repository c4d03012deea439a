package main

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// completes returns the words that a shell offers for the last word of a command line, and cobra's directive. The
// database may take as long as within; 0 means the limit of a shell.
func (s *shell) completes(
	ctx context.Context, within time.Duration, args ...string,
) (words []string, directive string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := &cli.App{
		Stdout:            &out,
		Stderr:            &errs,
		Getenv:            func(name string) string { return s.env[name] },
		CompletionTimeout: within,
	}
	root := newRoot(a)
	root.SetArgs(append([]string{"__complete"}, args...))
	if err := root.ExecuteContext(ctx); err != nil {
		s.t.Fatalf("rowfeed __complete %q: %v, stderr %q", args, err, &errs)
	}
	if said := strings.TrimSpace(errs.String()); strings.Contains(said, "\n") ||
		!strings.HasPrefix(said, "Completion ended with directive") {
		s.t.Errorf("rowfeed __complete %q wrote to stderr: %s", args, said)
	}
	words = strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(words) - 1
	for i, word := range words {
		words[i], _, _ = strings.Cut(word, "\t") // a description follows
	}
	return words[:last], words[last]
}

// noFiles is cobra's ShellCompDirectiveNoFileComp.
const noFiles = ":4"

// TestCompletionKnowsNamesOfDatabase: names of feeds, consumers, leases and tokens come from the database.
func TestCompletionKnowsNamesOfDatabase(t *testing.T) {
	s := withFeed(t)
	s.sql("CREATE TABLE other (id INTEGER PRIMARY KEY)")
	s.ok("feed add other --table other")
	s.ok("relay kv --to stdout: --consumer lines --once")
	if r := s.run("token", "add", "reader", "--feed", "kv", "--right", "read"); r.code != cli.ExitDone {
		t.Fatal(r.err)
	}
	for _, c := range []struct {
		line, want string
	}{
		{"token revoke |", "reader"},
		{"token add |", ""},
		{"fetch |", "kv other"},
		{"fetch o|", "kv other"}, // the shell filters
		{"fetch kv |", ""},
		{"publish kv |", "other"},
		{"feed show |", "kv other"},
		{"feed add |", ""},
		{"consumer seek |", "lines"},
		{"consumer seek lines --feed |", "kv other"},
		{"relay kv --consumer |", "lines"},
		{"lease release |", "relay:kv:lines"},
		{"feed add new --table t --mode |", "sequence outbox blocking"},
		{"fetch kv --limit |", ""},
		{"bench |", "writers drain pages consume latency idle"},
		{"completion |", "bash zsh fish powershell"},
		{"feed dr|", "drop"},
	} {
		args := strings.Fields(strings.TrimSuffix(c.line, "|"))
		if strings.HasSuffix(c.line, " |") {
			args = append(args, "")
		}
		words, directive := s.completes(t.Context(), time.Hour, args...)
		if got := strings.Join(words, " "); got != c.want || directive != noFiles && directive != ":6" {
			t.Errorf("rowfeed %s: %q, %s; want %q", c.line, got, directive, c.want)
		}
	}
	if words, directive := s.completes(t.Context(), 0, "serve", "--config",
		""); strings.Join(words, " ") != "yaml yml" ||
		directive != ":8" {
		t.Errorf("--config: %q, %s", words, directive)
	}
}

// TestCompletionIsSilentWithoutDatabase: completion offers no names and prints no error if the database does not exist,
// has no tables of rowfeed, or does not answer.
func TestCompletionIsSilentWithoutDatabase(t *testing.T) {
	s := newShell(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.sql(createKV)
	writeFile(t, "bad.yaml", "colour: red\n")
	ctx, stop := context.WithTimeout(t.Context(), 60*completionTime) // less than the timeouts in the URLs
	defer stop()
	for _, from := range []string{"--db=sqlite:absent.db", "--db=sqlite:rowfeed.db", "--db=nonsense",
		"--config=bad.yaml", "--db=mysql://me:hunter2@" + listener.Addr().String() + "/shop?timeout=1h",
		"--db=postgres://me:hunter2@" + listener.Addr().String() + "/shop?connect_timeout=3600"} {
		if words, directive := s.completes(ctx, 0, "fetch", from, ""); len(words) != 0 || directive != noFiles {
			t.Errorf("%s: %q, %s", from, words, directive)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("servers that never answer keep a shell waiting, for more than the %v of each", completionTime)
	}
}

// TestCompletionHasScriptForEachShell: bash accepts its script.
func TestCompletionHasScriptForEachShell(t *testing.T) {
	s := newShell(t)
	for _, shell := range shellNames {
		if script := s.ok("completion " + shell); !strings.Contains(script, "__complete") {
			t.Errorf("%s: %.200s", shell, script)
		}
	}
	bash := exec.Command("bash", "-n")
	bash.Stdin = strings.NewReader(s.ok("completion bash"))
	if out, err := bash.CombinedOutput(); err != nil {
		t.Errorf("bash: %v\n%s", err, out)
	}
	if text := s.fails(cli.ExitUsage, "completion tcsh"); !strings.Contains(text, "bash, zsh, fish, powershell") {
		t.Errorf("another shell: %s", text)
	}
}

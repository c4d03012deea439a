package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestTokenTextIsPrintedOnce: the text of a token is alone on stdout, and in no list, error or log.
func TestTokenTextIsPrintedOnce(t *testing.T) {
	s := withFeed(t)
	s.prints("token list", "there are no tokens; `rowfeed token add` makes one\n")
	r := s.run("token", "add", "shop", "--feed", "kv", "--right", "read,publish", "--expires", "90d")
	text := strings.TrimSpace(r.out)
	if r.code != cli.ExitDone || !admin.IsTokenText(text) || r.out != text+"\n" || strings.Contains(r.err, text) ||
		!strings.Contains(r.err, "publish, read of kv") {
		t.Fatalf("%+v", r)
	}
	for _, line := range []string{"token list", "token list --json", "audit list", "audit list --json"} {
		if out := s.ok(line); strings.Contains(out, text) || !strings.Contains(out, "shop") {
			t.Errorf("%s: %s", line, out)
		}
	}
	var made struct{ Name, Token, State string }
	r = s.run("token", "add", "acme", "--feed", "kv", "--right", "read", "--where", `id="1",2`, "--mask", "v", "--json")
	if err := json.Unmarshal([]byte(r.out), &made); err != nil || made.Name != "acme" ||
		!admin.IsTokenText(made.Token) {
		t.Errorf("%v %+v", err, r)
	}
	s.fails(cli.ExitUsage, "token add x --feed kv")
	s.fails(cli.ExitUsage, "token add x --right read")
	s.fails(cli.ExitUsage, "token add x --feed kv --right own")
	s.fails(cli.ExitUsage, "token add x --feed kv --right read --expires 0d")
	s.fails(cli.ExitUsage, "token add x --feed kv --right read --where ns")
	s.fails(cli.ExitFailed, "token add x --feed nothing --right read")
	s.fails(cli.ExitFailed, "token add shop --feed kv --right read")
	s.prints("token revoke shop", "shop: revoked; servers notice it within a few seconds\n")
	s.prints("token revoke shop", "shop: was revoked already, nothing changed\n")
	s.fails(cli.ExitFailed, "token revoke nobody")
	if out := s.ok("token list"); !strings.Contains(out, "revoked") {
		t.Error(out)
	}
}

// TestReachableServerNeedsTokens: a server that other machines can reach requires tokens by default, and does not start
// without any.
func TestReachableServerNeedsTokens(t *testing.T) {
	s := withFeed(t)
	for _, line := range []string{
		"serve --listen 127.0.0.1:0 --auth tokens", "serve --listen :0", "serve --listen 0.0.0.0:0",
		"serve --listen example.com:0",
	} {
		if err := s.fails(cli.ExitFailed, line); !strings.Contains(err, "rowfeed token add") {
			t.Error(line, err)
		}
	}
	if err := s.fails(cli.ExitUsage,
		"serve --listen 127.0.0.1:0 --auth some"); !strings.Contains(err, `"some" is neither tokens nor none`) {
		t.Error(err)
	}
	writeFile(t, "rowfeed.yaml", "auth: tokens\n")
	if err := s.fails(cli.ExitFailed, "serve --listen 127.0.0.1:0"); !strings.Contains(err, "rowfeed token add") {
		t.Error(err)
	}
}

// TestTailTokenComesFromVariableOrFile: a token comes from a variable or a file, never from the command line, which
// other users can read. No message shows it.
func TestTailTokenComesFromVariableOrFile(t *testing.T) {
	s := withFeed(t)
	text := strings.TrimSpace(s.run("token", "add", "shop", "--feed", "kv", "--right", "read").out)
	revoked := strings.TrimSpace(s.run("token", "add", "gone", "--feed", "kv", "--right", "read").out)
	s.ok("token revoke gone")
	ctx, stop := context.WithCancel(t.Context())
	a, errs := quietApp(t)
	address, ended := make(chan string, 1), make(chan error, 1)
	a.OnListen = func(at string) { address <- at }
	go func() { ended <- execute(ctx, a, "serve --auth tokens --listen 127.0.0.1:0") }()
	url := "http://" + <-address
	writeFile(t, "token", text+"\n")
	s.env["FEED_TOKEN"], s.env["REVOKED"] = text, revoked
	for _, where := range []string{"env:FEED_TOKEN", "file:token"} {
		out := newLines(t.Context())
		following, end := context.WithCancel(t.Context())
		b := &cli.App{Stdout: out, Stderr: io.Discard, Getenv: func(name string) string { return s.env[name] }}
		done := make(chan error, 1)
		go func() { done <- execute(following, b, "tail kv --limit 10 --url "+url+" --token "+where) }()
		if line := <-out.c; !strings.Contains(line, "fred") {
			t.Errorf("%s: %s", where, line)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{"tail kv --url " + url, "tail kv --token env:REVOKED --url " + url} {
		if err := s.fails(cli.ExitFailed, line); strings.Contains(err, "rf_") {
			t.Error(err)
		}
	}
	for _, line := range []string{
		"tail kv --token " + text + " --url " + url, "tail kv --token file:rowfeed.db --url " + url,
		"tail kv --token env:NOTHING --url " + url, "tail kv --token env:FEED_TOKEN",
	} {
		if err := s.fails(cli.ExitUsage, line); strings.Contains(err, "rf_") {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil || strings.Contains(errs.String(), "rf_") {
		t.Errorf("%v %s", err, errs)
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestControlCharactersAreEscaped: control characters in names of other users do not reach the terminal.
func TestControlCharactersAreEscaped(t *testing.T) {
	s := withFeed(t)
	evil := "a\x1b]0;owned\a\u009b2J\u202e\x7f\r"
	if r := s.run("token", "add", "shop", "--feed", "kv", "--right", "read", "--where", "id=1", "--mask",
		"v"); r.code != cli.ExitDone {
		t.Fatalf("%+v", r)
	}
	s.sql("UPDATE rowfeed_tokens SET view = '{\"mask\":[\"" + `a\u001b]0;owned\u0007\u009b2J\u202e\u007f\r` + "\"]}'")
	for _, line := range []string{"token list", "feed show " + evil} {
		r := s.run(strings.SplitN(line, " ", 3)...)
		if out := r.out + r.err; strings.ContainsAny(out, "\x1b\a\u009b\u202e\x7f\r") ||
			!strings.Contains(out, `\x1b]0;owned\a`) {
			t.Errorf("%s: %q", line, out)
		}
	}
}

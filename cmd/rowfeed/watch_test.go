package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestWatchPrintsAgain: with --watch `status` and `consumer list` print their state again, as text or as a line of
// JSON. An interrupt ends them without an error.
func TestWatchPrintsAgain(t *testing.T) {
	s := withFeed(t)
	s.consume(0)
	ctx, interrupt := context.WithCancel(t.Context())
	watched := []*struct {
		line, before, after string
		out                 *lines
		ended               chan error
	}{
		{line: "status --watch", before: "kv    active  3 ", after: "kv    active  4 "},
		{line: "status kv --watch -o json", before: `"head":3,`, after: `"head":4,`},
		{line: "consumer list --watch", before: " ok ", after: " behind "},
		{line: "consumer list --watch -o json", before: `"behind":0,`, after: `"behind":1,`},
	}
	for _, w := range watched {
		a, _ := quietApp(t)
		w.out, w.ended = newLines(ctx), make(chan error, 1)
		a.Stdout = w.out
		go func() { w.ended <- execute(ctx, a, w.line) }()
	}
	seen := func(out *lines, want string, ofJSON bool) {
		for {
			line := out.next(t)
			if ofJSON && !json.Valid([]byte(line)) {
				t.Errorf("%s is not a JSON document", line)
			}
			if strings.Contains(line, want) {
				return
			}
		}
	}
	for _, w := range watched {
		seen(w.out, w.before, strings.HasSuffix(w.line, "json"))
	}
	s.ok("republish kv --key 1")
	s.ok("publish --once")
	for _, w := range watched {
		seen(w.out, w.after, strings.HasSuffix(w.line, "json"))
	}
	interrupt()
	for _, w := range watched {
		if err := <-w.ended; err != nil {
			t.Errorf("%s ended with %v", w.line, err)
		}
	}
}

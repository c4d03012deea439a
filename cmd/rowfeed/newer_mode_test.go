package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// TestFeedOfNewerModeIsReported (M63): commands report a feed whose mode a newer rowfeed has added, and work on the
// other feeds.
func TestFeedOfNewerModeIsReported(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)")
	s.ok("init")
	s.ok("feed add kv --table kv")
	s.ok("feed add late --table kv")
	s.sql("INSERT INTO kv VALUES (1, 'a')", "UPDATE rowfeed_feeds SET mode = 'later' WHERE name = 'late'")
	const words = `feed "late": its mode is "later": this rowfeed cannot read its record. Next: use a newer rowfeed`
	if out := s.ok("feed list"); !strings.Contains(out, "later") || !strings.Contains(out, "sequence") {
		t.Errorf("feed list:\n%s", out)
	}
	if out := s.ok("status"); !strings.Contains(out, "late: problem: "+words) {
		t.Errorf("status:\n%s", out)
	}
	if r := s.run("publish", "--once"); r.code != cli.ExitFailed ||
		!strings.Contains(terms.Fix(r.out), "kv: 1 key published, head 1.9k3f2c7adq\n") ||
		!strings.Contains(r.err, words) {
		t.Errorf("publish: %+v", r)
	}
	for _, command := range []string{
		"feed show late", "status late", "fetch late", "check late", "repair late", "feed upgrade late",
		"feed drop late",
	} {
		if r := s.run(strings.Fields(command)...); r.code != cli.ExitFailed || !strings.Contains(r.err, words) {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

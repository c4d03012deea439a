package main

import (
	"strings"
	"testing"
)

// TestFeedAddWarnsOfBrokenStatements: before a trigger is made, feed add says which statements of the table's writers
// it breaks, and what to do.
func TestFeedAddWarnsOfBrokenStatements(t *testing.T) {
	s := &shell{t: t, env: map[string]string{}}
	for line, want := range map[string][]string{
		"feed add kv --table kv --key id:bigint --print --db sqlserver:": {"OUTPUT", "error 334", "HasTrigger",
			"UseSqlOutputClause(false)", "--capture app or --capture column"},
		"feed add kv --table kv --key id:bigint --mode outbox --capture trigger --print --db sqlserver:": {"error 334",
			"With --capture app rowfeed"},
		"feed add kv --table kv --key id:bigint --capture column --print --db sqlserver:": nil,
		"feed add kv --table kv --key id:bigint --print --db postgres:":                   nil,
	} {
		r := s.run(strings.Fields(line)...)
		if r.code != 0 || !strings.Contains(r.out, "rowfeed_feeds") {
			t.Errorf("%s: %d, %s", line, r.code, r.err)
		}
		if want == nil && r.err != "" {
			t.Errorf("%s: %s", line, r.err)
		}
		for _, part := range want {
			if !strings.Contains(r.err, part) {
				t.Errorf("%s: %q lacks %q", line, r.err, part)
			}
		}
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestEveryFlagHasAVariable: a flag overrides its environment variable, and a variable overrides rowfeed.yaml and the
// default.
func TestEveryFlagHasAVariable(t *testing.T) {
	s := withFeed(t)
	s.ok("publish --once")
	s.env["ROWFEED_LIMIT"] = "1"
	one := s.ok("fetch kv")
	if strings.Count(one, `"key"`) != 1 {
		t.Errorf("ROWFEED_LIMIT=1: %s", one)
	}
	if two := s.ok("fetch kv --limit 2"); strings.Count(two, `"key"`) != 2 {
		t.Errorf("--limit 2 with ROWFEED_LIMIT=1: %s", two)
	}
	s.env["ROWFEED_LIMIT"] = "many"
	if text := s.fails(cli.ExitUsage, "fetch kv"); !strings.HasPrefix(text,
		`rowfeed: fetch: ROWFEED_LIMIT: "many" is not a whole number. Next: see `) {
		t.Errorf("ROWFEED_LIMIT=many: %s", text)
	}
	s.env = map[string]string{"ROWFEED_OUTPUT": "json"}
	if text := s.ok("feed list"); !strings.HasPrefix(text, "[") {
		t.Errorf("ROWFEED_OUTPUT=json: %s", text)
	}
	if text := s.ok("feed list --json=false"); !strings.HasPrefix(text, "FEED") {
		t.Errorf("ROWFEED_OUTPUT=json and --json=false: %s", text)
	}
	s.env["ROWFEED_OUTPUT"] = "wide"
	if text := s.ok("feed list --json"); !strings.HasPrefix(text, "[") {
		t.Errorf("--json with ROWFEED_OUTPUT=wide: %s", text)
	}
	s.ok("version") // which has no table
	s.env = map[string]string{"ROWFEED_JSON": "true"}
	if text := s.ok("feed list -o wide"); !strings.HasPrefix(text, "FEED") {
		t.Errorf("-o wide with ROWFEED_JSON: %s", text)
	}
	writeFile(t, "other.yaml", "prefix: other_\n")
	s.env = map[string]string{"ROWFEED_CONFIG": "other.yaml"}
	if text := s.fails(cli.ExitFailed, "feed list"); !strings.Contains(text, "no table other_feeds") {
		t.Errorf("ROWFEED_CONFIG: %s", text)
	}
	s.env["ROWFEED_PREFIX"] = "third_"
	if text := s.fails(cli.ExitFailed, "feed list"); !strings.Contains(text, "no table third_feeds") {
		t.Errorf("ROWFEED_PREFIX and rowfeed.yaml: %s", text)
	}
	s.env = map[string]string{"ROWFEED_DB": " sqlite:rowfeed.db\t"}
	if text := s.ok("feed list"); !strings.Contains(text, "kv") {
		t.Errorf("ROWFEED_DB with blanks: %s", text)
	}
	s.env = map[string]string{"ROWFEED_TOKEN": "hunter22"}
	if text := s.fails(cli.ExitUsage, "tail kv --url http://127.0.0.1:1"); strings.Contains(text, "hunter") ||
		!strings.Contains(text, "does not contain a token") {
		t.Errorf("ROWFEED_TOKEN: %s", text)
	}
	s.env = map[string]string{"ROWFEED_ALL": "true", "ROWFEED_KEY": "[1]", "ROWFEED_YES": "true"}
	if text := s.fails(cli.ExitUsage, "republish kv"); !strings.Contains(text, "which rows?") {
		t.Errorf("ROWFEED_ALL and ROWFEED_KEY: %s", text)
	}
}

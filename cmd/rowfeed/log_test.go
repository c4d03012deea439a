package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestLogFormatAndLevelAreSettings: format and level of the log come from flags, else from rowfeed.yaml.
func TestLogFormatAndLevelAreSettings(t *testing.T) {
	s := withFeed(t)
	change := func() { s.sql("UPDATE kv SET v = v || 'x'") }
	change()
	r := s.run("publish", "--once", "--log-format", "json", "--log-level", "debug")
	var line struct {
		Time             time.Time
		Level, Msg, Feed string
		Keys             int
		Took             float64 // seconds
	}
	found := false
	for text := range strings.Lines(r.err) {
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		found = found || line.Msg == "published" && line.Level == "DEBUG" && line.Feed == "kv" && line.Keys == 3 &&
			line.Took > 0 && line.Took < 60 && !line.Time.IsZero()
	}
	if r.code != cli.ExitDone || !found {
		t.Errorf("%+v", r)
	}
	change()
	if text := s.run("publish", "--once", "-v").err; !strings.Contains(text, "level=DEBUG msg=published feed=kv ") {
		t.Errorf("in text: %s", text)
	}
	change()
	writeFile(t, "rowfeed.yaml", "log_format: json\nlog_level: debug\n")
	if text := s.run("publish", "--once").err; !strings.Contains(text, `"msg":"published"`) {
		t.Errorf("by rowfeed.yaml: %s", text)
	}
	change()
	if text := s.run("publish", "--once", "--log-level", "error").err; text != "" {
		t.Errorf("errors only: %s", text)
	}
	for _, line := range []string{"publish --once --log-format xml", "publish --once --log-level loud"} {
		if text := s.fails(cli.ExitUsage, line); !strings.Contains(text, "is not one of: ") {
			t.Errorf("%s: %s", line, text)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The log's form and the least that is logged come from flags, else from rowfeed.yaml.
func TestLogFormat(t *testing.T) {
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
	if r.code != exitDone || !found {
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
		if text := s.fails(exitUsage, line); !strings.Contains(text, "is none of ") {
			t.Errorf("%s: %s", line, text)
		}
	}
}

// Whoever logs what: a password that rowfeed knows is not in it.
func TestLogHasNoPassword(t *testing.T) {
	for _, format := range logFormats {
		var out bytes.Buffer
		a := &app{url: "postgres://app:hunter2secret@db/shop",
			hidden: []string{"https://hook:opensesame77@example.com/x"}}
		log := a.logTo(&out, format, slog.LevelDebug).With("address", a.url)
		log.Error("hunter2secret", "error", errors.New("dial postgres://app:hunter2secret@db/shop"), "path",
			"opensesame77")
		if text := out.String(); strings.Contains(text, "hunter2secret") || strings.Contains(text, "opensesame77") ||
			!strings.Contains(text, "dial postgres://app") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// Whoever logs what: a password that rowfeed knows is not in it.
func TestLogHasNoPassword(t *testing.T) {
	for _, format := range logFormats {
		var out bytes.Buffer
		a := &App{URL: "postgres://app:hunter2secret@db/shop",
			SecretURLs: []string{"https://hook:opensesame77@example.com/x"}}
		log := a.logTo(&out, format, slog.LevelDebug).With("address", a.URL)
		log.Error("hunter2secret", "error", errors.New("dial postgres://app:hunter2secret@db/shop"), "path",
			"opensesame77")
		if text := out.String(); strings.Contains(text, "hunter2secret") || strings.Contains(text, "opensesame77") ||
			!strings.Contains(text, "dial postgres://app") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestUnreachableReceiverIsNamed: if a receiver cannot be reached, the relay says within seconds why, and what to do.
func TestUnreachableReceiverIsNamed(t *testing.T) {
	s := withFeed(t)
	started := time.Now()
	for to, want := range map[string]string{
		"nats://127.0.0.1:1/x":                   "nats: server is disconnected. Next: check that the receiver runs",
		"kafka://127.0.0.1:1/x":                  "connection refused. Next: check that the receiver runs",
		"https://127.0.0.1:1/ --allow-private":   "connection refused. Next: check that the receiver runs",
		"https://127.0.0.1:1/ --consumer public": "not public. Next: if it is meant, allow private targets",
	} {
		if got := s.fails(cli.ExitFailed, "relay kv --once --to "+to); !strings.Contains(got, want) {
			t.Errorf("%s: %s", to, got)
		}
	}
	if took := time.Since(started); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
}

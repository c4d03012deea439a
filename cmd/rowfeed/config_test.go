package main

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/pflag"
)

// TestConfigCheckFindsWhatCommandsRefuse: `config check` reports the same errors as the commands that read the file,
// and `config schema` prints the schema that they use.
func TestConfigCheckFindsWhatCommandsRefuse(t *testing.T) {
	s := newShell(t)
	if text := s.fails(cli.ExitFailed, "config check"); !strings.Contains(text, "there is no such file") {
		t.Errorf("without a file: %s", text)
	}
	writeFile(t, "rowfeed.yaml", "listen: 127.0.0.1:0\n")
	s.prints("config check", "rowfeed.yaml: in order\n")
	writeFile(t, "bad.yaml", "relays:\n  - feed: kv\n    to: env:HOOK\n    limit: 0\n")
	for _, line := range []string{
		"config check bad.yaml", "config check --config bad.yaml", "serve --listen 127.0.0.1:0 --config bad.yaml",
	} {
		if text := s.fails(cli.ExitFailed, line); !strings.Contains(text,
			"bad.yaml:4: relays[0].limit: 0 is not a whole number between 1 and 10000. Next: ") {
			t.Errorf("%s: %s", line, text)
		}
	}
	writeFile(t, "bad.yaml", "lisen: 127.0.0.1:0\nlog_level: loud\n")
	if text := s.fails(cli.ExitFailed, "config check bad.yaml"); !strings.HasPrefix(text,
		"rowfeed: config bad.yaml:1: there is no key \"lisen\". Next: write \"listen\"") ||
		!strings.Contains(text, "\nrowfeed: config bad.yaml:2: log_level: the value is not debug, ") {
		t.Errorf("two mistakes: %s", text)
	}
	s.prints("config schema", string(config.Schema))
	if text := s.ok("config reference"); !strings.Contains(text, "| `relays[].shard_count` |") {
		t.Errorf("reference: %s", text)
	}
}

// TestRelayKeysAreFlags: each key of a relay in rowfeed.yaml is also a flag of `rowfeed relay`.
func TestRelayKeysAreFlags(t *testing.T) {
	reference, err := config.Reference()
	if err != nil {
		t.Fatal(err)
	}
	// These flags exist only on the command line.
	only := map[string]bool{"metrics": true, "once": true, "url": true, "help": true, "shard": true}
	relay, _, err := newRoot(&cli.App{}).Find([]string{"relay"})
	if err != nil {
		t.Fatal(err)
	}
	relay.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		key := "`relays[]." + strings.ReplaceAll(f.Name, "-", "_") + "`"
		if strings.Contains(reference, key) == only[f.Name] {
			t.Errorf("--%s: the reference has the key %s: %v", f.Name, key, !only[f.Name])
		}
	})
}

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestConfigurationFileIsLoaded(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := Load("")
	if err != nil || f.DB != nil {
		t.Fatalf("without a file: %+v, %v", f, err)
	}
	write(t, FileName, "db: postgres://me@localhost/shop # the shop\nprefix: ''\nlisten: 127.0.0.1:9000\n")
	f, err = Load("")
	if err != nil {
		t.Fatal(err)
	}
	if *f.DB != "postgres://me@localhost/shop" || *f.Prefix != "" || f.Schema != nil || *f.Listen != "127.0.0.1:9000" {
		t.Errorf("loaded %q, %q, %v, %q", *f.DB, *f.Prefix, f.Schema, *f.Listen)
	}
	write(t, FileName, "relays:\n  - feed: kv\n    to: env:HOOK\n    secret: [env:A, file:b]\n    set_aside: "+
		"true\n    rate: 2.5\n  - {feed: kv, to: 'stdout:', consumer: lines, after: now, limit: 7, lease: 1m30s}\n")
	if f, err = Load(""); err != nil {
		t.Fatal(err)
	}
	want := []Relay{{Feed: "kv", To: "env:HOOK", Secret: []string{"env:A", "file:b"}, SetAside: true, Rate: 2.5},
		{Feed: "kv", To: "stdout:", Consumer: "lines", After: "now", Limit: 7, Lease: 90 * time.Second}}
	if f.Path != FileName || !reflect.DeepEqual(f.Relays, want) {
		t.Errorf("relays: %+v", f.Relays)
	}
	for _, empty := range []string{"", "\n", "# nothing\n", "---\n", "---\n# nothing\n", "---\n{}\n...\n"} {
		write(t, FileName, empty)
		if f, err = Load(""); err != nil || f.DB != nil {
			t.Errorf("file %q: %+v, %v", empty, f, err)
		}
	}
}

// TestMessagesNameLineCauseAndNextStep: messages name line, cause and next step, and show no value that may be secret.
func TestMessagesNameLineCauseAndNextStep(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"db: postgres://u:hunter22@h/d\ncolour: red\n": `:2: there is no key "colour". Next: the keys are db, prefix, `,
		"db: postgres://u:hunter22@h/d\nLisen: red\n": `:2: there is no key "Lisen". ` +
			`Next: write "listen" if you mean that key; ` + seeReference,
		"db: postgres://u:hunter22@h/d\ndb: sqlite:hunter22\n": `:2: the key "db" is given more than once. ` +
			`Next: give each key once`,
		"db:\n  - hunter22\n": ":2: db: the value is not text. Next: give text, or see `rowfeed config reference`",
		"db: [hunter22\n": ": it is not valid YAML. Next: write it as lines of the form `key: value`; " +
			seeReference,
		"just hunter22\n":  ":1: the value is not a list of keys and values. Next: give a list of keys and values",
		"\tdb: hunter22\n": ": it is not valid YAML. Next: ",
		"db: sqlite:a.db\n---\ndb: hunter22\n": ": it has more than one YAML document. " +
			"Next: remove the lines ---, and write all keys in one document",
	} {
		write(t, FileName, text)
		_, err := Load("")
		if err == nil {
			t.Errorf("%q was loaded", text)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "config rowfeed.yaml") {
			t.Errorf("%q\n got: %v\nwant: %s", text, err, want)
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("a password is shown: %v", err)
		}
	}
	if _, err := Load("absent.yaml"); err == nil ||
		!strings.Contains(err.Error(), "absent.yaml: there is no such file. Next: check the path given with --config") {
		t.Errorf("an absent file: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "it is a directory. Next: ") {
		t.Errorf("a directory: %v", err)
	}
}

// TestAllMistakesAreNamed: one error names every mistake of a file, in the order of their lines.
func TestAllMistakesAreNamed(t *testing.T) {
	_, err := Parse("r.yaml", []byte(`db: sqlite:a.db
db: sqlite:b.db
log_level: loud
relays:
  - feed: kv
    too: https://example.com/
    limit: 0
    secret: [env:A, '']
  - feed: kv
    to: stdout
    lease: soon
max_waiting: many
`))
	want := `config r.yaml:2: the key "db" is given more than once.
config r.yaml:3: log_level: the value is not debug, info, warn or error.
config r.yaml:5: relays[0]: the key to is missing.
config r.yaml:6: relays[0]: there is no key "too". Next: write "to" if
config r.yaml:7: relays[0].limit: 0 is not a whole number between 1 and 10000.
config r.yaml:8: relays[0].secret[1]: the value is not text.
config r.yaml:11: relays[1].lease: the value is not a time as 10s or 1m30s.
config r.yaml:12: max_waiting: the value is not a whole number`
	got := strings.Split(fmt.Sprint(err), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(got) || !strings.HasPrefix(got[i], line) {
			t.Errorf("line %d does not begin with %q", i+1, line)
		}
	}
	if t.Failed() || len(got) != 8 {
		t.Errorf("%v", err)
	}
}

// TestBadShardCountIsRefused: a relay's shard count must be valid before a server starts.
func TestBadShardCountIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, value := range []string{"-1", "0", "1.5", "65537", "99999999999"} {
		write(t, FileName, "relays:\n  - feed: kv\n    to: https://example.com/hunter22\n    shard_count: "+
			"4\n  - feed: kv\n    to: https://example.com/hunter22\n    shard_count: "+value+"\n")
		_, err := Load("")
		want := "config rowfeed.yaml:7: relays[1].shard_count: " + value +
			" is not a whole number between 1 and 65536. Next: give a whole number between"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got: %v\nwant: %s", value, err, want)
		}
	}
	for value, want := range map[string]int{"1": 1, "65536": 65536, "2.0": 2, "": 0} {
		write(t, FileName, "relays:\n  - feed: kv\n    to: stdout\n    shard_count: "+value+"\n")
		if f, err := Load(""); err != nil || f.Relays[0].ShardCount != want {
			t.Errorf("%q: %+v, %v", value, f, err)
		}
	}
}

func TestFirstSettingThatIsGivenWins(t *testing.T) {
	a, empty := "a", ""
	if got := First("d", nil, &empty, &a); got != "" {
		t.Errorf("an empty value that is given is %q", got)
	}
	if got := First("d", nil, nil); got != "d" {
		t.Errorf("the default is %q", got)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

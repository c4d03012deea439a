package sinks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestURLsOpenTheirSinks opens the sinks that need no server. Other URLs are refused without showing a password.
func TestURLsOpenTheirSinks(t *testing.T) {
	folder := t.TempDir()
	for _, to := range []string{"stdout:", "stdout", "https://me:hunter2@example.com/hook?token=x",
		"kafka://me:hunter2@a:9092,b:9092/topic?tls=true&mechanism=scram-sha-512",
		"nats://me:hunter2@127.0.0.1:1/a.b"} {
		s, err := Open(t.Context(), Options{To: to, Stdout: &bytes.Buffer{}})
		if err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", to, err)
		}
	}
	for _, to := range []string{"", "stdout:x", "ftp://hunter2/x", "http://", "nats://hunter2", "nats://h/a b",
		"nats://h/a?colour=hunter2", "nats://h/a?tls=hunter2", "kafka://h:9092",
		"kafka://h:9092/t?mechanism=hunter2x&user=1", "kafka://u:hunter2%@h/t", "sqlite:" + folder + "/x.db",
		"postgres://u:hunter2@127.0.0.1:1/d", "hunter2"} {
		_, err := Open(t.Context(), Options{To: to})
		if !errors.Is(err, rowfeed.InvalidRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", to, err)
		}
	}
	_, err := Open(t.Context(), Options{To: "postgres://u:hunter2@127.0.0.1:1/d?table=kv"})
	if !errors.Is(err, rowfeed.Unavailable) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an absent server: %v", err)
	}
}

// TestOneDefaultNamePerReceiver: all URLs of a receiver have the same name.
func TestOneDefaultNamePerReceiver(t *testing.T) {
	names := map[string]string{}
	for _, to := range []string{
		"stdout:", "https://example.com/a", "https://example.com/b", "nats://h:4222/a", "postgres://h/d?table=a",
		"postgres://h/d?table=b", "sqlite:x.db?table=a",
	} {
		name := DefaultName(to)
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s are both %s", to, other, name)
		}
		names[name] = to
	}
	for a, b := range map[string]string{
		"https://me:old@example.com/a?x=1":                    "https://me:new@example.com/a",
		"postgres://u:old@h/d?table=a&application_name=other": "postgres://h/d?table=a",
		"stdout": "stdout:",
	} {
		if DefaultName(a) != DefaultName(b) {
			t.Errorf("%s is %s, %s is %s", a, DefaultName(a), b, DefaultName(b))
		}
	}
}

func TestSettingsComeFromVariablesAndFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"URL": "from outside"}[name] }
	for text, want := range map[string]string{
		"as it stands": "as it stands", "env:URL": "from outside", "file:" + file: "from a file",
	} {
		if got, err := Resolve("to", text, env); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"env:NONE", "file:" + file + ".absent"} {
		if _, err := Resolve("to", text, env); !errors.Is(err, rowfeed.InvalidRequest) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMirrorURLIsSplitIntoDatabaseAndTable(t *testing.T) {
	for to, want := range map[string][2]string{
		"sqlite:x.db?table=a":                      {"sqlite:x.db", "a"},
		"postgres://h/d?sslmode=disable&table=s.a": {"postgres://h/d?sslmode=disable", "s.a"},
		"mysql://h/d?table=a%26b&x=1":              {"mysql://h/d?x=1", "a&b"},
		"mysql://h/d":                              {"mysql://h/d", ""},
	} {
		if rest, table := MirrorOf(to); rest != want[0] || table != want[1] {
			t.Errorf("%s: %q, %q", to, rest, table)
		}
	}
}

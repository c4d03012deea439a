package sinks

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
)

// FuzzURL: every URL of a receiver has a name, and errors show no password.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"", "stdout:", "https://u:hunter22@example.com/hook",
		"nats://h/subject?creds=x&tls=true", "kafka://u:hunter22@a:9092,b:9092/topic?mechanism=scram-sha-256",
		"postgres://h/d?table=t", "sqlite:x.db?table=%zz", "http://[::1", "kafka://?tls=perhaps", "https://127.0.0.1/",
		"http://2130706433/", "http://0x7f.1/", "https://user@@host/", "HTTPS://EXAMPLE.COM"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, to string) {
		const mark = "xyzzyplugh"
		name := DefaultName(to)
		if name == "" {
			t.Errorf("%q has no name", to)
		}
		database, _ := MirrorOf(to)
		if again, table := MirrorOf(database); again != database || table != "" {
			t.Errorf("%q: %q, then %q of table %q", to, database, again, table)
		}
		if _, err := webhook.New(webhook.Config{URL: to}); err != nil && !errors.Is(err, rowfeed.InvalidRequest) {
			t.Errorf("%q: %v", to, err)
		}
		for _, scheme := range []string{"https://", "nats://", "kafka://"} {
			if _, _, err := parse(scheme+"u:"+mark+strings.ReplaceAll(to, "@", "")+"@host", "tls"); err != nil &&
				strings.Contains(err.Error(), mark) {
				t.Errorf("%q: %v", to, err)
			}
		}
	})
}

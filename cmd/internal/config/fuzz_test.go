package config

import (
	"errors"
	"testing"
)

// FuzzConfig: every file is read, or refused with an error.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{"", "db: sqlite:x.db\n",
		"relays:\n  - feed: kv\n    to: env:HOOK\n    shard_count: 4\n    lease: 10s\n", "relays: [{shard_count: 1.5}]",
		"a: &a [*a]", "? x", "\t", "db: !!binary x", "relays: &r\n - &x {feed: a}\n - *x\n", "<<: {db: x}",
		"rate: .nan", "max_waiting: 99999999999999999999", "tls_cert: [a]", "%YAML 9.9\n---\ndb: x\n---\ndb: y",
		"\xff\xfe", "{{{{", "relays: !000 00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(FileName, data)
		var known *Error
		if err != nil && (!errors.As(err, &known) || known.Cause == "" || known.Next == "") {
			t.Errorf("%q: %v", data, err)
		}
		if err == nil && file == nil {
			t.Errorf("%q is nothing", data)
		}
	})
}

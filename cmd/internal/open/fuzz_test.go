package open

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// FuzzURL: every URL of a database is understood, or refused with a code.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"", "sqlite:absent.db", "sqlite://?", "sqlite:a%00b",
		"postgres://u:p@h:5432/d?sslmode=disable", "postgres://u:p@h/d?connect_timeout=x", "mysql://u@h/d?timeout=1s",
		"mysql://u@h/d?socket=/x", "mariadb://[::1]:3306/d", "postgresql://h/d?host=a,b&port=1,2", "postgres://%zz",
		"mysql://u:p@tcp(h)/d", "sqlserver://h", "sqlite:" + strings.Repeat("../", 50) + "etc/passwd?mode=ro",
		"postgres://h/d?service=x", "postgres://h/d?passfile=/etc/shadow"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rawURL string) {
		t.Chdir(t.TempDir())
		_, err := parse(rawURL, Options{MustExist: true})
		var known *rowfeed.Error
		if err != nil && (!errors.As(err, &known) || known.Next == "") {
			t.Errorf("%q: %v", rawURL, err)
		}
		_ = Redact(rawURL)
		_, _ = Dialect(rawURL)
	})
}

// FuzzPassword: no message shows a database's password, whatever characters it has.
func FuzzPassword(f *testing.F) {
	for _, seed := range []string{
		"hunter22", "p@ss:w/rd?", "%40%zz", "a b c d e f", "#fragment", "\n\x00pass", "pass\\word",
		"'; DROP TABLE kv; --", "://@://@", "A@00?00000",
	} {
		f.Add(seed, "")
		f.Add(seed, "?sslmode=perhaps")
		f.Add(seed, "?timeout=soon")
	}
	f.Fuzz(func(t *testing.T, password, query string) {
		// No message contains this mark, so it identifies the password.
		const mark = "xyzzyplugh"
		if strings.ContainsAny(query, "@") || strings.Contains(query, mark) {
			return // the password would not be in its usual part
		}
		for _, scheme := range []string{"postgres", "mysql", "oracle", "sqlserver"} {
			rawURL := scheme + "://u:" + mark + password + mark + "@h/d" + query
			_, err := parse(rawURL, Options{MustExist: true})
			if err != nil && strings.Contains(err.Error(), mark) {
				t.Errorf("%q: %v", rawURL, err)
			}
			if text := Redact(rawURL); strings.Contains(text, mark) {
				t.Errorf("%q: %q", rawURL, text)
			}
			if text := ScrubText(rawURL, "cannot use "+rawURL+" there"); strings.Contains(text, mark) {
				t.Errorf("%q: %q", rawURL, text)
			}
		}
	})
}

package terms

import "testing"

// TestFixReplacesRandomTermsInTexts: terms are replaced wherever a cursor ends in one, stamps are left out, and nothing
// else is.
func TestFixReplacesRandomTermsInTexts(t *testing.T) {
	for text, want := range map[string]string{
		`"cursor":"3.7vvvvvvvvv"`:             `"cursor":"3.9k3f2c7adq"`,
		"head 1@3.1gcqeohq6b, then":           "head 1@3.9k3f2c7adq, then",
		"1785000000:2~60.23o0pcqd7a":          "1785000000:2~60.9k3f2c7adq",
		"id: 1@42~60.64sad6rst6\n":            "id: 1@42~60.9k3f2c7adq\n",
		`"term": "64sad6rst6"`:                `"term": "9k3f2c7adq"`,
		"kv: term 7vvvvvvvvv since":           "kv: term 9k3f2c7adq since",
		`"base64":[],"stamps":[17,18]}`:       `"base64":[]}`,
		"kv:1.1j17trg2eho:-7:4@~5.64sad6rst6": "kv:1:-7:4@~5.9k3f2c7adq",
		"kv:1.64sad6rst6:0:4@.64sad6rst6":     "kv:1:0:4@.9k3f2c7adq",
		"127.0.0.1:8080 1.5s 12.345s 1:2~":    "127.0.0.1:8080 1.5s 12.345s 1:2~",
	} {
		if got := Fix(text); got != want {
			t.Errorf("%s becomes %s, not %s", text, got, want)
		}
	}
}

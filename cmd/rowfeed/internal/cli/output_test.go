package cli

import "testing"

// TestEscaped: control characters and marks of direction are written out, and all other text stays.
func TestEscaped(t *testing.T) {
	got := escape("Zoë\n\t日本 a\x1b]0;owned\a\u009b2J\u202e\x7f\r")
	if want := "Zoë\n\t日本 " + `a\x1b]0;owned\a\u009b2J\u202e\x7f\r`; got != want {
		t.Errorf("%q", got)
	}
}

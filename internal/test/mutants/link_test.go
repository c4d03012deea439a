package main

import (
	"strings"
	"testing"
)

// TestSameLines: an edit moves no line that stands behind it, and leaves texts of statements as
// they are written.
func TestSameLines(t *testing.T) {
	for _, c := range []struct{ before, old, replacement, want string }{
		{"", "a\nb\nc\n", "a\n", "a\n\n\n"},
		{"", "a\nb\nc", "a", "a\n\n"},
		{"", "a\nb\nc", "x\nc", "x\n\nc"},
		{"", "a", "b\nc", "b\nc"},
		{"", "a\n", "", "\n"},
		{"x := `SELECT ", "a\nb", "a", "a"},
		{"x := `SELECT 1`; ", "a\nb", "a", "a\n"},
	} {
		got := sameLines(c.before, c.old, c.replacement)
		if got != c.want {
			t.Errorf("%q becomes %q, not %q", c.old, got, c.want)
		}
		if n := strings.Count(c.old, "\n"); !strings.Contains(c.before, "SELECT ") && strings.Count(got, "\n") < n {
			t.Errorf("%q moves lines", got)
		}
	}
}

package main

import "testing"

// TestEditMovesNoLaterLine checks that an edit moves no later line, and leaves the text of statements unchanged.
func TestEditMovesNoLaterLine(t *testing.T) {
	for _, c := range []struct{ before, old, replacement, want string }{
		{"", "a\nb\nc\n", "a\n", "a\n\n\n"},
		{"", "a\nb\nc\n", "x\nc\n", "x\nc\n\n"},
		{"", "a\n", "b\nc\n", "b\nc\n"},
		{"", "a\n", "", "\n"},
		{"x := `SELECT\n", "a\nb\n", "a\n", "a\n"},
		{"", "x := `SELECT\na\nb\n", "x := `SELECT\na\n", "x := `SELECT\na\n"},
		{"x := `SELECT 1`\n", "a\nb\n", "a\n", "a\n\n"},
	} {
		if got := sameLines(c.before, c.old, c.replacement); got != c.want {
			t.Errorf("%q becomes %q, not %q", c.old, got, c.want)
		}
	}
}

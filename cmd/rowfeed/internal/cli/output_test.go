package cli

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// TestTablesFitInto80Columns: a table has 80 characters in a line at most, unless names are long: they are not cut. It
// has all columns and whole texts with -o wide, and colours only if they are asked for.
func TestTablesFitInto80Columns(t *testing.T) {
	long := strings.Repeat("a long error ", 20)
	header := table.Row{"feed", Wide("table"), "state", Text("error"), Wrapped("problem")}
	rows := []table.Row{{"kv", "shop.kv", "failing", long, "it cannot be read at this time of the day"},
		{"ev", "ev", "", "", ""}}
	want := `
FEED  STATE    ERROR                            PROBLEM
kv    failing  a long error a long error a lo…  it cannot be read at this time
                                                of the day
ev    -        -                                -`[1:]
	if got := (appearance{wrap: true}).render(header, rows); got != want {
		t.Errorf("\n%s", got)
	}
	got := (appearance{wide: true, wrap: true}).render(header, rows)
	if !strings.Contains(got, "shop.kv") ||
		!strings.Contains(got, strings.TrimSpace(long)) || strings.Count(got, "\n") != 2 {
		t.Errorf("wide:\n%s", got)
	}
	name := strings.Repeat("n", 100)
	got = (appearance{}).render(table.Row{"consumer", "state", Text("error")}, []table.Row{{name, "failing", long}})
	if !strings.Contains(got, name+"  failing  a long error a long…") {
		t.Errorf("with a long name:\n%s", got)
	}
	text.EnableColors()
	got = (appearance{colours: true}).render(header, rows)
	if !strings.Contains(got, "\x1b[31mfailing\x1b[0m  a long") {
		t.Errorf("in colours: %q", got)
	}
}

// TestEscapeWritesControlCharactersOut: control characters and marks of direction are written out, and all other text
// stays.
func TestEscapeWritesControlCharactersOut(t *testing.T) {
	got := escape("Zoë\n\t日本 a\x1b]0;owned\a\u009b2J\u202e\x7f\r")
	if want := "Zoë\n\t日本 " + `a\x1b]0;owned\a\u009b2J\u202e\x7f\r`; got != want {
		t.Errorf("%q", got)
	}
}

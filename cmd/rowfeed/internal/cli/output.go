package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// PrintLine prints a line to stdout.
func (a *App) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintln(a.Stdout, escape(fmt.Sprintf(format, args...)))
	return err
}

// escape replaces control characters and marks of text direction by escape sequences of Go. Names, keys and statements
// come from other people, and could make a terminal run a command or hide text. Line feeds and tabs stay.
func escape(text string) string {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// PrintJSON prints a value as indented JSON, with --watch as a line.
func (a *App) PrintJSON(v any) error {
	e := json.NewEncoder(a.Stdout)
	e.SetEscapeHTML(false)
	if !a.watch {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Plural returns a count with its noun: "1 key", "2 keys".
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ShardsShown is how many shards without a holder a text lists. JSON lists more.
const ShardsShown = 20

// Package terms makes texts with cursors of sequence feeds comparable.
package terms

import "regexp"

// Fixed is the term that Fix puts in the place of every term.
const Fixed = "9k3f2c7adq"

var (
	// term is a term at the end of a cursor or an event's id, or behind the word "term".
	term = regexp.MustCompile(`\b(\d+(?:@\d*)?(?:~\d+)?\.|term(?: |": ?"| <code>))[0-9a-v]{10}(\b|_)`)
	// stamps are those of a page's entries: times, and terms.
	stamps = regexp.MustCompile(`,\s*"stamps":\s*\[[0-9,\s]*\]`)
	// stamp is the stamp in an idempotency key.
	stamp = regexp.MustCompile(`(:\d+)\.[0-9a-v]{10,11}(:-?\d+:)`)
)

// Fix replaces the terms in a text, which are random, by Fixed, and leaves out the stamps of entries.
func Fix(text string) string {
	text = stamp.ReplaceAllString(stamps.ReplaceAllString(text, ""), "${1}${2}")
	return term.ReplaceAllString(text, "${1}"+Fixed+"${2}")
}

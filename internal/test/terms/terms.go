// Package terms makes texts with cursors of sequence feeds comparable.
package terms

import "regexp"

// Fixed is the term that Fix puts in the place of every term.
const Fixed = "9k3f2c7adq"

// term is a term at the end of a cursor, or behind the word "term". It has fewer than 7 characters once in 2^18 times.
var term = regexp.MustCompile(`\b(\d+(?:@\d+)?(?:~\d+)?\.|term(?: |": ?"| <code>))[0-9a-v]{7,10}\b`)

// Fix replaces the terms in a text, which are random, by Fixed.
func Fix(text string) string { return term.ReplaceAllString(text, "${1}"+Fixed) }

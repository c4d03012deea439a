package rowfeed

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// Cursor is what a consumer stores and sends back as After:
// [generation:]position[@start mark], URL-safe as it stands. It is opaque to
// consumers: only the feed that gave it may read it. Generation 1 is left out, the
// start mark is dropped once the position has reached it. "" and "0" are the
// beginning.
//
// Two more forms are requests rather than cursors: "now" is the head at the time of
// the fetch, and "at:" with an RFC 3339 time stands just below the lowest position
// published at or after that time. Both are answered by a cursor.
type Cursor string

const (
	// Beginning is the cursor below every position.
	Beginning Cursor = ""
	// Now asks for the head at the time of the fetch.
	Now Cursor = "now"
)

// At asks for the entries published at or after t.
func At(t time.Time) Cursor { return Cursor("at:" + t.UTC().Format(time.RFC3339Nano)) }

// Generation is the feed's generation that the cursor is of; 0 for the beginning, for
// the requests "now" and "at:", and for what is no cursor.
func (c Cursor) Generation() int64 {
	if p, err := c.parse(); err == nil && !p.start {
		return p.generation
	}
	return 0
}

// check answers an error for what can be no After of a request.
func (c Cursor) check() error {
	if c == Now {
		return nil
	}
	if _, ok, err := c.parseAt(); ok {
		return err
	}
	_, err := c.parse()
	return err
}

// place is a cursor taken apart. The start mark is the head at which a consumer
// began at the beginning: it has never seen a row whose tombstone stands at or
// below it. Zero means none.
type place struct {
	generation int64
	position   dialect.Position
	mark       dialect.Position
	// start says that the consumer begins here and has seen nothing: it is not to be
	// told of rows that are gone. A place found by its time is no start, also where it
	// is below every position.
	start bool
}

// seen is the position up to which the consumer knows of every delete.
func (p place) seen() dialect.Position { return p.position.Max(p.mark) }

// cursor writes the place down; a feed without any entry has only the beginning.
func (p place) cursor() Cursor {
	if p.seen().IsZero() {
		return Beginning
	}
	s := p.position.String()
	if p.generation != 1 {
		s = strconv.FormatInt(p.generation, 10) + ":" + s
	}
	if p.mark.Above(p.position) {
		s += "@" + p.mark.String()
	}
	return Cursor(s)
}

// parse reads a cursor that stands for a place, not the forms "now" and "at:".
func (c Cursor) parse() (place, error) {
	if c == Beginning {
		return place{start: true}, nil
	}
	bad := func(what string) (place, error) {
		return place{}, &Error{Code: InvalidRequest, Param: "after",
			Cause: fmt.Sprintf("after: %q is no cursor: %s", string(c), what),
			Next:  `send back a cursor as it was given, or "" (the beginning), "now", or "at:" with an RFC 3339 time`}
	}
	rest := string(c)
	p := place{generation: 1}
	var err error
	if generation, after, ok := strings.Cut(rest, ":"); ok {
		if p.generation, err = parseDecimal(generation); err != nil || p.generation < 1 {
			return bad("the generation before ':' is no positive number")
		}
		rest = after
	}
	if position, mark, ok := strings.Cut(rest, "@"); ok {
		if p.mark, err = dialect.ParsePosition(mark); err != nil {
			return bad("the start mark after '@' is no position")
		}
		rest = position
	}
	if p.position, err = dialect.ParsePosition(rest); err != nil {
		return bad("the position is neither a number between 0 and 9223372036854775807 nor a ULID")
	}
	if !p.mark.IsZero() && p.position.Above(p.mark) {
		return bad("the start mark is below the position")
	}
	if !p.position.IsZero() && !p.mark.IsZero() && p.position.IsULID() != p.mark.IsULID() {
		return bad("position and start mark are of different feeds")
	}
	p.start = p.seen().IsZero()
	return p, nil
}

// parseDecimal reads digits only: no sign, no space, no leading '+'.
func parseDecimal(s string) (int64, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseInt(s, 10, 64)
}

// parseAt reads the form "at:"; ok is false for every other form.
func (c Cursor) parseAt() (t time.Time, ok bool, err error) {
	text, ok := strings.CutPrefix(string(c), "at:")
	if !ok {
		return time.Time{}, false, nil
	}
	// A '+' in a query string arrives as a space; no RFC 3339 time has one there.
	t, err = time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "+", 1))
	if err != nil {
		return t, true, &Error{Code: InvalidRequest, Param: "after",
			Cause: fmt.Sprintf("after: %q is no RFC 3339 time", text), Next: "write it like at:2026-01-31T12:00:00Z"}
	}
	return t, true, nil
}

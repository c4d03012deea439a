package feedtype

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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
	if p, err := c.State(); err == nil && !p.Start {
		return p.Generation
	}
	return 0
}

// Check answers an error for what can be no After of a request.
func (c Cursor) Check() error {
	if c == Now {
		return nil
	}
	if _, ok, err := c.Time(); ok {
		return err
	}
	_, err := c.State()
	return err
}

// place is a cursor taken apart. The start mark is the head at which a consumer
// began at the beginning: it has never seen a row whose tombstone stands at or
// below it. Zero means none.
type CursorState struct {
	Generation int64
	Position   Position
	Mark       Position
	// Start says that the consumer begins here and has seen nothing: it is not to be
	// told of rows that are gone. A place found by its time is no start, also where it
	// is below every position.
	Start bool
}

// Seen is the position up to which the consumer knows of every delete.
func (p CursorState) Seen() Position { return p.Position.Max(p.Mark) }

// Cursor writes the place down; a feed without any entry has only the beginning.
func (p CursorState) Cursor() Cursor {
	if p.Seen().IsZero() {
		return Beginning
	}
	s := p.Position.String()
	if p.Generation != 1 {
		s = strconv.FormatInt(p.Generation, 10) + ":" + s
	}
	if p.Mark.Above(p.Position) {
		s += "@" + p.Mark.String()
	}
	return Cursor(s)
}

// parse reads a cursor that stands for a place, not the forms "now" and "at:".
func (c Cursor) State() (CursorState, error) {
	if c == Beginning {
		return CursorState{Start: true}, nil
	}
	bad := func(what string) (CursorState, error) {
		return CursorState{}, &Error{Code: InvalidRequest, Param: "after",
			Cause: fmt.Sprintf("after: %q is no cursor: %s", string(c), what),
			Next:  `send back a cursor as it was given, or "" (the beginning), "now", or "at:" with an RFC 3339 time`}
	}
	rest := string(c)
	p := CursorState{Generation: 1}
	var err error
	if generation, after, ok := strings.Cut(rest, ":"); ok {
		if p.Generation, err = parseDecimal(generation); err != nil || p.Generation < 1 {
			return bad("the generation before ':' is no positive number")
		}
		rest = after
	}
	if position, mark, ok := strings.Cut(rest, "@"); ok {
		if p.Mark, err = ParsePosition(mark); err != nil {
			return bad("the start mark after '@' is no position")
		}
		rest = position
	}
	if p.Position, err = ParsePosition(rest); err != nil {
		return bad("the position is neither a number between 0 and 9223372036854775807 nor a ULID")
	}
	if !p.Mark.IsZero() && p.Position.Above(p.Mark) {
		return bad("the start mark is below the position")
	}
	if !p.Position.IsZero() && !p.Mark.IsZero() && p.Position.IsULID() != p.Mark.IsULID() {
		return bad("position and start mark are of different feeds")
	}
	p.Start = p.Seen().IsZero()
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
func (c Cursor) Time() (t time.Time, ok bool, err error) {
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

// InPass tells whether a cursor is on the way of a pass from the beginning: its start
// mark, which a pass carries until it is through, is written in the cursor itself.
func (c Cursor) InPass() bool {
	p, err := c.State()
	return err == nil && (p.Start || p.Mark.Above(p.Position))
}

// Settled tells whether a cursor is a place outside of a pass. Only there is it known
// of every key whether its latest version is above or below.
func (c Cursor) Settled() bool {
	_, err := c.State()
	return err == nil && !c.InPass()
}

// part is the cursor behind one entry in the midst of a page that was fetched above
// after and reaches to. It keeps the page's start mark, or becomes a beginning's.
func (to Cursor) Within(after Cursor, e Entry) (Cursor, error) {
	end, err := to.State()
	if err != nil {
		return "", err
	}
	position, err := ParsePosition(e.Position)
	if err != nil {
		return "", fmt.Errorf("position %q: %w", e.Position, err)
	}
	p := CursorState{Generation: end.Generation, Position: position, Mark: end.Mark}
	if from, err := after.State(); err == nil {
		p.Mark = p.Mark.Max(from.Mark)
		if from.Start {
			// The mark is the head that the page began with; where the page reached it, it
			// is the page's end. A later one would do as well: nothing was handed over above.
			p.Mark = p.Mark.Max(end.Position)
		}
	}
	return p.Cursor(), nil
}

func (c Cursor) IsBeginning() bool {
	p, err := c.State()
	return err == nil && p.Start
}

// Above tells whether p is of a later time than q.
func (p CursorState) Above(q CursorState) bool {
	return p.Generation > q.Generation || p.Generation == q.Generation && p.Position.Above(q.Position)
}

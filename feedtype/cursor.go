package feedtype

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cursor is what a consumer stores and sends back as After: [generation:]position[@start
// mark][[~head].term][_from-to-of]. It needs no escaping in a URL. It is opaque to consumers: only the feed that
// returned it may interpret it. Generation 1 is left out, the start mark is dropped once the position has reached it,
// and the head is left out if the position or the start mark is the head. "" and "0" are the beginning.
//
// Head is the head of the feed when the newest page was read, and term is the term of that head. They tell a feed that
// was set back, by a restored backup or a failover that lost commits, whether this consumer has read what was lost. A
// cursor without a term is refused only if it is ahead of the feed. ULID feeds have no terms.
//
// From, to and of are those of CursorPart: a cursor that a part of the feed gave. All others are of the whole feed.
//
// Two more forms are requests rather than cursors. "now" is the head at the time of the fetch. "at:" with an RFC 3339
// time is just below the lowest position published at or after that time. The feed replaces both by a cursor in its
// answer.
type Cursor string

const (
	// Beginning is the cursor below every position.
	Beginning Cursor = ""
	// Now is the head at the time of the fetch.
	Now Cursor = "now"
)

// At is the cursor just below the first entry that was published at or after t.
func At(t time.Time) Cursor { return Cursor("at:" + t.UTC().Format(time.RFC3339Nano)) }

// Generation returns the generation of the feed that the cursor belongs to. It is 0 for the beginning, for the
// requests "now" and "at:", and for an invalid cursor.
func (c Cursor) Generation() int64 {
	if p, err := c.State(); err == nil && !p.Start {
		return p.Generation
	}
	return 0
}

// Check returns an error if the text is not valid as After of a request.
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

// CursorState is a parsed cursor. The start mark is the head of the feed when the consumer began at the beginning:
// the consumer has never seen a row whose tombstone has a position at or below it. A zero Mark means that there is
// none.
type CursorState struct {
	Generation int64
	Position   Position
	Mark       Position
	Head       Position // the head that was read; zero without a Term
	Term       Term     // of that head; 0 if the feed has no terms, or the cursor is older than they are
	// Part is the part of the feed that the consumer has read. The zero value is the whole feed.
	Part CursorPart
	// Start says that the consumer begins here and has seen nothing, so it needs no deletes of earlier rows. A
	// position that was found by its time is not a start, even if it is below every position.
	Start bool
}

// Seen returns the position up to which the consumer knows of every delete.
func (p CursorState) Seen() Position { return p.Position.Max(p.Mark) }

// Cursor returns the state as a cursor. A state that has seen nothing is the beginning.
func (p CursorState) Cursor() Cursor {
	if p.Seen().IsZero() && p.Head.IsZero() {
		return Beginning
	}
	s := p.Position.String()
	if p.Generation != 1 {
		s = strconv.FormatInt(p.Generation, 10) + ":" + s
	}
	if p.Mark.Above(p.Position) {
		s += "@" + p.Mark.String()
	}
	if p.Term != 0 {
		if p.Head.Above(p.Seen()) {
			s += "~" + p.Head.String()
		}
		s += "." + p.Term.String()
	}
	if p.Part != (CursorPart{}) {
		s += fmt.Sprintf("_%d-%d-%d", p.Part.From, p.Part.To, p.Part.Of)
	}
	return Cursor(s)
}

// CursorPart is a part of a feed: the data shards From (inclusive) to To (exclusive) of Of data shards. A cursor of
// the whole feed is valid for every part, with every number of data shards. The cursor of a part is valid for that
// part and for parts of it, while the feed is divided into the same number of data shards.
type CursorPart struct{ From, To, Of int }

// Includes tells whether a reader that has read p has read all of q.
func (p CursorPart) Includes(q CursorPart) bool {
	return p == CursorPart{} || p.Of == q.Of && p.From <= q.From && q.To <= p.To
}

// String returns "the whole feed" or "data shards 0 to 255 of 1024".
func (p CursorPart) String() string {
	if p == (CursorPart{}) {
		return "the whole feed"
	}
	return fmt.Sprintf("data shards %d to %d of %d", p.From, p.To-1, p.Of)
}

// parseCursorPart parses what a cursor has after '_'.
func parseCursorPart(s string) (p CursorPart, err error) {
	numbers := strings.Split(s, "-")
	if len(numbers) != 3 {
		return p, strconv.ErrSyntax
	}
	for i, to := range []*int{&p.From, &p.To, &p.Of} {
		n, err := parseDecimal(numbers[i])
		if err != nil || n > MaxDataShards {
			return p, strconv.ErrRange
		}
		*to = int(n)
	}
	if p.From >= p.To || p.To > p.Of || p.To-p.From == p.Of {
		return p, strconv.ErrRange
	}
	return p, nil
}

// Term identifies the states of a sequence feed that one publisher left one after the other. It is a random number of
// 46 to 48 bits, and 0 if there is none.
type Term int64

// String returns the term in base 32, as cursors contain it.
func (t Term) String() string { return strconv.FormatInt(int64(t), 32) }

// termDigits is the length of every term as text. A plain decimal number is no cursor with a term.
const termDigits = 10

// LowestTerm is the lowest number that is a term: the lowest of so many digits.
const LowestTerm Term = 1 << (5 * (termDigits - 1))

func parseTerm(s string) (Term, error) {
	n, err := strconv.ParseUint(s, 32, 48)
	if t := Term(n); err == nil && (t < LowestTerm || t.String() != s) {
		err = strconv.ErrRange
	}
	return Term(n), err
}

// State parses a cursor, except for the forms "now" and "at:".
func (c Cursor) State() (CursorState, error) {
	if c == Beginning {
		return CursorState{Start: true}, nil
	}
	bad := func(what string) (CursorState, error) {
		return CursorState{}, &Error{Code: InvalidRequest, Param: "after",
			Cause: fmt.Sprintf("after: %q is not a cursor: %s", string(c), what),
			Next:  `send back a cursor as it was given, or "" (the beginning), "now", or "at:" with an RFC 3339 time`}
	}
	rest := string(c)
	p := CursorState{Generation: 1}
	var err error
	if generation, after, ok := strings.Cut(rest, ":"); ok {
		if p.Generation, err = parseDecimal(generation); err != nil || p.Generation < 1 {
			return bad("the generation before ':' is not a positive number")
		}
		rest = after
	}
	if before, part, ok := strings.Cut(rest, "_"); ok {
		if p.Part, err = parseCursorPart(part); err != nil {
			return bad("the text after '_' is not a part of a feed")
		}
		rest = before
	}
	if before, term, ok := strings.Cut(rest, "."); ok {
		if p.Term, err = parseTerm(term); err != nil {
			return bad("the term after '.' is not a number of 48 bits in base 32, with ten digits")
		}
		position, head, given := strings.Cut(before, "~")
		if p.Head, err = ParsePosition(head); given && err != nil {
			return bad("the head after '~' is not a position")
		}
		rest = position
	}
	if position, mark, ok := strings.Cut(rest, "@"); ok {
		if p.Mark, err = ParsePosition(mark); err != nil {
			return bad("the start mark after '@' is not a position")
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
	if p.Term != 0 {
		if p.Seen().IsULID() || p.Head.IsULID() {
			return bad("a ULID has no term")
		}
		p.Head = p.Head.Max(p.Seen())
	}
	p.Start = p.Seen().IsZero() && p.Head.IsZero()
	return p, nil
}

// parseDecimal parses a number of digits only: without sign and blanks.
func parseDecimal(s string) (int64, error) {
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseInt(s, 10, 64)
}

// Time parses the form "at:". ok is false for every other form.
func (c Cursor) Time() (t time.Time, ok bool, err error) {
	text, ok := strings.CutPrefix(string(c), "at:")
	if !ok {
		return time.Time{}, false, nil
	}
	// A '+' in a query string arrives as a space. RFC 3339 times contain no space.
	t, err = time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "+", 1))
	if err != nil {
		return t, true, &Error{Code: InvalidRequest, Param: "after",
			Cause: fmt.Sprintf("after: %q is not an RFC 3339 time", text),
			Next:  "write it like at:2026-01-31T12:00:00Z"}
	}
	return t, true, nil
}

// InPass tells whether the cursor is inside a pass from the beginning. A cursor keeps its start mark until the pass
// is complete.
func (c Cursor) InPass() bool {
	p, err := c.State()
	return err == nil && (p.Start || p.Mark.Above(p.Position))
}

// Settled tells whether the cursor is outside a pass. Only then is it known of every key whether its latest version
// is above or below the cursor.
func (c Cursor) Settled() bool {
	_, err := c.State()
	return err == nil && !c.InPass()
}

// Within returns the cursor after one entry of a page. after is the cursor of the request, to is the cursor of the
// page. The result keeps the start mark of the page, or gets one if after is the beginning.
func (to Cursor) Within(after Cursor, e Entry) (Cursor, error) {
	end, err := to.State()
	if err != nil {
		return "", err
	}
	position, err := ParsePosition(e.Position)
	if err != nil {
		return "", fmt.Errorf("position %q: %w", e.Position, err)
	}
	p := CursorState{Generation: end.Generation, Position: position, Mark: end.Mark, Head: end.Head, Term: end.Term,
		Part: end.Part}
	if from, err := after.State(); err == nil {
		p.Mark = p.Mark.Max(from.Mark)
		if from.Start {
			// The mark is the head at the time of the page. If the page reached the head, it is the page's end. A
			// later mark would be as good: no entry above it was handed over.
			p.Mark = p.Mark.Max(end.Position)
		}
	}
	return p.Cursor(), nil
}

// IsBeginning tells whether the cursor is below every position of the feed, as "" and "0" are.
func (c Cursor) IsBeginning() bool {
	p, err := c.State()
	return err == nil && p.Start
}

// Above tells whether p is, or may be, later than q: of a higher generation, or of the same generation at a higher
// position, or of another term, since terms have no order.
func (p CursorState) Above(q CursorState) bool {
	return p.Generation > q.Generation ||
		p.Generation == q.Generation && (p.Position.Above(q.Position) || p.Term != q.Term)
}

package feedtype

import (
	"errors"
	"math"
	"net/url"
	"testing"
	"time"
)

// A cursor is [generation:]position[@start mark]. Generation 1 is left out, the mark is dropped once it is reached,
// and no character needs escaping in a URL (design, section 2).
func TestCursorsParseFromTheirText(t *testing.T) {
	drawn(t, func(t *testing.T, r random) {
		p := CursorState{Generation: r.between(1, math.MaxInt64), Position: Numbered(r.between(0, math.MaxInt64))}
		if r.coin() {
			p.Position = Position{High: 1 + r.Uint64N(math.MaxUint64), Low: r.Uint64N(math.MaxUint64)}
		}
		if r.coin() {
			p.Generation = 1
		}
		if marked := r.coin(); marked && p.Position.IsULID() {
			p.Mark = Position{High: p.Position.High, Low: p.Position.Low + 1 + r.Uint64N(math.MaxUint64-p.Position.Low)}
		} else if marked && p.Position.Number() < math.MaxInt64 {
			p.Mark = Numbered(r.between(p.Position.Number()+1, math.MaxInt64))
		}
		c := p.Cursor()
		if escaped := url.PathEscape(string(c)); escaped != string(c) {
			t.Fatalf("%q becomes %q in a URL", c, escaped)
		}
		back, err := c.State()
		if p.Seen().IsZero() {
			p = CursorState{Start: true}
		}
		if err != nil || back != p {
			t.Fatalf("%+v is %q, which reads as %+v, %v", p, c, back, err)
		}
	})
	for p, want := range map[CursorState]Cursor{
		{}:                                     "",
		{Generation: 1}:                        "",
		{Generation: 7}:                        "", // the beginning belongs to every generation
		{Generation: 1, Position: Numbered(3)}: "3",
		{Generation: 7, Position: Numbered(3)}: "7:3",
		{Generation: 7, Mark: Numbered(9)}:     "7:0@9",
		{Generation: 1, Position: Numbered(3), Mark: Numbered(9)}:  "3@9",
		{Generation: 1, Position: Numbered(9), Mark: Numbered(9)}:  "9",
		{Generation: 7, Position: Position{High: 1 << 60, Low: 9}}: "7:0G000000000000000000000009",
		{Generation: 1, Mark: Position{High: 1 << 60, Low: 9}}:     "0@0G000000000000000000000009",
	} {
		if got := p.Cursor(); got != want {
			t.Errorf("%+v is written %q, want %q", p, got, want)
		}
	}
}

// An invalid cursor is refused with the name of the parameter, and never read as another position (M16).
func TestInvalidCursorNamesItsParameter(t *testing.T) {
	for _, c := range []Cursor{"x", " 1", "1 ", "+1", "-1", "1.0", "1e3", "0x1", "9223372036854775808", ":", ":1",
		"0:1", "-1:1", "a:1", "1:", "1:2:3", "@", "1@", "@1", "5@4", "1@x", "1@9223372036854775808", "1:2@3@4",
		"3@0G000000000000000000000009", "0G000000000000000000000009@3",
		"0G000000000000000000000009@0G000000000000000000000008", "0G00000000000000000000000U",
		"0G00000000000000000000009", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "NOW", "at", "１",
		"4.0000000000", "4.0000000001", "4.7K3F2C7ADQ", "4.7k3f2c7ad", "4.7k3f2c7adqq", "4~3.x"} {
		p, err := c.State()
		var e *Error
		if !errors.As(err, &e) || e.Code != InvalidRequest || e.Param != "after" || e.Next == "" {
			t.Errorf("%q reads as %+v, %v", c, p, err)
		}
	}
	for _, c := range []Cursor{"at:", "at:yesterday", "at:2026-01-31", "at:2026-01-31T12:00:00"} {
		_, ok, err := c.Time()
		if !ok || !errors.Is(err, InvalidRequest) {
			t.Errorf("%q: %v, %v", c, ok, err)
		}
	}
	for _, c := range []Cursor{"0", "1:0", "007"} {
		if _, err := c.State(); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// At and Time keep the instant to the microsecond, the precision of databases.
func TestTimeCursorKeepsMicroseconds(t *testing.T) {
	for text, want := range map[Cursor]time.Time{
		"at:2026-01-31T12:00:00Z":             time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"at:2026-01-31T12:00:00.000001+05:30": time.Date(2026, 1, 31, 6, 30, 0, 1000, time.UTC),
		// a query string turned the '+' into a space
		"at:2026-01-31T12:00:00 05:30": time.Date(2026, 1, 31, 6, 30, 0, 0, time.UTC),
		At(time.UnixMicro(1)):          time.UnixMicro(1),
	} {
		if got, ok, err := text.Time(); err != nil || !ok || !got.Equal(want) {
			t.Errorf("%q reads as %v, %v, %v", text, got, ok, err)
		}
	}
	if _, ok, _ := Cursor("3").Time(); ok {
		t.Error(`"3" is no time`)
	}
}

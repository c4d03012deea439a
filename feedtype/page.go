package feedtype

import (
	"math"
	"slices"
	"strconv"
	"sync"
)

// Page is the answer to a Request.
type Page struct {
	Entries []Entry
	// Cursor is what the consumer stores, and sends as the next After. On an empty page it is the given cursor or a
	// greater one.
	Cursor Cursor
	// More is false if, and only if, the page reached the head of the feed at the time of the fetch. A page with
	// fewer entries than requested, or with none, may still have More true.
	More bool
	// Key and Columns are the key columns and the delivered columns at the time of the fetch.
	Key, Columns []Column
	// Standing is the watermark of the shard of a ULID feed at the time of the fetch, in the form of Standings. It is
	// empty if the source does not report it.
	Standing string

	made *made // nil unless several readers share the page
}

// made holds the encoded forms of a page that several readers share.
type made struct {
	of    Page
	forms sync.Map // name of a form to a func() []byte
}

// ForMany returns the page for several readers, which share what Shared encodes.
func (p Page) ForMany() Page {
	p.made = &made{of: p}
	return p
}

// Shared returns the result of encode for a page that several requests share. encode is called once for each form,
// the name of what it makes, and callers must not change the result. shared is false, and encode is not called, if
// the page belongs to one request. That includes a page from which a Source in between has removed or altered
// entries.
func (p Page) Shared(form string, encode func() []byte) (data []byte, shared bool) {
	if p.made == nil || !p.same(p.made.of) {
		return nil, false
	}
	made, ok := p.made.forms.Load(form)
	if !ok {
		made, _ = p.made.forms.LoadOrStore(form, sync.OnceValue(encode))
	}
	return made.(func() []byte)(), true
}

// same tells whether the pages have the same entries, whose rows are at the same addresses.
func (p Page) same(other Page) bool {
	return p.Cursor == other.Cursor && p.More == other.More && sameMemory(p.Key, other.Key) &&
		sameMemory(p.Columns, other.Columns) &&
		slices.EqualFunc(p.Entries, other.Entries, Entry.same)
}

func (e Entry) same(other Entry) bool {
	return e.Position == other.Position && e.Op == other.Op && e.Shard == other.Shard &&
		e.Generation == other.Generation && e.Stamp == other.Stamp && e.Key.same(other.Key) && e.Row.same(other.Row)
}

func (r Row) same(other Row) bool {
	return sameMemory(r.columns, other.columns) && sameMemory(r.values, other.values)
}

func sameMemory[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// CursorAt returns the cursor of a consumer that has handled the page's entries up to the i-th, with i from 0. after
// is the cursor of the request.
func (p Page) CursorAt(after Cursor, i int) (Cursor, error) {
	if i == len(p.Entries)-1 {
		return p.Cursor, nil
	}
	return p.Cursor.Within(after, p.Entries[i])
}

// AppendJSON appends the page as one JSON object:
// {"feed":…,"entries":[…],"cursor":…,"more":…,"base64":[…],"stamps":[…]}. The stamps are those of the entries, in their
// order. A page without any has no such member.
func (p Page) AppendJSON(dst []byte, feed string) []byte {
	dst, _ = p.AppendJSONPart(dst, feed, 0, math.MaxInt)
	return dst
}

// AppendJSONPart appends a part of what AppendJSON appends: from the i-th entry on, at least one entry, until dst has
// size bytes or more. With i = 0 it begins the object. next is the entry that the next part begins with, or -1 if dst
// contains the end of the object, which has the cursor.
func (p Page) AppendJSONPart(dst []byte, feed string, i, size int) (part []byte, next int) {
	if i == 0 {
		dst = append(appendString(append(dst, `{"feed":`...), feed), `,"entries":[`...)
	}
	for ; i < len(p.Entries); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst = p.Entries[i].AppendJSON(dst); len(dst) >= size && i+1 < len(p.Entries) {
			return dst, i + 1
		}
	}
	return p.appendEnd(append(dst, `],`...)), -1
}

// AppendLines appends the page as NDJSON: one entry per line, and a last line
// {"cursor":…,"more":…,"base64":[…],"stamps":[…]}.
func (p Page) AppendLines(dst []byte) []byte {
	dst, _ = p.AppendLinesPart(dst, 0, math.MaxInt)
	return dst
}

// AppendLinesPart appends a part of what AppendLines appends, as AppendJSONPart does.
func (p Page) AppendLinesPart(dst []byte, i, size int) (part []byte, next int) {
	for ; i < len(p.Entries); i++ {
		if dst = append(p.Entries[i].AppendJSON(dst), '\n'); len(dst) >= size && i+1 < len(p.Entries) {
			return dst, i + 1
		}
	}
	return append(p.appendEnd(append(dst, '{')), '\n'), -1
}

// appendEnd appends the members after the entries, and the closing brace.
func (p Page) appendEnd(dst []byte) []byte {
	dst = appendString(append(dst, `"cursor":`...), string(p.Cursor))
	dst = strconv.AppendBool(append(dst, `,"more":`...), p.More)
	dst = append(dst, `,"base64":[`...)
	for i, name := range BinaryColumns(p.Key, p.Columns) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, name)
	}
	dst = append(dst, ']')
	if slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Stamp != 0 }) {
		dst = append(dst, `,"stamps":[`...)
		for i, e := range p.Entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, e.Stamp, 10)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// BinaryColumns returns the names of the columns of a binary type, each once. Their JSON strings are base64.
func BinaryColumns(key, columns []Column) []string {
	names := []string{}
	for _, some := range [][]Column{columns, key} {
		for _, c := range some {
			if c.Kind == Binary && !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

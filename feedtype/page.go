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
	// Cursor is to be stored and sent as the next After. On an empty page it is the
	// cursor given or a greater one.
	Cursor Cursor
	// More is false when the page reached the head of its moment, and only then. A page
	// may have fewer entries than asked for, even none, and still have More.
	More bool
	// Key and Columns are the key columns, and those delivered at the time of the page.
	Key, Columns []Column
	// Standing says, of a shard that is a feed by itself, how far that was when the page was
	// read, as in Standings. It is empty where the source does not tell.
	Standing string

	made *made // where many share the page
}

// made is where those who share a page keep what they make of it.
type made struct {
	of    Page
	forms sync.Map // a form's name to a func() []byte
}

// ForMany is the page for several readers, who share what Shared makes of it.
func (p Page) ForMany() Page {
	p.made = &made{of: p}
	return p
}

// Shared answers what encode makes of the page, where many have waited for the same one: it
// is made once for all of them, and must be changed by none. The form is the name of what is
// made. shared is false, and nothing was made, where the page is the caller's alone: also where
// a Source between has left some of it out, or altered it.
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

// same tells whether the pages have the same entries, with the same rows in memory.
func (p Page) same(other Page) bool {
	return p.Cursor == other.Cursor && p.More == other.More && sameMemory(p.Key, other.Key) &&
		sameMemory(p.Columns, other.Columns) &&
		slices.EqualFunc(p.Entries, other.Entries, Entry.same)
}

func (e Entry) same(other Entry) bool {
	return e.Position == other.Position && e.Op == other.Op && e.Shard == other.Shard &&
		e.Generation == other.Generation && e.Key.same(other.Key) && e.Row.same(other.Row)
}

func (r Row) same(other Row) bool {
	return sameMemory(r.columns, other.columns) && sameMemory(r.values, other.values)
}

func sameMemory[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// CursorAt is the cursor of a consumer that has handled the page's entries up to the
// i-th, i from 0; after is that of the request.
func (p Page) CursorAt(after Cursor, i int) (Cursor, error) {
	if i == len(p.Entries)-1 {
		return p.Cursor, nil
	}
	return p.Cursor.Within(after, p.Entries[i])
}

// AppendJSON appends the page as one JSON object:
// {"feed":…,"entries":[…],"cursor":…,"more":…,"base64":[…]}.
func (p Page) AppendJSON(dst []byte, feed string) []byte {
	dst, _ = p.AppendJSONPart(dst, feed, 0, math.MaxInt)
	return dst
}

// AppendJSONPart appends what AppendJSON does, as far as it fits: from the i-th entry on
// (with the beginning of the object, where that is 0) until dst has size bytes or more, at
// least one entry. The rest begins with entry next; there is none where that is -1, and only
// then does dst have the cursor.
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

// AppendLines appends the page as NDJSON: an entry a line, and a last line
// {"cursor":…,"more":…,"base64":[…]}.
func (p Page) AppendLines(dst []byte) []byte {
	dst, _ = p.AppendLinesPart(dst, 0, math.MaxInt)
	return dst
}

// AppendLinesPart appends what AppendLines does, in parts as AppendJSONPart does.
func (p Page) AppendLinesPart(dst []byte, i, size int) (part []byte, next int) {
	for ; i < len(p.Entries); i++ {
		if dst = append(p.Entries[i].AppendJSON(dst), '\n'); len(dst) >= size && i+1 < len(p.Entries) {
			return dst, i + 1
		}
	}
	return append(p.appendEnd(append(dst, '{')), '\n'), -1
}

// appendEnd appends the members that follow the entries, and the closing brace.
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
	return append(dst, "]}"...)
}

// BinaryColumns lists the columns of a binary type, each once: their JSON strings
// are base64.
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

package rowfeed

import (
	"slices"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
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
}

// CursorAt is the cursor of a consumer that has handled the page's entries up to the
// i-th, i from 0; after is that of the request.
func (p Page) CursorAt(after Cursor, i int) (Cursor, error) {
	if i == len(p.Entries)-1 {
		return p.Cursor, nil
	}
	return p.Cursor.part(after, p.Entries[i])
}

// AppendJSON appends the page as one JSON object:
// {"feed":…,"entries":[…],"cursor":…,"more":…,"base64":[…]}.
func (p Page) AppendJSON(dst []byte, feed string) []byte {
	dst = appendString(append(dst, `{"feed":`...), feed)
	dst = append(dst, `,"entries":[`...)
	for i, e := range p.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.AppendJSON(dst)
	}
	return p.appendEnd(append(dst, `],`...))
}

// AppendLines appends the page as NDJSON: an entry a line, and a last line
// {"cursor":…,"more":…,"base64":[…]}.
func (p Page) AppendLines(dst []byte) []byte {
	for _, e := range p.Entries {
		dst = append(e.AppendJSON(dst), '\n')
	}
	return append(p.appendEnd(append(dst, '{')), '\n')
}

// appendEnd appends the members that follow the entries, and the closing brace.
func (p Page) appendEnd(dst []byte) []byte {
	dst = appendString(append(dst, `"cursor":`...), string(p.Cursor))
	dst = strconv.AppendBool(append(dst, `,"more":`...), p.More)
	dst = append(dst, `,"base64":[`...)
	for i, name := range binaryColumns(p.Key, p.Columns) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, name)
	}
	return append(dst, "]}"...)
}

// binaryColumns lists the columns of a binary type, each once: their JSON strings
// are base64.
func binaryColumns(key, columns []Column) []string {
	names := []string{}
	for _, c := range slices.Concat(columns, key) {
		if c.Kind == dialect.Binary && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

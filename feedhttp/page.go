package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/rowfeed/rowfeed"
)

// columnsHeader names the columns that a page was made with. A Client compares it
// with what it knows, so that a column whose type has changed is not read by its old
// type, which the entries alone do not always show.
const columnsHeader = "Rowfeed-Columns"

func columnsTag(columns []rowfeed.Column) string {
	data, _ := json.Marshal(columns) // strings only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// binaryColumns are the page's columns whose strings are base64: those delivered, and
// key columns that are not among them.
func binaryColumns(page rowfeed.Page) []string {
	names := rowfeed.Base64(page.Columns)
	if len(page.Entries) == 0 {
		return names
	}
	key := page.Entries[0].Key
	for i := range key.Len() {
		for _, name := range rowfeed.Base64([]rowfeed.Column{key.Column(i)}) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// appendPage writes a page as one JSON object.
func appendPage(dst []byte, feed string, page rowfeed.Page) []byte {
	dst = appendJSON(append(dst, `{"feed":`...), feed)
	dst = append(dst, `,"entries":[`...)
	for i, e := range page.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = e.AppendJSON(dst)
	}
	dst = append(dst, `],`...)
	return append(appendEnd(dst, page), '}', '\n')
}

// appendLines writes a page as one entry a line and a last line about the page.
func appendLines(dst []byte, page rowfeed.Page) []byte {
	for _, e := range page.Entries {
		dst = append(e.AppendJSON(dst), '\n')
	}
	return append(appendEnd(append(dst, '{'), page), '}', '\n')
}

func appendEnd(dst []byte, page rowfeed.Page) []byte {
	dst = appendJSON(append(dst, `"cursor":`...), page.Cursor)
	dst = appendJSON(append(dst, `,"more":`...), page.More)
	return appendJSON(append(dst, `,"base64":`...), binaryColumns(page))
}

func appendJSON(dst []byte, v any) []byte {
	data, _ := marshal(v) // strings and bools only
	return append(dst, data...)
}

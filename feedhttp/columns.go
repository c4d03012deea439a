package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/rowfeed/rowfeed/feedtype"
)

// pageHeader sets the headers that a page needs besides its body.
func (t *columnTags) pageHeader(w http.ResponseWriter, feed string, page feedtype.Page) {
	w.Header().Set(columnsHeader, t.of(feed, page.Columns))
	if page.Standing != "" {
		w.Header().Set(watermarkHeader, page.Standing)
	}
}

// columnTags remembers the tag of each feed's columns.
type columnTags struct{ known sync.Map } // a feed's name to its taggedColumns

// taggedColumns are columns and their tag.
type taggedColumns struct {
	columns []feedtype.Column
	tag     string
}

// of returns the tag of a page's columns. Most pages have the columns of the feed's previous page, whose tag
// is kept.
func (t *columnTags) of(feed string, columns []feedtype.Column) string {
	if known, ok := t.known.Load(feed); ok {
		if known := known.(taggedColumns); slices.Equal(known.columns, columns) {
			return known.tag
		}
	}
	tag := columnsTag(columns)
	t.known.Store(feed, taggedColumns{slices.Clone(columns), tag})
	return tag
}

func columnsTag(columns []feedtype.Column) string {
	data, _ := json.Marshal(columns) // strings cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

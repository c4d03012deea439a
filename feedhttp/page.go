package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/rowfeed/rowfeed/feedtype"
)

// columnsHeader names the columns that a page, or a feed's description, was made with. A
// Client compares it with what it knows, so that a column whose type has changed is not read by its old
// type, which the entries alone do not always show.
const columnsHeader = "Rowfeed-Columns"

// standingHeader tells how far a page's shard was, see [rowfeed.Page].
const standingHeader = "Rowfeed-Standing"

// pageHeader tells of a page what is not in it.
func (h *Handler) pageHeader(w http.ResponseWriter, feed string, page feedtype.Page) {
	w.Header().Set(columnsHeader, h.columnsTag(feed, page.Columns))
	if page.Standing != "" {
		w.Header().Set(standingHeader, page.Standing)
	}
}

// taggedColumns are columns whose tag is known.
type taggedColumns struct {
	columns []feedtype.Column
	tag     string
}

// columnsTag is that of the columns that a feed's page has, most of which have those of the
// page before.
func (h *Handler) columnsTag(feed string, columns []feedtype.Column) string {
	if known, ok := h.tags.Load(feed); ok {
		if known := known.(taggedColumns); slices.Equal(known.columns, columns) {
			return known.tag
		}
	}
	tag := columnsTag(columns)
	h.tags.Store(feed, taggedColumns{slices.Clone(columns), tag})
	return tag
}

func columnsTag(columns []feedtype.Column) string {
	data, _ := json.Marshal(columns) // strings only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

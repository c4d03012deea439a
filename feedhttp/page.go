package feedhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/rowfeed/rowfeed"
)

// columnsHeader names the columns that a page was made with. A Client compares it
// with what it knows, so that a column whose type has changed is not read by its old
// type, which the entries alone do not always show.
const columnsHeader = "Rowfeed-Columns"

// standingHeader tells how far a page's shard was, see [rowfeed.Page].
const standingHeader = "Rowfeed-Standing"

func columnsTag(columns []rowfeed.Column) string {
	data, _ := json.Marshal(columns) // strings only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

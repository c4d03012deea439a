package read

import (
	"io"

	"github.com/rowfeed/rowfeed"
)

// writePage writes a page as NDJSON: one entry a line, then the cursor.
func writePage(out io.Writer, page rowfeed.Page) error {
	_, err := out.Write(page.AppendLines(nil))
	return err
}

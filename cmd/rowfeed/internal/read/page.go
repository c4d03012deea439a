package read

import (
	"io"

	"github.com/rowfeed/rowfeed"
)

// writePage writes a page as NDJSON: an entry a line, then where it ended.
func writePage(out io.Writer, page rowfeed.Page) error {
	_, err := out.Write(page.AppendLines(nil))
	return err
}

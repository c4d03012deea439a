package read

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// assemble makes entries of a page's rows, whose values become theirs, and counts those left
// out: keys whose row is gone although nothing has published that; their tombstone follows.
func assemble(l *catalog.Layout, rows *dialect.PageRows) (page feedtype.Page, vanished int, err error) {
	page = feedtype.Page{Entries: make([]feedtype.Entry, 0, len(rows.Rows)), Key: l.Key, Columns: l.Columns}
	var places labels
	for i, r := range rows.Rows {
		e := feedtype.Entry{Position: places.of(rows.Rows, i), Shard: r.Shard, Generation: rows.Generation}
		if l.Feed.ULIDs == nil && !l.Feed.Sharded() {
			e.Shard = 0 // whatever stands in a column shard of the table's own
		}
		switch {
		case r.Hidden:
			e.Op = feedtype.Delete
		case r.Present:
			e.Op = feedtype.Upsert
		case r.Deleted:
			e.Op = feedtype.Delete
		default:
			vanished++
			continue
		}
		if e.Key, err = feedtype.NewRow(l.Key, r.Key); err != nil {
			return feedtype.Page{}, 0, err
		}
		if e.Op == feedtype.Upsert {
			if e.Row, err = feedtype.NewRow(l.Columns, r.Values); err != nil {
				return feedtype.Page{}, 0, err
			}
		}
		page.Entries = append(page.Entries, e)
	}
	return page, vanished, nil
}

// labels writes the positions of a page's rows, several at once: each text of its own would be
// an allocation.
type labels struct {
	text        string // of the rows from first to next
	first, next int
	ends        [labelsTogether + 1]int // in it, one behind the other
}

// labelsTogether is of how many rows: whoever keeps one of them keeps the text of all.
const labelsTogether = 16

// of is the position of the i-th row; i counts up.
func (l *labels) of(rows []dialect.PageRow, i int) string {
	if i >= l.next {
		var buf [labelsTogether * 26]byte
		text := buf[:0]
		l.first, l.next = i, min(i+labelsTogether, len(rows))
		for n, r := range rows[i:l.next] {
			text = r.Position.Append(text)
			l.ends[n+1] = len(text)
		}
		l.text = string(text)
	}
	return l.text[l.ends[i-l.first]:l.ends[i-l.first+1]]
}

package read

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
)

// assemble makes a page's entries from its rows, and keeps their values without copying them. It leaves out and counts
// vanished keys: keys without a row whose delete is not published yet. Their tombstones follow. terms are set for a
// feed whose rows hold positions.
func assemble(l *catalog.Layout, rows *dialect.PageRows, terms *history.Terms) (
	page feedtype.Page, vanished int, err error,
) {
	page = feedtype.Page{Entries: make([]feedtype.Entry, 0, len(rows.Rows)), Key: l.Key, Columns: l.Columns}
	var positions positionTexts
	for i, r := range rows.Rows {
		e := feedtype.Entry{Position: positions.of(rows.Rows, i), Shard: r.Shard, Generation: rows.Generation,
			Stamp: r.PublishedAt}
		if l.Feed.ReadsRows() && !l.Feed.Sharded() {
			e.Shard = 0 // the table may have a column "shard" of its own
		}
		if e.Stamp == 0 && terms != nil {
			e.Stamp = int64(terms.Of(r.Position.Number()))
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

// positionTexts formats the positions of a page's rows. Several rows share one allocation.
type positionTexts struct {
	text        string // of the rows from first to next
	first, next int
	ends        [rowsPerAllocation + 1]int // where each row's text ends
}

// rowsPerAllocation is how many rows share an allocation. An application that keeps one of their entries keeps the
// memory of all.
const rowsPerAllocation = 16

// of is the position of row i. Callers count i up.
func (p *positionTexts) of(rows []dialect.PageRow, i int) string {
	if i >= p.next {
		var buf [rowsPerAllocation * 26]byte
		text := buf[:0]
		p.first, p.next = i, min(i+rowsPerAllocation, len(rows))
		for n, r := range rows[i:p.next] {
			text = r.Position.Append(text)
			p.ends[n+1] = len(text)
		}
		p.text = string(text)
	}
	return p.text[p.ends[i-p.first]:p.ends[i-p.first+1]]
}

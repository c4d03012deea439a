package read

import (
	"strconv"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// answered makes a page's rows as a database answers them, each with an integer and a text.
func answered(n int, at func(i int) feedtype.Position) (*catalog.Layout, *dialect.PageRows) {
	l := &catalog.Layout{Feed: &dialect.Feed{}, Key: []feedtype.Column{{Name: "id", Kind: feedtype.Integer}},
		Columns: []feedtype.Column{{Name: "id", Kind: feedtype.Integer}, {Name: "v", Kind: feedtype.Text}}}
	rows := &dialect.PageRows{Generation: 1}
	for i := range n {
		id := any(int64(1_000_000 + i))
		rows.Rows = append(rows.Rows, dialect.PageRow{Position: at(i), Present: i%3 > 0, Deleted: i%3 == 0,
			Key: []any{id}, Values: []any{id, strconv.Itoa(i)}})
	}
	return l, rows
}

// TestEntriesHaveTheValuesOfTheirRows: every entry has the position, key and row of its own row, with numbers and with
// ULIDs.
func TestEntriesHaveTheValuesOfTheirRows(t *testing.T) {
	for name, at := range map[string]func(i int) feedtype.Position{
		"numbers": func(i int) feedtype.Position { return feedtype.Numbered(int64(8 + i)) },
		"ULIDs":   func(i int) feedtype.Position { return feedtype.Position{High: 1 << 60, Low: uint64(i)} },
	} {
		for _, n := range []int{0, 1, rowsPerAllocation, 2*rowsPerAllocation + 1, 100} {
			l, rows := answered(n, at)
			page, vanished, err := assemble(l, rows, nil)
			if err != nil || vanished != 0 || len(page.Entries) != n {
				t.Fatalf("%s: %d entries of %d, %d vanished, error %v", name, len(page.Entries), n, vanished, err)
			}
			for i, e := range page.Entries {
				id, _ := e.Key.Get("id")
				v, there := e.Row.Get("v")
				if e.Position != at(i).String() || id != int64(1_000_000+i) ||
					there != (i%3 > 0) || there && v != strconv.Itoa(i) {
					t.Errorf("%s: entry %d of %d is %+v", name, i, n, e)
				}
			}
		}
	}
}

// TestAssembleAllocatesOnlyForGroups: assemble allocates only for groups of positions.
func TestAssembleAllocatesOnlyForGroups(t *testing.T) {
	const rows = 1000
	l, page := answered(rows, func(i int) feedtype.Position { return feedtype.Numbered(int64(1_000_000 + i)) })
	if n := testing.AllocsPerRun(10, func() { _, _, _ = assemble(l, page, nil) }); n > rows/rowsPerAllocation+3 {
		t.Errorf("%.0f allocations for %d rows", n, rows)
	}
}

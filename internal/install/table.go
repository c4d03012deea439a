package install

import (
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// uniqueOn returns the unique index on exactly these columns, or nil.
func uniqueOn(table *dialect.Table, names []string) *dialect.Index {
	want := slices.Sorted(slices.Values(names))
	for i, ix := range table.Unique {
		if have, ok := ix.Names(); ok && !ix.Partial && slices.Equal(slices.Sorted(slices.Values(have)), want) {
			return &table.Unique[i]
		}
	}
	return nil
}

// attachedOf returns the table's partitions that hold rows themselves, sorted.
func attachedOf(table *dialect.Table) []string {
	var all []string
	for _, p := range table.Partitions {
		if p.Attached != "" {
			all = append(all, p.Attached)
		}
	}
	slices.Sort(all)
	return all
}

// hasPartitions tells whether the feed follows partitions.
func hasPartitions(r *catalog.FeedRecord, table *dialect.Table) bool {
	return r.Capture == feedtype.CaptureTrigger && r.State != catalog.StateCreating &&
		r.State != catalog.StateMoving &&
		(r.Partitions != nil || table != nil && len(table.Partitions) > 0)
}

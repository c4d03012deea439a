package feedtype

import "fmt"

// DropPlan is what dropping a feed does to its readers and to the tables that the feed was adopted from.
type DropPlan struct {
	// Keeps says that the positions stay in the rows of the table, so that the feed can be added again with Adopt. Head
	// is the highest position. Restart says why earlier cursors are then refused. It is empty if they stay valid.
	Keeps   bool
	Head    int64
	Restart string
	// Written has one text for each value that is written into tables of the user, Left one for each that is not, with
	// the reason. Both are empty unless the feed is handed back.
	Written, Left []string
}

// Resets adds to Written that the positions of n rows are set to NULL.
func (p *DropPlan) Resets(table TableName, n int64) {
	if n > 0 {
		p.Written = append(p.Written, fmt.Sprintf("table %s: feed_sync_id of %d rows to NULL, for a new position: "+
			"they were republished or unpublished", table, n))
	}
}

package catalog

import (
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Layout is a feed with its columns, as of a signature of the table.
type Layout struct {
	// Generation is that of the record that the layout was made of: a feed dropped and
	// added again may follow another table.
	Generation int64
	Unplaced   string // the state in which parts are not served; empty: they are
	adopt      bool

	Feed    *dialect.Feed
	Table   *dialect.Table
	Key     []feedtype.Column
	Columns []feedtype.Column
}

// FinishSharding is the next step for whom a feed's sharding is in the way.
func FinishSharding(feed string, dataShards int) string {
	return fmt.Sprintf("wait for `rowfeed feed upgrade %s --data-shards %d`, or run it again where it broke off", feed, dataShards)
}

// RefuseParts is the refusal of a part while keys may have no shard, or one of before.
func (l *Layout) RefuseParts() error {
	count, again := max(l.Feed.DataShards, 1), "ask again, or read the whole feed; "
	e := &feedtype.Error{Code: feedtype.Sharding, Object: feedtype.FeedObject(l.Feed.Name), Cause: fmt.Sprintf("its keys are being given their shards among %d, and parts of it are not served before all have theirs", count),
		Next: again + FinishSharding(l.Feed.Name, count)}
	add := "`rowfeed feed add " + l.Feed.Name + "`"
	switch {
	case l.Unplaced == StateCreating:
		e.Cause, e.Next = "it is being made, and parts of it are not served before its keys have their shards", again+"wait for "+add+", or run it again with its options where it broke off"
	case l.adopt: // by feed add, or by an upgrade since: nothing tells
		e.Next += "; the " + add + " that adopts the table does the same"
	}
	return e
}

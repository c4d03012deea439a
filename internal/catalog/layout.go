package catalog

import (
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Layout is a feed with the columns that its table had when it was described.
type Layout struct {
	// Generation is the generation of the layout's record. A feed that was dropped and added again may follow another
	// table.
	Generation int64
	Unplaced   string // the feed's state, if parts are not served in it; otherwise empty
	adopt      bool

	Feed    *dialect.Feed
	Table   *dialect.Table
	Key     []feedtype.Column
	Columns []feedtype.Column
}

// FinishSharding is the next step of an error because the feed is being resharded.
func FinishSharding(feed string, dataShards int) string {
	return fmt.Sprintf("wait for `rowfeed feed upgrade %s --data-shards %d`; if that was interrupted, run it again",
		feed, dataShards)
}

// RefuseParts is the error of a request for a part while keys may have no shard, or a former one.
func (l *Layout) RefuseParts() error {
	count, again := max(l.Feed.DataShards, 1), "ask again, or read the whole feed; "
	e := &feedtype.Error{
		Code:   feedtype.Sharding,
		Object: feedtype.FeedObject(l.Feed.Name),
		Cause: fmt.Sprintf("its keys are being assigned to %d data shards, "+
			"and parts of it are not served until every key has its shard", count),
		Next: again + FinishSharding(l.Feed.Name, count),
	}
	add := "`rowfeed feed add " + l.Feed.Name + "`"
	switch {
	case l.Unplaced == StateCreating:
		e.Cause = "it is being created, and parts of it are not served until every key has its shard"
		e.Next = again + "wait for " + add + "; if that was interrupted, run it again with its options"
	case l.adopt: // by feed add or by a later upgrade: the record does not tell which
		e.Next += "; the " + add + " that adopts the table does the same"
	}
	return e
}

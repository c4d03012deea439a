package rowfeed

import (
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// shardColumn is the place of the shard column in the key, -1 where there is none.
func (r *record) shardColumn() int {
	return slices.IndexFunc(r.Key, func(c dialect.Column) bool { return c.Name == r.ShardColumn })
}

// sharder answers how the data shards of keys, as changes hold them, are found.
func (r *record) sharder() func(key []any) (int, error) {
	if r.DataShards <= 1 {
		return func([]any) (int, error) { return 0, nil }
	}
	columns := make([]feedtype.Column, len(r.Key))
	for i, c := range r.Key {
		columns[i] = c.ForReaders()
	}
	return func(raw []any) (int, error) {
		key, err := feedtype.NewRow(columns, raw)
		if err != nil {
			return 0, fmt.Errorf("the shard of a key: %w", err)
		}
		return feedtype.ShardBy(r.ShardColumn, key, r.DataShards), nil
	}
}

// refuseParts is the refusal of a part while keys may have no shard, or one of before.
func (l *layout) refuseParts() error {
	count, again := max(l.feed.DataShards, 1), "ask again, or read the whole feed; "
	e := &feedtype.Error{Code: feedtype.Sharding, Object: feedtype.FeedObject(l.feed.Name), Cause: fmt.Sprintf("its keys are being given their shards among %d, and parts of it are not served before all have theirs", count),
		Next: again + finishSharding(l.feed.Name, count)}
	add := "`rowfeed feed add " + l.feed.Name + "`"
	switch {
	case l.unplaced == stateCreating:
		e.Cause, e.Next = "it is being made, and parts of it are not served before its keys have their shards", again+"wait for "+add+", or run it again with its options where it broke off"
	case l.adopt: // by feed add, or by an upgrade since: nothing tells
		e.Next += "; the " + add + " that adopts the table does the same"
	}
	return e
}

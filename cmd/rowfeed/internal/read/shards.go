package read

import (
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/spf13/cobra"
)

// shardFlags are the flags for a part of a feed.
type shardFlags struct {
	shard, count           int
	shardGiven, countGiven func() bool // nil: not
}

func (o *shardFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.shard, "shard", 0,
		"only this data `shard`, or with --shard-count this part, from 0; any number for a feed with ULIDs")
	cmd.Flags().IntVar(&o.count, "shard-count", 1, "the `number` of parts that the feed is divided into")
	o.shardGiven = func() bool { return cmd.Flags().Changed("shard") }
	o.countGiven = func() bool { return cmd.Flags().Changed("shard-count") }
}

// shards returns the part that the flags name. It checks what it can before a database is opened.
func (o *shardFlags) shards(feed string) (rowfeed.Shards, error) {
	var shards rowfeed.Shards
	switch {
	case o.shardGiven == nil || !o.shardGiven() && !o.countGiven():
		return shards, nil
	case !o.shardGiven():
		return shards, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "shard-count",
			Object: fmt.Sprintf("feed %q", feed),
			Cause:  "--shard-count is given without --shard", Next: "give the number of the shard with --shard, from 0"}
	case o.countGiven() && o.count < 1: // in Shards, 0 of 0 means the whole feed
		return shards, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "shard-count",
			Object: fmt.Sprintf("feed %q", feed),
			Cause:  fmt.Sprintf("--shard-count %d is not between 1 and %d", o.count, rowfeed.MaxDataShards),
			Next:   "give the number of readers that share the feed"}
	case o.countGiven():
		shards = rowfeed.Part(o.shard, o.count)
	default:
		shards = rowfeed.One(o.shard)
	}
	return shards, shards.Check()
}

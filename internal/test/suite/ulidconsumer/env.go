package ulidconsumer

import (
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// handedOf are the rows of a shard that were handed over.
func handedOf(r *suite.Taker, shard int) []int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.Clone(r.Handed[shard])
}

// headOf is the cursor at the end of a shard.
func headOf(r *suite.Taker, shard int) rowfeed.Cursor {
	r.Helper()
	after := rowfeed.Beginning
	for {
		page := r.Page(r.Feed, shard, after, 100)
		if after = page.Cursor; !page.More {
			return after
		}
	}
}

// eventID names a shard's cursor.
func eventID(shard int) rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: "test", Feed: "events", Shard: &shard}
}

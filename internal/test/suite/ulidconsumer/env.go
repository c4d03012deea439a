package ulidconsumer

import (
	"database/sql"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// handedOf returns the rows of a shard that the handler got.
func handedOf(r *suite.Taker, shard int) []int {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.Clone(r.Handed[shard])
}

// headOf reads a shard to its head, and returns the cursor. It moves the records of an outbox.
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

// eventID names the consumer's cursor of a shard.
func eventID(shard int) rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: "test", Feed: "events", Shard: &shard}
}

// addToShards inserts one row with a growing id into each of n consecutive shards, in one transaction.
func addToShards(x *suite.Events, first, n int) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	shards := make([]int, n)
	for i := range shards {
		shards[i] = first + i
	}
	u := x.Lock(tx, rowfeed.LockRequest{Shards: shards})
	for i, shard := range shards {
		x.Event(tx, i+1, shard, x.At(u, shard, 0), "")
	}
	x.Commit(tx)
}

package install

import (
	"context"

	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
)

// Feed completes, verifies and upgrades one feed. It is safe for concurrent use.
type Feed struct {
	*catalog.Feed
	DB         *Database
	History    *history.History
	Reader     *read.Reader
	Recorder   *publish.Recorder
	Partitions *Partitions
	Rows       *OutboxRows
	Division   *Resharding
	// SetProblems reports problems to this process's publisher of the feed.
	SetProblems func([]string)
}

// Wake makes this process's publisher poll the feed at once.
func (f *Feed) Wake() { f.Recorder.Wake() }

// FollowPartitions implements publish.Keeper.
func (f *Feed) FollowPartitions(ctx context.Context) { f.Partitions.FollowPartitions(ctx) }

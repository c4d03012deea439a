package install

import (
	"context"

	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// Feed has the tasks of this package for one feed. It is the publisher's publish.Keeper. It is safe for concurrent use.
type Feed struct {
	Filler     *Filler
	Verifier   *Verifier
	Upgrader   *Upgrader
	Identity   *Identity
	Partitions *Partitions
	Resharding *Resharding
	Rows       *OutboxRows
}

// New makes the tasks of one feed. setProblems reports problems to this process's publisher of the feed.
func New(f *catalog.Feed, recorder *publish.Recorder, outbox *ulidfeed.Outbox,
	setProblems func([]string)) *Feed {
	db := &Database{f.Store}
	rows := &OutboxRows{Feed: f, Recorder: recorder, Outbox: outbox}
	resharding := &Resharding{Feed: f, Recorder: recorder}
	verifier := &Verifier{Feed: f, DB: db}
	partitions := &Partitions{Feed: f, DB: db, Recorder: recorder, Rows: rows}
	return &Feed{
		Filler:     &Filler{Feed: f, Recorder: recorder, Rows: rows, Resharding: resharding},
		Verifier:   verifier,
		Upgrader:   &Upgrader{Feed: f, DB: db, Verifier: verifier, Partitions: partitions, SetProblems: setProblems},
		Identity:   &Identity{Feed: f, Recorder: recorder},
		Partitions: partitions,
		Resharding: resharding,
		Rows:       rows,
	}
}

// SameAsBefore implements publish.Keeper.
func (f *Feed) SameAsBefore(ctx context.Context) error { return f.Identity.SameAsBefore(ctx) }

// VerifyWithPartitions implements publish.Keeper.
func (f *Feed) VerifyWithPartitions(ctx context.Context) (problems []string, partitioned bool, err error) {
	return f.Verifier.VerifyWithPartitions(ctx)
}

// FollowPartitions implements publish.Keeper.
func (f *Feed) FollowPartitions(ctx context.Context) { f.Partitions.FollowPartitions(ctx) }

package admin

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// Failing is a publisher, consumer or relay that keeps failing.
type Failing struct {
	Kind     string `json:"kind"` // KindPublisher, KindConsumer or KindRelay
	Feed     string `json:"feed"`
	Consumer string `json:"consumer,omitempty"` // or the name of the relay
	Shard    int    `json:"shard"`              // of ShardCount
	// ShardCount is the number of shards of the consumer, and 0 for a publisher.
	ShardCount int    `json:"shard_count"`
	Target     string `json:"target,omitempty"` // see ConsumerStatus.Target
	feedtype.Failure
}

// Values of Failing.Kind.
const (
	KindPublisher = "publisher"
	KindConsumer  = "consumer"
	KindRelay     = "relay"
)

// Failing returns what keeps failing now: publishers by feed, then consumers and relays by name, feed and shard. A
// paused consumer does not fail.
func (db *Admin) Failing(ctx context.Context) ([]Failing, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	all := []Failing{}
	records, err := catalog.Load(ctx, db.store, db.store.On(), "")
	if err != nil {
		return nil, db.store.Fail("feeds", "read their records", err)
	}
	for _, r := range records {
		if r.Failure != nil && !r.Gone() {
			all = append(all, Failing{Kind: KindPublisher, Feed: r.Name, Failure: *r.Failure})
		}
	}
	cursors, err := db.consumers.FailingCursors(ctx)
	if err != nil {
		return nil, db.store.Fail("consumers", "read their cursors", err)
	}
	for _, row := range cursors {
		if row.Failure == nil {
			continue
		}
		kind := KindConsumer
		if row.Target != "" {
			kind = KindRelay
		}
		all = append(all, Failing{Kind: kind, Feed: row.Feed, Consumer: row.Consumer, Shard: row.Shard,
			ShardCount: row.ShardCount, Target: row.Target, Failure: *row.Failure})
	}
	return all, nil
}

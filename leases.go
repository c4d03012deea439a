package rowfeed

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

func (db *DB) Lease(name string, ttl time.Duration) *Lease { return newLease(db.store, name, ttl) }

func (db *DB) Group(name string, jobs int, ttl time.Duration) *Group {
	return newGroup(db.store, name, jobs, ttl)
}

func (db *DB) Leases(ctx context.Context) ([]*LeaseStatus, error) { return Leases(ctx, db.store) }

func (db *DB) ReleaseLease(ctx context.Context, name string, epoch int64) (*LeaseStatus, error) {
	return ReleaseLease(ctx, db.store, name, epoch)
}

// CurrentLeases lists them without what is left of consumers' shards that are over: nobody
// holds them, and the consumer has another number of shards by now, or was dropped. Their
// rows stay, since no epoch ever comes again.
func (db *DB) CurrentLeases(ctx context.Context) ([]*LeaseStatus, error) {
	all, err := db.Leases(ctx)
	if err != nil || !slices.ContainsFunc(all, isConsumers) {
		return all, err
	}
	prefixes, err := dialect.QueryAll(ctx, db.store.On(), "SELECT consumer, feed, shard_count FROM "+db.store.Table("cursors")+
		" UNION SELECT consumer, feed, shard_count FROM "+db.store.Table("consumers"), nil,
		func(rows dialect.Rows) (prefix string, err error) {
			var consumer, feed string
			var count int
			err = rows.Scan(&consumer, &feed, &count)
			return groupPrefix(ConsumerGroup(consumer, feed), count), err
		})
	if err != nil {
		return nil, db.store.Fail("leases", "list the consumers", err)
	}
	return slices.DeleteFunc(all, func(s *LeaseStatus) bool {
		return isConsumers(s) && !isHeld(s) && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
	}), nil
}

// isConsumers tells whether it is of a consumer's shard, or its seat.
func isConsumers(s *LeaseStatus) bool { return strings.HasPrefix(s.Name, consumerLeases) }

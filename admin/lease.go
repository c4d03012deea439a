package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/publish"
)

// Leases lists all leases that were ever acquired, by name. See CurrentLeases.
func (db *Admin) Leases(ctx context.Context) ([]*feedtype.LeaseStatus, error) {
	return lease.All(ctx, db.store)
}

// CurrentLeases lists them without what is left of consumers' shards that are over: nobody
// holds them, and the consumer has another number of shards by now, or was dropped. Their
// rows stay, since no epoch ever comes again.
func (db *Admin) CurrentLeases(ctx context.Context) ([]*feedtype.LeaseStatus, error) {
	all, err := db.Leases(ctx)
	if err != nil || !slices.ContainsFunc(all, isConsumers) {
		return all, err
	}
	prefixes, err := dialect.QueryAll(ctx, db.store.On(), "SELECT consumer, feed, shard_count FROM "+
		db.store.Table("cursors")+
		" UNION SELECT consumer, feed, shard_count FROM "+db.store.Table("consumers"), nil,
		func(rows dialect.Rows) (prefix string, err error) {
			var consumer, feed string
			var count int
			err = rows.Scan(&consumer, &feed, &count)
			return lease.GroupPrefix(consume.ConsumerGroup(consumer, feed), count), err
		})
	if err != nil {
		return nil, db.store.Fail("leases", "list the consumers", err)
	}
	return slices.DeleteFunc(all, func(s *feedtype.LeaseStatus) bool {
		return isConsumers(s) && !lease.Held(s) &&
			!slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
	}), nil
}

// isConsumers tells whether it is of a consumer's shard, or its seat.
func isConsumers(s *feedtype.LeaseStatus) bool {
	return strings.HasPrefix(s.Name, consume.ConsumerLeases)
}

// ReleaseLease takes a lease from whoever holds it, for operators who know that the
// holder is gone or stuck, and answers the term that it ended: its State is what it was
// before. A holder that still lives learns of it when it next renews or asserts its term;
// what it does outside of the database until then is not fenced. epoch 0 ends the term
// that there is; another one that term only, and the code Conflict says that it is over.
// A lease that is free stays so.
func (db *Admin) ReleaseLease(ctx context.Context, name string, epoch int64) (*feedtype.LeaseStatus, error) {
	return lease.Release(ctx, db.store, name, epoch)
}

// PublisherLease is the name of the lease through which the publishers of a feed take turns.
func PublisherLease(feed string) string { return publish.LeaseName(feed) }

// ConsumerGroup is the name of the group whose jobs are the shards of a consumer.
func ConsumerGroup(consumer, feed string) string { return consume.ConsumerGroup(consumer, feed) }

// JobLease is the name of the lease of a job of a group.
func JobLease(group string, jobs, job int) string { return lease.JobLease(group, jobs, job) }

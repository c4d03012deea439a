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
	"github.com/rowfeed/rowfeed/internal/store"
)

// Leases lists all leases that were ever acquired, by name. See CurrentLeases.
func (db *Admin) Leases(ctx context.Context) ([]*feedtype.LeaseStatus, error) {
	return lease.All(ctx, db.store)
}

// CurrentLeases lists leases by name, without unused leases of consumers: those that no process holds, of consumers
// that have another number of shards now or were dropped. Their rows are never deleted, so that an epoch is never used
// twice.
func (db *Admin) CurrentLeases(ctx context.Context) ([]*feedtype.LeaseStatus, error) {
	all, err := db.Leases(ctx)
	if err != nil || !slices.ContainsFunc(all, isConsumers) {
		return all, err
	}
	prefixes, err := store.All(ctx, db.store, db.store.On(), statements, "shard_counts", nil,
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

// isConsumers tells whether a lease belongs to a consumer's group: to one of its jobs or members.
func isConsumers(s *feedtype.LeaseStatus) bool {
	return strings.HasPrefix(s.Name, consume.ConsumerLeases)
}

// ReleaseLease ends the claim on a lease. It is for operators who know that the holder is gone or stuck. A holder that
// still runs learns of it when it next renews or asserts its claim; what it does outside of the database until then is
// not fenced. It ends the claim with the given epoch only, and any claim if epoch is 0. If the claim with that epoch
// has ended the error has the code Conflict. It returns the claim as it was before. A free lease stays free.
func (db *Admin) ReleaseLease(ctx context.Context, name string, epoch int64) (*feedtype.LeaseStatus, error) {
	return lease.Release(ctx, db.store, name, epoch)
}

// PublisherLease returns the name of the lease through which the publishers of a feed take turns.
func PublisherLease(feed string) string { return publish.LeaseName(feed) }

// ConsumerGroup returns the name of the group whose jobs are the shards of a consumer.
func ConsumerGroup(consumer, feed string) string { return consume.ConsumerGroup(consumer, feed) }

// JobLease returns the name of the lease of job number job of a group with so many jobs.
func JobLease(group string, jobs, job int) string { return lease.JobLease(group, jobs, job) }

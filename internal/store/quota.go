package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

const (
	// unlimited stands for the limit of a pool that has none.
	unlimited = 32
	// reserved is the number of connections that no quota has. Leases, readiness and operators use them.
	reserved = 2
	// lockedFor is how long a lock timeout tells about the table.
	lockedFor = 10 * time.Second
)

// Quotas divide the connections of a pool among the kinds of work whose statements may wait for locks on the tables of
// feeds. DESIGN.md has a table of the shares.
type Quotas struct {
	Pages, Publishing *Quota
}

// NewQuotas divides a pool of this many connections; 0 means that the pool has no limit.
func NewQuotas(connections int, d *dialect.Dialect) Quotas {
	if connections == 0 {
		connections = unlimited
	}
	publishing := max(connections/4, 1)
	pages := max(connections-publishing-reserved, 1)
	return Quotas{
		Pages:      newQuota(pages, max(pages-2, 1), d),
		Publishing: newQuota(publishing, max(publishing/2, 1), d),
	}
}

// Quota limits the connections that one kind of work uses at the same time. A single feed cannot use all of them.
type Quota struct {
	dialect *dialect.Dialect
	perFeed int
	inUse   chan struct{} // an element for each connection in use
	locked  chan struct{} // an element for each of them that a feed with a locked table uses
	refused atomic.Int64
}

func newQuota(connections, perFeed int, d *dialect.Dialect) *Quota {
	return &Quota{dialect: d, perFeed: perFeed, inUse: make(chan struct{}, connections),
		locked: make(chan struct{}, max(connections/4, 1))}
}

// Limit returns the number of connections.
func (q *Quota) Limit() int { return cap(q.inUse) }

// InUse returns the number of connections that are in use now.
func (q *Quota) InUse() int { return len(q.inUse) }

// Refused counts the calls that were refused because the feed's table was locked.
func (q *Quota) Refused() int64 { return q.refused.Load() }

// OfFeed returns the part of one feed.
func (q *Quota) OfFeed() *FeedQuota {
	return &FeedQuota{quota: q, inUse: make(chan struct{}, q.perFeed)}
}

// FeedQuota is the part of a Quota that one feed may use.
type FeedQuota struct {
	quota *Quota
	inUse chan struct{}
	// timeout is the lock timeout of the feed's last call. It is nil if that call did not wait for a lock in vain.
	timeout atomic.Pointer[lockTimeout]
}

type lockTimeout struct {
	err error
	at  time.Time
}

// Use calls fn, which uses one connection, when a connection is free. While the feed's calls end with lock timeouts,
// only a few calls of all such feeds are made, to notice the end of the lock. Use answers the others at once with the
// feed's last lock timeout.
func (f *FeedQuota) Use(ctx context.Context, fn func() error) error {
	if err := enter(ctx, f.inUse); err != nil {
		return err
	}
	defer leave(f.inUse)
	if timeout := f.Locked(); timeout != nil {
		select {
		case f.quota.locked <- struct{}{}:
			defer leave(f.quota.locked)
		default:
			f.quota.refused.Add(1)
			return timeout
		}
	}
	if err := enter(ctx, f.quota.inUse); err != nil {
		return err
	}
	defer leave(f.quota.inUse)
	err := fn()
	switch {
	case f.quota.dialect.Classify(err) == dialect.ClassLockTimeout:
		f.timeout.Store(&lockTimeout{err, time.Now()})
	case ctx.Err() == nil: // a canceled call says nothing about the table
		f.timeout.Store(nil)
	}
	return err
}

// Locked returns the lock timeout with which the feed's last call has ended a short time ago, or nil.
func (f *FeedQuota) Locked() error {
	if timeout := f.timeout.Load(); timeout != nil && time.Since(timeout.at) < lockedFor {
		return timeout.err
	}
	return nil
}

func enter(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leave(slots chan struct{}) { <-slots }

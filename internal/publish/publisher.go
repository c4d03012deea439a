package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/gap"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// Publisher gives positions to the changes of one feed. What differs between the kinds of positions is its Positioner.
// A Publisher is safe for concurrent use.
type Publisher struct {
	*catalog.Feed
	Watch *watch.Watcher
	Gaps  *gap.Tracker
	// Positioner returns the Positioner of the feed's mode, or an error if this version cannot read the feed's record.
	Positioner func() (Positioner, error)
	Keeper     Keeper
	Quota      *store.FeedQuota // of connections that publish
	// BatchSize, IdlePoll and Lease are documented in rowfeed.Config.
	BatchSize       int
	IdlePoll, Lease time.Duration

	wake chan struct{} // holds a token if a pass is wanted
	// catchUps are the calls that consistent requests share, by shard. Feeds with one sequence use shard 0.
	catchUps store.Sharing[int, struct{}]

	mu       sync.Mutex
	problems []string // found by the last verification

	failures failures
}

// New makes the publisher of a feed. The caller sets its other fields.
func New(feed *catalog.Feed, w *watch.Watcher, gaps *gap.Tracker, p func() (Positioner, error)) *Publisher {
	return &Publisher{Feed: feed, Watch: w, Gaps: gaps, Positioner: p, wake: make(chan struct{}, 1)}
}

// Positioner is what publishing needs of a kind of positions.
type Positioner interface {
	// Pending returns a query that has a row if a change is pending; "" if the feed never has one.
	Pending() string
	// Waiting returns "" if no change is pending, or if another publisher is in a pass now. Otherwise it returns a text
	// that is another one after any pass that has given positions to pending changes.
	Waiting(ctx context.Context) (string, error)
	// Pass publishes up to limit changes. Full says that the pass before found its limit. The error is ErrHeld if it
	// left out shards that other transactions hold, and ErrStuck if only records without a usable key are left.
	Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error)
	// Tell reports what a pass with such an error has left out to the Observer, at a limited rate.
	Tell(ctx context.Context, left error)
	// CatchUp publishes the changes that are visible now. shard is used only in feeds with ULIDs.
	CatchUp(ctx context.Context, shard int) error
	// Purge deletes entries that have been kept long enough, and returns their number. The error is ErrHeld if it left
	// out shards that other transactions hold.
	Purge(ctx context.Context) (int, error)
}

// Keeper maintains the triggers and tables of a feed.
type Keeper interface {
	// SameAsBefore refuses a database that was restored, or is not the one in which positions were given.
	SameAsBefore(ctx context.Context) error
	// VerifyWithPartitions returns the problems of the feed's triggers and tables, and whether its table has
	// partitions.
	VerifyWithPartitions(ctx context.Context) (problems []string, partitioned bool, err error)
	// FollowPartitions makes the triggers that new partitions lack, and records the rows of partitions that were
	// attached or detached.
	FollowPartitions(ctx context.Context)
}

// HeldPatience bounds the wait for a shard or key lock of an outbox, so that one stuck transaction does not delay other
// shards. It is longer than the time after which a database detects a deadlock.
const HeldPatience = 2 * time.Second

var (
	// ErrHeld means that the lock of a shard, or of a key, was not free within HeldPatience.
	ErrHeld = errors.New("another transaction holds the lock of the shard")
	// ErrStuck means that an index does not accept a record's key: PostgreSQL has types without a maximum size, but
	// its indexes have one.
	ErrStuck = errors.New("the key of a record is too large for the index of the feed's table")
)

// Publish gives positions to all pending changes, in passes of one transaction each, until a pass finds none. It
// returns the number of keys that got a position. Any number of publishers and processes may call it at once: they wait
// for the lock of the feed's row in the sequences table.
func (f *Publisher) Publish(ctx context.Context) (n int, err error) {
	defer func() {
		switch {
		case err == nil:
			f.recovered(ctx)
		case !errors.Is(err, ErrHeld) && !errors.Is(err, ErrStuck):
			f.note(ctx, err, 0)
		}
	}()
	batch := newBatchSize(f.BatchSize)
	full, idle, since := false, 0, time.Now()
	for {
		e, err := f.pass(ctx, batch.size, full)
		n += e.Keys
		if idle++; e.Changes > 0 {
			idle, since = 0, time.Now()
		}
		switch {
		case errors.Is(err, ErrHeld) && time.Since(since) < HeldPatience:
			if err := store.Pause(ctx, store.Backoff(max(idle, 1))); err != nil {
				return n, err
			}
		case err != nil:
			return n, err
		case e.Changes == 0:
			return n, nil
		}
		full = e.Changes >= batch.size
		batch.adapt(e)
	}
}

// pass publishes one batch.
func (f *Publisher) pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	if !f.Store.Publishes() {
		return feedtype.PublishEvent{Feed: f.Name}, f.refusePublishing()
	}
	return passOfCurrentFeed(f.Feed, func() (e feedtype.PublishEvent, err error) {
		e.Feed = f.Name
		p, err := f.positioner(ctx) // The mode may have changed since the last try.
		if err == nil {
			err = f.Quota.Use(ctx, func() (err error) {
				e, err = p.Pass(ctx, limit, full)
				return err
			})
		}
		return e, err
	})
}

// positioner returns the Positioner of the feed's mode. It reads the feed's record again in two cases: rowfeed has
// taken the feed over since, or this version could not read the record, which may have been repaired.
func (f *Publisher) positioner(ctx context.Context) (Positioner, error) {
	if err := readTakeover(ctx, f.Feed); err != nil {
		return nil, err
	}
	p, err := f.Positioner()
	if err != nil {
		if err = f.Reload(ctx); err == nil {
			p, err = f.Positioner()
		}
	}
	return p, err
}

// passOfCurrentFeed runs a pass, and runs it again if a statement failed because the feed's record has changed. A feed
// that was dropped and added again may follow another table or have another mode, and an upgrade may have found another
// index.
func passOfCurrentFeed(f *catalog.Feed, pass func() (feedtype.PublishEvent, error)) (feedtype.PublishEvent, error) {
	for {
		before := f.Record.Load()
		e, err := pass()
		now := f.Record.Load()
		if err == nil || f.Store.Dialect.Classify(err) != dialect.ClassUndefined ||
			now.Generation == before.Generation &&
				now.PrimaryKey == before.PrimaryKey {
			return e, err
		}
	}
}

// lockedPause is the maximum pause after a lock timeout. It is short, because the publisher has already waited for the
// lock.
const lockedPause = 500 * time.Millisecond

// VerifyEvery is how often a publisher verifies its triggers and purges tombstones.
const VerifyEvery = time.Minute

// RunPublisher publishes until ctx ends, and then returns nil. It continues after failures of the database (no
// connection, locks, a full disk), and reports them to the Observer. It returns an error only if it cannot continue:
// the feed is gone, or the server may forget commits.
//
// The publishers of a feed share the lease "publish:<feed>" (Config.PublisherLease) in all processes: its holder
// publishes, and the others stand by. They publish only changes that the holder leaves waiting. The lease saves work.
// Several publishers are safe because of the lock of the feed's sequence.
func (f *Publisher) RunPublisher(ctx context.Context) error {
	if f.Lease < 0 {
		return f.publishLoop(ctx, 0)
	}
	return f.publishWithLease(ctx)
}

// errCannotPublish makes a publisher release its lease: another one may be able to publish.
var errCannotPublish = errors.New("the publisher failed several times in a row")

// publishLoop publishes until ctx ends, or until it has failed maxFailures times in a row. With 0 it never gives up.
func (f *Publisher) publishLoop(ctx context.Context, maxFailures int) error {
	batch := newBatchSize(f.BatchSize)
	pace := watch.Pace{Longest: f.IdlePoll}
	failures, full := 0, false
	var verified time.Time
	defer f.Watch.Serve(f.Name)()
	var background sync.WaitGroup
	defer background.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var following sync.Mutex
	for ctx.Err() == nil {
		var err error
		before := f.Watch.Polls()
		if time.Since(verified) >= VerifyEvery {
			var partitioned bool
			if partitioned, err = f.maintain(ctx); err == nil {
				verified = time.Now()
			}
			if partitioned && following.TryLock() {
				background.Go(func() {
					defer following.Unlock()
					f.Keeper.FollowPartitions(ctx)
				})
			}
		}
		// What was captured is published even if maintenance has failed.
		e, failed := f.pass(ctx, batch.size, full)
		quiet := failed == nil && e.Changes == 0
		if errors.Is(failed, ErrHeld) || errors.Is(failed, ErrStuck) { // All other shards were served.
			if p, err := f.Positioner(); err == nil {
				p.Tell(ctx, failed)
			}
			failed = nil
		}
		full = failed == nil && e.Changes >= batch.size
		if failed != nil {
			err = failed
		}
		if e.Changes > 0 {
			pace.Brought(e.Changes, time.Now())
		}
		idle := pace.Pause(time.Now())
		if err == nil {
			f.recovered(ctx)
		}
		switch {
		case failed == nil && e.Changes > 0:
			batch.adapt(e)
			failures = 0
			if e.Changes >= batch.size/2 {
				continue // More changes are likely pending.
			}
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, feedtype.UnknownFeed) || errors.Is(err, feedtype.UnsafeDurability):
			f.note(ctx, err, 0)
			return err
		default:
			failures++
			batch.shrink()
			idle = f.survive(ctx, err, failures)
			verified = time.Time{}
			everyPublisher := errors.Is(err, feedtype.DatabaseChanged) || errors.Is(err, feedtype.Locked)
			if failures == maxFailures && !everyPublisher {
				return errCannotPublish
			}
		}
		if quiet && err == nil && idle >= f.IdlePoll {
			rest := min(f.Gaps.Rest(), time.Until(verified.Add(VerifyEvery)))
			f.Watch.Sleep(ctx, f.Name, before, f.wake, rest)
		} else {
			watch.Doze(ctx, f.wake, idle)
		}
	}
	return nil
}

// nameBlockers adds to a lock timeout which sessions may have caused it.
func (f *Publisher) nameBlockers(ctx context.Context, err error) error {
	found, _, failed := f.Store.Dialect.Blockers(ctx, f.Store.On(), f.DialectFeed())
	var e *feedtype.Error
	if failed != nil || len(found) == 0 || !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Cause += ": a lock was not free"
	for _, b := range found[:min(len(found), 3)] {
		named.Cause += fmt.Sprintf("; session %s %s", b.Session, b.Scope)
	}
	named.Next = "wait until that session ends its transaction, or end the session; `rowfeed status` shows its user " +
		"and statement"
	return &named
}

// Wake makes this process's publisher of the feed poll at once. Call it after the commit of a transaction that changed
// the table.
func (f *Publisher) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// maintain verifies the triggers, and purges expired entries. It returns whether the feed's table has partitions.
func (f *Publisher) maintain(ctx context.Context) (partitioned bool, err error) {
	if err := f.Reload(ctx); err != nil {
		return false, err
	}
	if err := f.Keeper.SameAsBefore(ctx); err != nil {
		return false, err
	}
	problems, partitioned, err := f.Keeper.VerifyWithPartitions(ctx)
	if err != nil {
		return false, err
	}
	f.SetProblems(problems)
	if len(problems) > 0 {
		f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Err: &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "changes may not be captured, or not be published: " + strings.Join(problems, "; "),
			Next:   "run `rowfeed feed upgrade " + f.Name + "`, then `rowfeed check` and `rowfeed repair`",
		}})
	}
	// A missing index affects only readers of parts, so it does not make the feed unready.
	parts, err := f.VerifyParts(ctx)
	if err != nil {
		return partitioned, err
	}
	if parts != "" {
		f.Trouble(f.MissingIndex(parts))
	}
	_, err = f.Purge(ctx)
	if errors.Is(err, ErrHeld) {
		f.Trouble(err)
		err = nil // The next maintenance purges them.
	}
	return partitioned, err
}

// withoutDriverText describes an error without the driver's text, which may name hosts and users: readiness answers
// show problems to anonymous clients.
func withoutDriverText(err error) string {
	var e *feedtype.Error
	if !errors.As(err, &e) {
		return "the database did not answer in time"
	}
	bare := *e
	bare.Err = nil
	return bare.Error()
}

// SetProblems replaces what Problems returns.
func (f *Publisher) SetProblems(problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = problems
}

// Problems returns what this process's publisher knows to be wrong with the feed. Readiness checks show it.
func (f *Publisher) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems
}

// Purge deletes, in batches, the tombstones that the feed has kept long enough; of a feed with an outbox, the entries.
// It returns their number. A cursor below them is refused from then on (TombstonesExpired, EntriesExpired): the mark
// for that rises in the same transaction. A running publisher purges every minute.
func (f *Publisher) Purge(ctx context.Context) (int, error) {
	p, err := f.positioner(ctx)
	if err != nil {
		return 0, err
	}
	return p.Purge(ctx)
}

// refusePublishing is the error of a process that was opened not to publish.
func (f *Publisher) refusePublishing() error {
	if f.Store.Replica {
		return &feedtype.Error{
			Code:   feedtype.ReadOnly,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "publish: the database was opened as a replica",
			Next:   "connect to the primary, without --replica",
		}
	}
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  "publish: the database was opened with NoPublish",
		Next:   "publish from another process, or open the database without NoPublish",
	}
}

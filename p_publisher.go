package rowfeed

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// Publish gives positions to every change that is waiting, in passes of one
// transaction each, until a pass takes nothing, and answers the number of keys that
// got a position. Several publishers at once, in any number of processes, are safe:
// the feed's row of the sequences table makes them take turns.
func (f *Feed) Publish(ctx context.Context) (n int, err error) {
	batch := newBatchSize(f.db.cfg.BatchSize)
	full, idle, since := false, 0, time.Now()
	for {
		e, err := f.pass(ctx, batch.size, full)
		n += e.Keys
		if idle++; e.Changes > 0 {
			idle, since = 0, time.Now()
		}
		switch {
		case errors.Is(err, errShardHeld) && time.Since(since) < lockPatience:
			if err := store.Pause(ctx, store.Backoff(max(idle, 1))); err != nil {
				return n, err
			}
		case err != nil:
			return n, err
		case e.Changes == 0:
			return n, nil
		}
		full = e.Changes >= batch.size
		batch.learn(e)
	}
}

// pass publishes one batch, of the feed as it is now: one that was dropped and added
// again meanwhile may follow another table, and Upgrade may have found it another index.
func (f *Feed) pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	if f.db.publishesNothing() {
		return feedtype.PublishEvent{Feed: f.name}, f.db.noPublisher(f.name)
	}
	for {
		before := f.catalog.Record.Load()
		e, err := f.mode().pass(ctx, f, limit, full)
		now := f.catalog.Record.Load()
		if err == nil || f.db.store.Dialect.Classify(err) != dialect.ClassUndefined || now.Generation == before.Generation &&
			now.PrimaryKey == before.PrimaryKey {
			return e, err
		}
	}
}

// verifyEvery is how often a publisher looks whether its triggers are in place and
// purges tombstones.
const verifyEvery = time.Minute

// RunPublisher publishes until ctx ends, and then answers nil. It survives whatever
// may pass (a database that is away, locks, a full disk), telling the Observer of
// it; it answers an error only when going on makes no sense: the feed is gone, or
// the server may forget commits.
//
// The publishers of a feed take turns, in all processes, through the lease
// "publish:<feed>" (Config.PublisherLease): one works, the others stand by. That is for
// efficiency; what makes several publishers safe is the lock of the feed's sequence.
func (f *Feed) RunPublisher(ctx context.Context) error {
	if f.db.cfg.PublisherLease < 0 {
		return f.keepPublishing(ctx, 0)
	}
	return f.takeTurns(ctx)
}

// errCannotPublish ends a turn: another publisher may be able to.
var errCannotPublish = errors.New("the publisher fails again and again")

// keepPublishing publishes until ctx ends, or until it has failed so often in a row;
// with 0 it never gives up.
func (f *Feed) keepPublishing(ctx context.Context, patience int) error {
	batch := newBatchSize(f.db.cfg.BatchSize)
	looks := watch.Pace{Longest: f.db.cfg.IdlePoll}
	failures, full := 0, false
	var verified time.Time
	defer f.db.watch.Serve(f.name)()
	var aside sync.WaitGroup
	defer aside.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var following sync.Mutex
	for ctx.Err() == nil {
		var err error
		before := f.db.watch.Looked()
		if time.Since(verified) >= verifyEvery {
			var partitioned bool
			if partitioned, err = f.keepHouse(ctx); err == nil {
				verified = time.Now()
			}
			if partitioned && following.TryLock() { // else the last look still records what it found
				aside.Go(func() {
					defer following.Unlock()
					f.keepPartitions(ctx)
				})
			}
		}
		// A publisher whose house is not in order still publishes what was captured.
		e, failed := f.pass(ctx, batch.size, full)
		quiet := failed == nil && e.Changes == 0
		if errors.Is(failed, errShardHeld) { // the others were served
			f.tellHeld(ctx)
			failed = nil
		}
		if errors.Is(failed, errUnplaceable) {
			f.tellStuck(failed)
			failed = nil
		}
		full = failed == nil && e.Changes >= batch.size
		if failed != nil {
			err = failed
		}
		if e.Changes > 0 {
			looks.Brought(e.Changes, time.Now())
		}
		idle := looks.Pause(time.Now())
		switch {
		case failed == nil && e.Changes > 0:
			batch.learn(e)
			failures = 0
			if e.Changes >= batch.size/2 {
				continue // there is likely more
			}
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, feedtype.UnknownFeed) || errors.Is(err, feedtype.UnsafeDurability):
			return err
		default:
			failures++
			batch.shrink()
			idle = store.Outage(failures)
			f.setProblems([]string{withoutDriver(err)})
			verified = time.Time{}
			f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: err})
			if failures == patience && !errors.Is(err, feedtype.DatabaseChanged) { // which it is for everybody
				return errCannotPublish
			}
		}
		if quiet && err == nil && idle >= f.db.cfg.IdlePoll {
			f.db.watch.Sleep(ctx, f.name, before, f.wake, min(f.unseen.rest(), time.Until(verified.Add(verifyEvery))))
		} else {
			watch.Doze(ctx, f.wake, idle)
		}
	}
	return nil
}

// Wake makes this process's publisher of the feed look at once, instead of after
// its pause. Call it after the commit of a transaction that changed the table.
func (f *Feed) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // a pass is already wanted
	}
}

// keepHouse verifies the triggers and purges what has expired. It tells whether there are partitions to follow.
func (f *Feed) keepHouse(ctx context.Context) (partitioned bool, err error) {
	if err := f.catalog.Reload(ctx); err != nil {
		return false, err
	}
	if err := f.sameAsBefore(ctx); err != nil {
		return false, err
	}
	table, problems, err := f.verify(ctx)
	if err != nil {
		return false, err
	}
	partitioned = hasPartitions(f.catalog.Record.Load(), table)
	f.setProblems(problems)
	if len(problems) > 0 {
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name),
			Cause: "changes may go uncaptured, or not be published: " + strings.Join(problems, "; "),
			Next:  "run `rowfeed feed upgrade " + f.name + "`, then `rowfeed check` and `rowfeed repair`"}})
	}
	// Readers of parts may be in trouble then, and nobody else: it is no reason not to be
	// ready.
	parts, err := f.VerifyParts(ctx)
	if err != nil {
		return partitioned, err
	}
	if parts != "" {
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: f.withoutIndex(parts)})
	}
	_, err = f.Purge(ctx)
	if errors.Is(err, errShardHeld) {
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: err})
		err = nil // there is time: it is done when the house is kept again
	}
	return partitioned, err
}

// withoutDriver says what failed without the driver's own text, which may name hosts
// and users: problems are shown to everyone who may ask whether the feed is well.
func withoutDriver(err error) string {
	var e *feedtype.Error
	if !errors.As(err, &e) {
		return "the database did not answer in time"
	}
	bare := *e
	bare.Err = nil
	return bare.Error()
}

func (f *Feed) setProblems(problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = problems
}

// Problems is what this process's publisher knows to be wrong with the feed; none
// when all is well. It is what readiness is about.
func (f *Feed) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems
}

// Purge forgets, in batches, the deletes that were published longer ago than the feed keeps
// them, of a feed with an outbox the entries that need not be kept any longer, and answers how
// many. A cursor that has not passed them is refused from then on (TombstonesExpired,
// EntriesExpired), since the mark that tells rises in the same transaction. A publisher does it
// every minute.
func (f *Feed) Purge(ctx context.Context) (int, error) { return f.mode().purge(ctx, f) }

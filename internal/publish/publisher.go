package publish

import (
	"context"
	"errors"
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

// publisher gives positions to one feed, as long as it runs. What differs between the kinds of positions its
// Positioner does. It is safe for concurrent use.
type Publisher struct {
	*catalog.Feed
	Watch *watch.Watcher
	Gaps  *gap.Tracker
	// Positioner is that of the feed's mode; the error is that of a record which this version cannot read.
	Positioner func() (Positioner, error)
	Keeper     Keeper
	// BatchSize, IdlePoll and Lease are those of rowfeed.Config.
	BatchSize       int
	IdlePoll, Lease time.Duration

	wake chan struct{} // a pass is wanted
	// catchUps are the publishing that consistent requests share, of a shard if each is a feed by itself.
	catchUps store.Sharing[int, struct{}]

	mu       sync.Mutex
	problems []string // what the last verification found
}

// newPublisher makes the publisher of a feed; its other fields are to be set.
func New(feed *catalog.Feed, w *watch.Watcher, gaps *gap.Tracker, p func() (Positioner, error)) *Publisher {
	return &Publisher{Feed: feed, Watch: w, Gaps: gaps, Positioner: p, wake: make(chan struct{}, 1)}
}

// positioner is what differs between the kinds of positions when they are given.
type Positioner interface {
	// Pending is a query with a row if something waits for a publisher; "" if nothing ever does.
	Pending() string
	// Pass publishes up to limit changes. Full says that the pass before found as many as it was asked for. The error is
	// ErrHeld if shards that others hold are left, and ErrStuck if nothing is left but records that cannot be placed.
	Pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error)
	// Tell tells the Observer, now and then, of what a pass has left with such an error.
	Tell(ctx context.Context, left error)
	// CatchUp publishes what is visible now, of a shard if each is a feed by itself.
	CatchUp(ctx context.Context, shard int) error
	// Purge forgets what need not be kept any longer, and answers how many entries. The error is ErrHeld if shards that
	// others hold are left.
	Purge(ctx context.Context) (int, error)
}

// Keeper looks after what rowfeed has made for a feed.
type Keeper interface {
	// SameAsBefore refuses a database that was set back, or is not the one in which positions were given.
	SameAsBefore(ctx context.Context) error
	// VerifyWithPartitions answers what is wrong with the triggers and tables of the feed, and whether its table has partitions.
	VerifyWithPartitions(ctx context.Context) (problems []string, partitioned bool, err error)
	// FollowPartitions makes the triggers that new partitions lack, and records what came or went with partitions.
	FollowPartitions(ctx context.Context)
}

// lockPatience is how long a mover of an outbox waits for what another transaction has: a
// shard, or a key's place. Who has one is done in milliseconds, unless it stands still: then
// nobody's other shards wait with it. It is longer than a database takes to find that two wait
// for each other.
const HeldPatience = 2 * time.Second

var (
	// errHeld means that a shard, or the place of a key, was not to be had within lockPatience.
	ErrHeld = errors.New("another transaction has the shard")
	// errStuck means that the table of places does not take a record's key: PostgreSQL has types without bounds, and
	// indexes with one.
	ErrStuck = errors.New("its key cannot be placed")
)

// Publish gives positions to every change that is waiting, in passes of one
// transaction each, until a pass takes nothing, and answers the number of keys that
// got a position. Several publishers at once, in any number of processes, are safe:
// the feed's row of the sequences table makes them take turns.
func (f *Publisher) Publish(ctx context.Context) (n int, err error) {
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
		batch.learn(e)
	}
}

// pass publishes one batch, of the feed as it is now: one that was dropped and added
// again meanwhile may follow another table, and Upgrade may have found it another index.
func (f *Publisher) pass(ctx context.Context, limit int, full bool) (feedtype.PublishEvent, error) {
	if !f.Store.Publishes() {
		return feedtype.PublishEvent{Feed: f.Name}, f.publishesNothing()
	}
	p, err := f.positioner(ctx)
	if err != nil {
		return feedtype.PublishEvent{Feed: f.Name}, err
	}
	return passOf(ctx, f.Feed, p, limit, full)
}

// positioner is that of the feed's mode. A record that this version cannot read is read again: it may have been put
// right.
func (f *Publisher) positioner(ctx context.Context) (Positioner, error) {
	p, err := f.Positioner()
	if err != nil {
		if err = f.Reload(ctx); err == nil {
			p, err = f.Positioner()
		}
	}
	return p, err
}

// passOf is a pass of the feed as it is now.
func passOf(ctx context.Context, f *catalog.Feed, p Positioner, limit int, full bool) (feedtype.PublishEvent, error) {
	for {
		before := f.Record.Load()
		e, err := p.Pass(ctx, limit, full)
		now := f.Record.Load()
		if err == nil || f.Store.Dialect.Classify(err) != dialect.ClassUndefined || now.Generation == before.Generation &&
			now.PrimaryKey == before.PrimaryKey {
			return e, err
		}
	}
}

// verifyEvery is how often a publisher looks whether its triggers are in place and
// purges tombstones.
const VerifyEvery = time.Minute

// RunPublisher publishes until ctx ends, and then answers nil. It survives whatever
// may pass (a database that is away, locks, a full disk), telling the Observer of
// it; it answers an error only when going on makes no sense: the feed is gone, or
// the server may forget commits.
//
// The publishers of a feed take turns, in all processes, through the lease
// "publish:<feed>" (Config.PublisherLease): one works, the others stand by. That is for
// efficiency; what makes several publishers safe is the lock of the feed's sequence.
func (f *Publisher) RunPublisher(ctx context.Context) error {
	if f.Lease < 0 {
		return f.keepPublishing(ctx, 0)
	}
	return f.takeTurns(ctx)
}

// errCannotPublish ends a turn: another publisher may be able to.
var errCannotPublish = errors.New("the publisher fails again and again")

// keepPublishing publishes until ctx ends, or until it has failed so often in a row;
// with 0 it never gives up.
func (f *Publisher) keepPublishing(ctx context.Context, patience int) error {
	batch := newBatchSize(f.BatchSize)
	looks := watch.Pace{Longest: f.IdlePoll}
	failures, full := 0, false
	var verified time.Time
	defer f.Watch.Serve(f.Name)()
	var aside sync.WaitGroup
	defer aside.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var following sync.Mutex
	for ctx.Err() == nil {
		var err error
		before := f.Watch.Looked()
		if time.Since(verified) >= VerifyEvery {
			var partitioned bool
			if partitioned, err = f.keepHouse(ctx); err == nil {
				verified = time.Now()
			}
			if partitioned && following.TryLock() { // else the last look still records what it found
				aside.Go(func() {
					defer following.Unlock()
					f.Keeper.FollowPartitions(ctx)
				})
			}
		}
		// A publisher whose house is not in order still publishes what was captured.
		e, failed := f.pass(ctx, batch.size, full)
		quiet := failed == nil && e.Changes == 0
		if errors.Is(failed, ErrHeld) || errors.Is(failed, ErrStuck) { // the others were served
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
			f.SetProblems([]string{withoutDriver(err)})
			verified = time.Time{}
			f.Trouble(err)
			if failures == patience && !errors.Is(err, feedtype.DatabaseChanged) { // which it is for everybody
				return errCannotPublish
			}
		}
		if quiet && err == nil && idle >= f.IdlePoll {
			f.Watch.Sleep(ctx, f.Name, before, f.wake, min(f.Gaps.Rest(), time.Until(verified.Add(VerifyEvery))))
		} else {
			watch.Doze(ctx, f.wake, idle)
		}
	}
	return nil
}

// Wake makes this process's publisher of the feed look at once, instead of after
// its pause. Call it after the commit of a transaction that changed the table.
func (f *Publisher) Wake() {
	select {
	case f.wake <- struct{}{}:
	default: // a pass is already wanted
	}
}

// keepHouse verifies the triggers and purges what has expired. It tells whether there are partitions to follow.
func (f *Publisher) keepHouse(ctx context.Context) (partitioned bool, err error) {
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
		f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Err: &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name),
			Cause: "changes may go uncaptured, or not be published: " + strings.Join(problems, "; "),
			Next:  "run `rowfeed feed upgrade " + f.Name + "`, then `rowfeed check` and `rowfeed repair`"}})
	}
	// Readers of parts may be in trouble then, and nobody else: it is no reason not to be
	// ready.
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

func (f *Publisher) SetProblems(problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = problems
}

// Problems is what this process's publisher knows to be wrong with the feed; none
// when all is well. It is what readiness is about.
func (f *Publisher) Problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems
}

// Purge forgets, in batches, the deletes that were published longer ago than the feed keeps
// them, of a feed with an outbox the entries that need not be kept any longer, and answers how
// many. A cursor that has not passed them is refused from then on (TombstonesExpired,
// EntriesExpired), since the mark that tells rises in the same transaction. A publisher does it
// every minute.
func (f *Publisher) Purge(ctx context.Context) (int, error) {
	p, err := f.positioner(ctx)
	if err != nil {
		return 0, err
	}
	return p.Purge(ctx)
}

// publishesNothing is the error of who is asked to give positions all the same.
func (f *Publisher) publishesNothing() error {
	if f.Store.Replica {
		return &feedtype.Error{Code: feedtype.ReadOnly, Object: feedtype.FeedObject(f.Name), Cause: "publish: the database was opened as a replica", Next: "connect to the primary, without --replica"}
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "publish: the database was opened to publish nothing", Next: "publish from elsewhere, or open it without NoPublish"}
}

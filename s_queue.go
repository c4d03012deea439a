package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// lockPatience is how long a mover of an outbox waits for what another transaction has: a
// shard, or a key's place. Who has one is done in milliseconds, unless it stands still: then
// nobody's other shards wait with it. It is longer than a database takes to find that two wait
// for each other.
const lockPatience = 2 * time.Second

// How a mover takes a shard: at once or not at all, or when it has waited.
var (
	atOnce = dialect.LockBounds{NoWait: true, Wait: lockPatience}
	inTime = dialect.LockBounds{Wait: lockPatience}
)

// errShardHeld means that a shard is not to be had, see heldError, and errKeyHeld, beside it,
// that the shard was, but not the place of one of its keys, which stands in another one.
var (
	errShardHeld = errors.New("another transaction has the shard")
	errKeyHeld   = errors.New("another shard's mover has one of its keys")
)

// beside runs statements of a mover, or of a purge, that may wait for the movers of other
// shards: for a key that has records in two. The first time that takes as long as the database
// has it; from then on as long as a shard.
func (f *Feed) beside(ctx context.Context, tx dialect.Querier, fn func() error) error {
	err := f.db.store.Dialect.Bounded(ctx, tx, f.line.patience(), fn)
	if f.db.store.Dialect.Classify(err) != dialect.ClassLockTimeout {
		return err
	}
	f.line.meet()
	return fmt.Errorf("%w, %w: %w", errShardHeld, errKeyHeld, err)
}

// whyHeld is errShardHeld or errKeyHeld.
func whyHeld(err error) error {
	if errors.Is(err, errKeyHeld) {
		return errKeyHeld
	}
	return errShardHeld
}

// heldShards is an errShardHeld that says all there is to say.
type heldShards struct {
	told *feedtype.Error
	why  error
}

func (h heldShards) Error() string { return h.told.Error() }

func (h heldShards) Unwrap() error { return h.told }

func (h heldShards) Is(target error) bool { return target == errShardHeld || target == h.why }

// heldError names shards that were not to be had, and says why the first one was not.
func (f *Feed) heldError(doing string, why error, shards ...int) error {
	names := fmt.Sprint(shards[0])
	for _, shard := range shards[1:min(len(shards), maxShardsNamed)] {
		names += fmt.Sprintf(", %d", shard)
	}
	if len(shards) > maxShardsNamed {
		names += ", …"
	}
	next := fmt.Sprintf("`rowfeed status %s` shows who has it, `rowfeed unblock %s --shard %d` ends that", f.name, f.name, shards[0])
	if why == errKeyHeld {
		next = fmt.Sprintf("`rowfeed status %s` shows who has which shard, `rowfeed unblock %s --shard N` ends that", f.name, f.name)
	}
	return heldShards{why: why, told: &feedtype.Error{Code: feedtype.Locked, Object: fmt.Sprintf("feed %q, shard %s", f.name, names), Cause: doing + ": " + why.Error(),
		Next: "it is tried again, and other shards are served meanwhile; " + next}}
}

// errUnplaceable means that the table of places does not take a record's key: PostgreSQL has
// types without bounds, and indexes with one.
var errUnplaceable = errors.New("its key cannot be placed")

// unplaceable names a record that stays in the outbox.
func (f *Feed) unplaceable(shard int, seq int64, err error) error {
	records := f.catalog.DialectFeed().Records()
	of := fmt.Sprintf("%s WHERE order_sequence = %d", dialect.Qualified(f.db.store.Dialect, records), seq)
	return &feedtype.Error{Code: feedtype.Failed, Object: fmt.Sprintf("feed %q, shard %d", f.name, shard), Cause: fmt.Sprintf("record %d of %s cannot be placed, and is left there; the others go on", seq, records), Err: err,
		Next: "look at its key with SELECT * FROM " + of + "; a row with such a key cannot be in the feed: DELETE FROM " + of}
}

// line is where a publisher leaves the shards that others have: they are tried again ever
// less often, and those that have records meanwhile are served.
type line struct {
	mu    sync.Mutex
	held  map[int]*held
	stuck time.Time // when a record that cannot be placed was told of
	met   time.Time // when a key was last waited for in vain
}

// held is a shard in the line.
type held struct {
	since, again, told time.Time
	tries              int
	why                error
}

// patience bounds the wait for a key, where one was waited for in vain not long ago.
func (l *line) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met.IsZero() || time.Since(l.met) > verifyEvery {
		return 0
	}
	return lockPatience
}

func (l *line) meet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met = time.Now()
}

// why is what kept a shard from being had when it was last tried.
func (l *line) why(shard int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[shard]; h != nil {
		return h.why
	}
	return errShardHeld
}

// sorted are shards that have records: due are to be tried, first those that nobody was
// seen to have; the others' time has not come. What is not among them is in line no longer. Of
// those that wait for a key, which costs lockPatience each, one is tried: whose time came first.
func (l *line) sorted(shards []int) (due, rest []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var late, keyed []int
	now, still := time.Now(), make(map[int]*held)
	for _, shard := range shards {
		h := l.held[shard]
		switch {
		case h == nil:
			due = append(due, shard)
			continue
		case now.Before(h.again):
			rest = append(rest, shard)
		case h.why == errKeyHeld:
			keyed = append(keyed, shard)
		default:
			late = append(late, shard)
		}
		still[shard] = h
	}
	l.held = still
	slices.SortStableFunc(keyed, func(a, b int) int { return still[a].again.Compare(still[b].again) })
	first := min(1, len(keyed))
	return slices.Concat(due, late, keyed[:first]), append(rest, keyed[first:]...)
}

// tried takes in how a shard was tried.
func (l *line) tried(shard int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, errShardHeld) {
		delete(l.held, shard)
		return
	}
	h := l.held[shard]
	if h == nil {
		h = &held{since: time.Now()}
		if l.held == nil {
			l.held = make(map[int]*held)
		}
		l.held[shard] = h
	}
	h.tries++
	h.why = whyHeld(err)
	h.again = time.Now().Add(store.Backoff(h.tries))
	if h.why == errKeyHeld { // that took lockPatience of the others' time, who are to have more of it
		h.again = time.Now().Add(5 * lockPatience)
	}
}

// untold are the shards that somebody has had for longer than lockPatience, of which nothing
// was told for a while.
func (l *line) untold() (shards []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for shard, h := range l.held {
		if now.Sub(h.since) >= lockPatience && now.Sub(h.told) >= verifyEvery {
			h.told = now
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// tellStuck tells of a record that cannot be placed, from time to time.
func (f *Feed) tellStuck(err error) {
	l := &f.line
	l.mu.Lock()
	now := time.Now()
	due := now.Sub(l.stuck) >= verifyEvery
	if due {
		l.stuck = now
	}
	l.mu.Unlock()
	if due {
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: err})
	}
}

// tellHeld tells of shards that stay in line.
func (f *Feed) tellHeld(ctx context.Context) {
	shards := f.line.untold()
	if len(shards) == 0 {
		return
	}
	cause := "its records wait"
	if who := f.holderText(ctx, shards[0]); who != "" {
		cause += " for " + who
	}
	f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: f.heldError(cause, f.line.why(shards[0]), shards...)})
}

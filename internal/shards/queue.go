package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// How a mover takes a shard: at once or not at all, or when it has waited.
var (
	atOnce = dialect.LockBounds{NoWait: true, Wait: publish.HeldPatience}
	inTime = dialect.LockBounds{Wait: publish.HeldPatience}
)

// errKeyHeld says, beside publish.ErrHeld, that the shard was to be had, but not the place of one of its keys, which
// stands in another one.
var errKeyHeld = errors.New("another shard's mover has one of its keys")

// beside runs statements of a mover, or of a purge, that may wait for the movers of other
// shards: for a key that has records in two. The first time that takes as long as the database
// has it; from then on as long as a shard.
func (f *Outbox) beside(ctx context.Context, tx dialect.Querier, fn func() error) error {
	err := f.Store.Dialect.Bounded(ctx, tx, f.queue.patience(), fn)
	if f.Store.Dialect.Classify(err) != dialect.ClassLockTimeout {
		return err
	}
	f.queue.meet()
	return fmt.Errorf("%w, %w: %w", publish.ErrHeld, errKeyHeld, err)
}

// whyHeld is errHeld or errKeyHeld.
func whyHeld(err error) error {
	if errors.Is(err, errKeyHeld) {
		return errKeyHeld
	}
	return publish.ErrHeld
}

// heldShards is an errHeld that says all there is to say.
type heldShards struct {
	told *feedtype.Error
	why  error
}

func (h heldShards) Error() string { return h.told.Error() }

func (h heldShards) Unwrap() error { return h.told }

func (h heldShards) Is(target error) bool { return target == publish.ErrHeld || target == h.why }

// heldError names shards that were not to be had, and says why the first one was not.
func (f *Outbox) heldError(doing string, why error, shards ...int) error {
	names := fmt.Sprint(shards[0])
	for _, shard := range shards[1:min(len(shards), maxShardsNamed)] {
		names += fmt.Sprintf(", %d", shard)
	}
	if len(shards) > maxShardsNamed {
		names += ", …"
	}
	next := fmt.Sprintf("`rowfeed status %s` shows who has it, `rowfeed unblock %s --shard %d` ends that", f.Name, f.Name, shards[0])
	if why == errKeyHeld {
		next = fmt.Sprintf("`rowfeed status %s` shows who has which shard, `rowfeed unblock %s --shard N` ends that", f.Name, f.Name)
	}
	return heldShards{why: why, told: &feedtype.Error{Code: feedtype.Locked, Object: fmt.Sprintf("feed %q, shard %s", f.Name, names), Cause: doing + ": " + why.Error(),
		Next: "it is tried again, and other shards are served meanwhile; " + next}}
}

// unplaceable names a record that stays in the outbox.
func (f *Outbox) unplaceable(shard int, seq int64, err error) error {
	records := f.DialectFeed().Records()
	of := fmt.Sprintf("%s WHERE order_sequence = %d", dialect.Qualified(f.Store.Dialect, records), seq)
	return &feedtype.Error{Code: feedtype.Failed, Object: fmt.Sprintf("feed %q, shard %d", f.Name, shard), Cause: fmt.Sprintf("record %d of %s cannot be placed, and is left there; the others go on", seq, records), Err: err,
		Next: "look at its key with SELECT * FROM " + of + "; a row with such a key cannot be in the feed: DELETE FROM " + of}
}

// retryQueue is where a publisher leaves the shards that others have: they are tried again ever
// less often, and those that have records meanwhile are served.
type retryQueue struct {
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
func (l *retryQueue) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met.IsZero() || time.Since(l.met) > publish.VerifyEvery {
		return 0
	}
	return publish.HeldPatience
}

func (l *retryQueue) meet() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met = time.Now()
}

// why is what kept a shard from being had when it was last tried.
func (l *retryQueue) why(shard int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[shard]; h != nil {
		return h.why
	}
	return publish.ErrHeld
}

// sorted are shards that have records: due are to be tried, first those that nobody was
// seen to have; the others' time has not come. What is not among them is in line no longer. Of
// those that wait for a key, which costs lockPatience each, one is tried: whose time came first.
func (l *retryQueue) sorted(shards []int) (due, rest []int) {
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
func (l *retryQueue) tried(shard int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !errors.Is(err, publish.ErrHeld) {
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
		h.again = time.Now().Add(5 * publish.HeldPatience)
	}
}

// untold are the shards that somebody has had for longer than lockPatience, of which nothing
// was told for a while.
func (l *retryQueue) untold() (shards []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for shard, h := range l.held {
		if now.Sub(h.since) >= publish.HeldPatience && now.Sub(h.told) >= publish.VerifyEvery {
			h.told = now
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// tellStuck tells of a record that cannot be placed, from time to time.
func (f *Outbox) tellStuck(err error) {
	l := &f.queue
	l.mu.Lock()
	now := time.Now()
	due := now.Sub(l.stuck) >= publish.VerifyEvery
	if due {
		l.stuck = now
	}
	l.mu.Unlock()
	if due {
		f.Trouble(err)
	}
}

// tellHeld tells of shards that stay in line.
func (f *Outbox) tellHeld(ctx context.Context) {
	shards := f.queue.untold()
	if len(shards) == 0 {
		return
	}
	cause := "its records wait"
	if who := holderText(ctx, f.Feed, shards[0]); who != "" {
		cause += " for " + who
	}
	f.Trouble(f.heldError(cause, f.queue.why(shards[0]), shards...))
}

// Tell tells of what a pass has left.
func (f *Outbox) Tell(ctx context.Context, left error) {
	if errors.Is(left, publish.ErrHeld) {
		f.tellHeld(ctx)
	}
	if errors.Is(left, publish.ErrStuck) {
		f.tellStuck(left)
	}
}

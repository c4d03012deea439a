package ulidfeed

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

// How a mover locks a shard: without waiting, or with a bounded wait.
var (
	noWait      = dialect.LockBounds{NoWait: true, Wait: publish.HeldPatience}
	boundedWait = dialect.LockBounds{Wait: publish.HeldPatience}
)

// errKeyHeld means, together with publish.ErrHeld, that the mover locked its shard, but could not lock the place of a
// key. That place is in another shard.
var errKeyHeld = errors.New("a transaction that moves another shard has locked one of its keys")

// boundedKeyWait runs statements that may wait for movers of other shards, because a key has records in two shards. The
// first such wait in a while is as long as the database's settings allow; after it timed out the bound is
// publish.HeldPatience.
func (f *Outbox) boundedKeyWait(ctx context.Context, tx dialect.Querier, fn func() error) error {
	var err error
	if bounds := f.Store.Dialect.Bounds; bounds != nil {
		err = bounds.Bounded(ctx, tx, f.retries.patience(), fn)
	} else {
		err = fn()
	}
	if f.Store.Dialect.Classify(err) != dialect.ClassLockTimeout {
		return err
	}
	f.retries.noteKeyTimeout()
	return fmt.Errorf("%w, %w: %w", publish.ErrHeld, errKeyHeld, err)
}

// heldReason is errKeyHeld or publish.ErrHeld.
func heldReason(err error) error {
	if errors.Is(err, errKeyHeld) {
		return errKeyHeld
	}
	return publish.ErrHeld
}

// heldShards is a publish.ErrHeld with a complete message.
type heldShards struct {
	message *feedtype.Error
	reason  error
}

func (h heldShards) Error() string { return h.message.Error() }

func (h heldShards) Unwrap() error { return h.message }

func (h heldShards) Is(target error) bool { return target == publish.ErrHeld || target == h.reason }

// heldShardsError names shards that could not be locked. reason is the reason of the first one.
func (f *Outbox) heldShardsError(doing string, reason error, shards ...int) error {
	names := fmt.Sprint(shards[0])
	for _, shard := range shards[1:min(len(shards), maxShardsNamed)] {
		names += fmt.Sprintf(", %d", shard)
	}
	if len(shards) > maxShardsNamed {
		names += ", …"
	}
	next := fmt.Sprintf("`rowfeed status %s` shows the session that holds it, "+
		"`rowfeed unblock %s --shard %d` ends it", f.Name, f.Name, shards[0])
	if reason == errKeyHeld {
		next = fmt.Sprintf("`rowfeed status %s` shows the session that holds each shard, "+
			"`rowfeed unblock %s --shard N` ends it", f.Name, f.Name)
	}
	return heldShards{reason: reason, message: &feedtype.Error{
		Code:   feedtype.Locked,
		Object: fmt.Sprintf("feed %q, shard %s", f.Name, names),
		Cause:  doing + ": " + reason.Error(),
		Next:   "rowfeed tries again, and serves other shards meanwhile; " + next,
	}}
}

// unplaceableError names a record that stays in the outbox.
func (f *Outbox) unplaceableError(shard int, seq int64, err error) error {
	records := f.DialectFeed().Records()
	of := fmt.Sprintf("%s WHERE order_sequence = %d", dialect.Qualified(f.Store.Dialect.Syntax, records), seq)
	return &feedtype.Error{
		Code:   feedtype.Failed,
		Object: shardObject(f.Name, shard),
		Cause:  fmt.Sprintf("record %d of %s cannot be placed and stays there; other records are moved", seq, records),
		Err:    err,
		Next: "look at the record's key: SELECT * FROM " + of + ". A row with such a key cannot be in the feed; " +
			"to give up the record: DELETE FROM " + of,
	}
}

// retryQueue holds the shards that could not be locked. A publisher tries them again with growing pauses, and serves
// other shards meanwhile.
type retryQueue struct {
	mu         sync.Mutex
	held       map[int]*heldShard
	stuck      time.Time // when a record that cannot be placed was last reported
	keyTimeout time.Time // when a wait for a key last timed out
}

// heldShard is a shard in the queue.
type heldShard struct {
	since, next, reported time.Time
	tries                 int
	reason                error
}

// patience bounds the wait for a key if such a wait has timed out recently; 0 sets no bound.
func (q *retryQueue) patience() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keyTimeout.IsZero() || time.Since(q.keyTimeout) > publish.VerifyEvery {
		return 0
	}
	return publish.HeldPatience
}

func (q *retryQueue) noteKeyTimeout() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keyTimeout = time.Now()
}

// reason is why a shard could not be locked at the last attempt.
func (q *retryQueue) reason(shard int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.held[shard]; h != nil {
		return h.reason
	}
	return publish.ErrHeld
}

// split divides shards that have records into those to try now (due) and the rest. Shards that were not held come
// first. Of the shards that wait for a key only one is due, since each attempt may cost publish.HeldPatience. Shards
// that are not among the given ones leave the queue.
func (q *retryQueue) split(shards []int) (due, rest []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var expired, keyed []int
	now, still := time.Now(), make(map[int]*heldShard)
	for _, shard := range shards {
		h := q.held[shard]
		switch {
		case h == nil:
			due = append(due, shard)
			continue
		case now.Before(h.next):
			rest = append(rest, shard)
		case h.reason == errKeyHeld:
			keyed = append(keyed, shard)
		default:
			expired = append(expired, shard)
		}
		still[shard] = h
	}
	q.held = still
	slices.SortStableFunc(keyed, func(a, b int) int { return still[a].next.Compare(still[b].next) })
	first := min(1, len(keyed))
	return slices.Concat(due, expired, keyed[:first]), append(rest, keyed[first:]...)
}

// record notes the result of an attempt to move a shard.
func (q *retryQueue) record(shard int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !errors.Is(err, publish.ErrHeld) {
		delete(q.held, shard)
		return
	}
	h := q.held[shard]
	if h == nil {
		h = &heldShard{since: time.Now()}
		if q.held == nil {
			q.held = make(map[int]*heldShard)
		}
		q.held[shard] = h
	}
	h.tries++
	h.reason = heldReason(err)
	h.next = time.Now().Add(store.Backoff(h.tries))
	if h.reason == errKeyHeld { // the attempt delayed the other shards by HeldPatience
		h.next = time.Now().Add(5 * publish.HeldPatience)
	}
}

// unreported lists the shards that have been held for HeldPatience and were not reported for VerifyEvery.
func (q *retryQueue) unreported() (shards []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for shard, h := range q.held {
		if now.Sub(h.since) >= publish.HeldPatience && now.Sub(h.reported) >= publish.VerifyEvery {
			h.reported = now
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// reportStuck reports a record that cannot be placed to the Observer, at most once in VerifyEvery.
func (f *Outbox) reportStuck(err error) {
	q := &f.retries
	q.mu.Lock()
	now := time.Now()
	due := now.Sub(q.stuck) >= publish.VerifyEvery
	if due {
		q.stuck = now
	}
	q.mu.Unlock()
	if due {
		f.Trouble(err)
	}
}

// reportHeld reports shards that stay in the queue to the Observer.
func (f *Outbox) reportHeld(ctx context.Context) {
	shards := f.retries.unreported()
	if len(shards) == 0 {
		return
	}
	cause := "its records cannot be moved yet"
	if holder := holderText(ctx, f.Feed, shards[0]); holder != "" {
		cause += " because of " + holder
	}
	f.Trouble(f.heldShardsError(cause, f.retries.reason(shards[0]), shards...))
}

// Tell reports the shards and records that a pass has left.
func (f *Outbox) Tell(ctx context.Context, left error) {
	if errors.Is(left, publish.ErrHeld) {
		f.reportHeld(ctx)
	}
	if errors.Is(left, publish.ErrStuck) {
		f.reportStuck(left)
	}
}

package ulidfeed

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
)

// ULIDs are the ranges that one call of Locks.Lock allocated in a transaction: dialect.ULIDsPerLock ULIDs of each
// shard. They may be used in that transaction only.
type ULIDs struct {
	feed   *Locks
	tx     dialect.Querier
	ranges []ulidRange
}

// ulidRange is the range of one shard.
type ulidRange struct {
	shard int
	first dialect.ULIDState
	nonce string // written into the shard's row by this Lock; Verify looks for it
}

// Locks locks shards for the writers of one feed, inside their transactions, and gives them ULIDs.
type Locks struct {
	*catalog.Feed
	Wait, Idle time.Duration // Config.LockWait and LockIdle of package rowfeed
}

// Lock locks the shards for the caller's transaction, and allocates ULIDs in each. See rowfeed.Feed.Lock.
func (f *Locks) Lock(ctx context.Context, tx dialect.Querier, req feedtype.LockRequest) (*ULIDs, error) {
	feed := f.DialectFeed()
	if feed.ULIDs == nil || feed.Outbox {
		next := "write to the table, and record the change as the feed's mode and capture demand"
		if feed.Outbox {
			next = "insert the row, and append a record of it with AppendOutbox unless triggers do so"
		}
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "lock: writers of this feed do not take positions; rowfeed gives positions after the commit",
			Err:    errors.ErrUnsupported,
			Next:   next,
		}
	}
	shards := slices.Compact(slices.Sorted(slices.Values(req.Shards)))
	if len(shards) == 0 {
		shards = []int{0}
	}
	all := &ULIDs{feed: f, tx: tx}
	bounds, began := f.lockBounds(req), time.Now()
	for _, shard := range shards {
		left := bounds
		if left.Wait > 0 {
			left.Wait = max(left.Wait-time.Since(began), time.Millisecond)
		}
		taken, err := f.lockShard(ctx, tx, feed, shard, left, req.Hint)
		if err != nil {
			return nil, f.lockError(ctx, tx, shard, err)
		}
		all.ranges = append(all.ranges, taken)
	}
	return all, nil
}

// lockBounds are the bounds of a request. Default bounds apply only if the database can set them; a bound that the
// application demanded and the database cannot set is an error.
func (f *Locks) lockBounds(req feedtype.LockRequest) (b dialect.LockBounds) {
	wait, idle := cmp.Or(req.Wait, f.Wait), cmp.Or(req.Idle, f.Idle)
	b.Wait, b.Tighter = max(cmp.Or(wait, dialect.LockWait), 0), wait == 0
	b.Idle, b.Demanded = max(cmp.Or(idle, dialect.LockIdle), 0), idle > 0
	return b
}

func (f *Locks) lockShard(
	ctx context.Context, tx dialect.Querier, feed *dialect.Feed, shard int, bounds dialect.LockBounds, hint time.Time,
) (ulidRange, error) {
	var token [12]byte
	rand.Read(token[:])
	taken := ulidRange{shard: shard, nonce: base64.RawURLEncoding.EncodeToString(token[:])}
	var hintMillis int64
	if !hint.IsZero() {
		hintMillis = max(hint.UnixMilli(), 1)
	}
	var undurable, err error
	taken.first, undurable, err = f.Store.Dialect.TakeShard(ctx, tx, feed, shard, bounds, hintMillis, taken.nonce)
	switch {
	case errors.Is(err, dialect.ErrHintAhead):
		err = &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  "hint",
			Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("the hint %s is more than %s ahead of the database's clock; "+
				"later ULIDs of the shard could not have earlier times",
				hint.UTC().Format(time.RFC3339Nano), dialect.MaxHintAhead),
			Next: "leave the hint out, or correct the clock that it comes from; " +
				"then roll the transaction back and begin it again",
		}
	case errors.Is(err, dialect.ErrNoULIDsLeft):
		err = &feedtype.Error{
			Code:   feedtype.Refused,
			Object: shardObject(f.Name, shard),
			Cause: "no ULID is left above a row of the shard, which has the highest possible ULID, " +
				"or a ULID of the last possible millisecond",
			Next: "rowfeed never gave that ULID. `rowfeed check " + f.Name + "` names the shard: " +
				"delete the row, then roll the transaction back and begin it again",
		}
	case err == nil && undurable != nil && !f.Store.UnsafeDurability:
		err = history.UnsafeDurability(undurable)
	}
	return taken, err
}

func shardObject(feed string, shard int) string { return fmt.Sprintf("feed %q, shard %d", feed, shard) }

// lockError explains a database's error to the caller of Lock or Verify.
func (f *Locks) lockError(ctx context.Context, tx dialect.Querier, shard int, err error) error {
	e := &feedtype.Error{Object: shardObject(f.Name, shard), Err: err}
	switch class := f.Store.Dialect.Classify(err); {
	case errors.Is(err, feedtype.ErrNoULID):
		return f.HoldsNoULID(shard, err)
	case errors.Is(err, dialect.ErrNoTransaction):
		e.Code, e.Param = feedtype.InvalidRequest, "tx"
		e.Cause = "there is no open transaction, so the lock would end with its own statement"
		e.Next = "begin a transaction, lock, insert, commit"
	case errors.Is(err, sql.ErrTxDone):
		e.Code, e.Param = feedtype.InvalidRequest, "tx"
		e.Cause = "the transaction, or this nested transaction, has ended, and its ULIDs cannot be verified any more"
		e.Next = "lock in the transaction that inserts the rows; " +
			"with a nested transaction, verify before it is released, or lock in the outer one"
	case class == dialect.ClassUndefined:
		e.Code = feedtype.UnknownFeed
		e.Cause = "the feed does not exist any more, or is still being created, or its function for ULIDs is missing"
		e.Next = "roll the transaction back; `rowfeed feed list` shows the feeds, " +
			"`rowfeed feed upgrade " + f.Name + "` creates what is missing"
	case class == dialect.ClassPermission:
		e.Code = feedtype.Refused
		e.Cause = "this login may not take ULIDs of the feed"
		e.Next = "run `rowfeed feed grant " + f.Name + " --writer LOGIN`"
	case errors.Is(err, errors.ErrUnsupported):
		e.Code, e.Param = feedtype.Refused, "idle"
		e.Cause = "the database cannot bound the idle time of a single transaction"
		e.Next = "bound the session as the message says, or leave Idle out"
	case errors.Is(err, dialect.ErrLockWait), class == dialect.ClassLockTimeout:
		f.explainLockWait(ctx, tx, shard, e)
	case class == dialect.ClassRetry:
		e.Code = feedtype.Locked
		e.Cause = "the transaction cannot continue: there was a deadlock or a serialization failure, " +
			"or the transaction has read before another one wrote"
		e.Next = "roll back, and begin the whole transaction again; take several shards with one Lock, " +
			"use READ COMMITTED, and on SQLite begin with BEGIN IMMEDIATE (_txlock=immediate)"
	default:
		return f.Store.Fail(e.Object, "lock", err)
	}
	return e
}

// explainLockWait completes the error of a wait that timed out. Some databases, depending on their settings, end the
// whole transaction; so the transaction itself is tested.
func (f *Locks) explainLockWait(ctx context.Context, tx dialect.Querier, shard int, e *feedtype.Error) {
	e.Code = feedtype.Locked
	e.Cause = "another transaction has held the shard for longer than this one may wait"
	e.Next = "the transaction can continue: lock again, or roll back and try again later"
	if f.Store.Dialect.Usable(ctx, tx) != nil {
		e.Next = "the transaction cannot continue: roll it back and begin it again"
	}
	e.Next += "; `rowfeed status` shows the session that holds the shard, `rowfeed unblock` ends it"
	if holder := holderText(ctx, f.Feed, shard); holder != "" {
		e.Cause += ": " + holder
	}
}

// At is rowfeed.ULIDs.At.
func (u *ULIDs) At(shard int, i int64) ([16]byte, error) {
	r, err := u.of(shard)
	if err != nil {
		return [16]byte{}, err
	}
	if i < 0 || i >= dialect.ULIDsPerLock {
		return [16]byte{}, feedtype.Invalid("i", "%d is not between 0 and %d: lock again to get more ULIDs",
			i, int64(dialect.ULIDsPerLock-1))
	}
	r.first.Low += i
	return r.first.Position().Bytes(), nil
}

// HighLow is rowfeed.ULIDs.HighLow.
func (u *ULIDs) HighLow(shard int) (high, low int64, err error) {
	r, err := u.of(shard)
	return r.first.High, r.first.Low, err
}

// Time is rowfeed.ULIDs.Time.
func (u *ULIDs) Time(shard int) (time.Time, error) {
	r, err := u.of(shard)
	return time.UnixMilli(r.first.TimeMillis).UTC(), err
}

func (u *ULIDs) of(shard int) (ulidRange, error) {
	i := slices.IndexFunc(u.ranges, func(r ulidRange) bool { return r.shard == shard })
	if i < 0 {
		return ulidRange{}, feedtype.Invalid("shard",
			"%d is not locked: add it to the shards of the call of Lock", shard)
	}
	return u.ranges[i], nil
}

// Verify is rowfeed.ULIDs.Verify.
func (u *ULIDs) Verify(ctx context.Context) error {
	for _, r := range u.ranges {
		nonces, err := u.feed.Store.Dialect.LockNonces(ctx, u.tx, u.feed.DialectFeed(), r.shard)
		if err != nil {
			return u.feed.lockError(ctx, u.tx, r.shard, err)
		}
		if !slices.Contains(strings.Fields(nonces), r.nonce) {
			return &feedtype.Error{
				Code:   feedtype.Conflict,
				Object: shardObject(u.feed.Name, r.shard),
				Cause: fmt.Sprintf("the ULIDs of this Lock may not be used: "+
					"a savepoint from before the Lock was rolled back, "+
					"or the transaction has locked the shard %d times since", dialect.MaxNonces),
				Next: "roll the transaction back. Lock once, and outside of savepoints: " +
					"the ULIDs of one Lock are enough for any transaction",
			}
		}
	}
	return nil
}

package shards

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

// takenULIDs are those that a transaction has taken with Feed.Lock, good for that transaction
// alone: dialect.ULIDsPerLock of each shard.
type ULIDs struct {
	feed   *Locks
	tx     dialect.Querier
	shards []taken
}

// taken is what was taken of one shard.
type taken struct {
	shard   int
	first   dialect.ULIDState
	witness string
}

// locks lets the writers of one feed take turns, shard by shard, and gives them ULIDs inside their transactions.
type Locks struct {
	*catalog.Feed
	Wait, Idle time.Duration // Config.LockWait and LockIdle of package rowfeed
}

// Lock locks the shards for the caller's transaction, and takes ULIDs of each. See rowfeed.Feed.Lock.
func (f *Locks) Lock(ctx context.Context, tx dialect.Querier, req feedtype.LockRequest) (*ULIDs, error) {
	feed := f.DialectFeed()
	if feed.ULIDs == nil || feed.Outbox {
		next := "write to the table, and record it as the feed's mode and capture want it"
		if feed.Outbox {
			next = "insert the row, and append a record of it with AppendOutbox, unless triggers do"
		}
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "lock: positions come after the commit, not from writers", Err: errors.ErrUnsupported, Next: next}
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
		t, err := f.lockShard(ctx, tx, feed, shard, left, req.Hint)
		if err != nil {
			return nil, f.lockError(ctx, tx, shard, err)
		}
		all.shards = append(all.shards, t)
	}
	return all, nil
}

// lockBounds are those that a request asks for. What nobody has asked for is done where it
// can be.
func (f *Locks) lockBounds(req feedtype.LockRequest) (b dialect.LockBounds) {
	wait, idle := cmp.Or(req.Wait, f.Wait), cmp.Or(req.Idle, f.Idle)
	b.Wait, b.Tighter = max(cmp.Or(wait, dialect.LockWait), 0), wait == 0
	b.Idle, b.Demanded = max(cmp.Or(idle, dialect.LockIdle), 0), idle > 0
	return b
}

func (f *Locks) lockShard(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, shard int, bounds dialect.LockBounds, hint time.Time) (taken, error) {
	var token [12]byte
	rand.Read(token[:])
	t := taken{shard: shard, witness: base64.RawURLEncoding.EncodeToString(token[:])}
	var hintMillis int64
	if !hint.IsZero() {
		hintMillis = max(hint.UnixMilli(), 1)
	}
	var forgetful, err error
	t.first, forgetful, err = f.Store.Dialect.TakeShard(ctx, tx, feed, shard, bounds, hintMillis, t.witness)
	if errors.Is(err, dialect.ErrHintAhead) {
		err = &feedtype.Error{Code: feedtype.InvalidRequest, Param: "hint", Object: feedtype.FeedObject(f.Name), Cause: fmt.Sprintf("the hint %s is more than %s ahead of the database's clock: the shard's time could not go back from it",
			hint.UTC().Format(time.RFC3339Nano), dialect.MaxHintAhead), Next: "leave the hint out, or mend the clock that it comes from; then roll the transaction back and begin again"}
	}
	if errors.Is(err, dialect.ErrNoULIDsLeft) {
		err = &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("feed %q, shard %d", f.Name, shard), Cause: "a row of the shard has the last ULID that there is, or one of its last millisecond, and nothing is above it",
			Next: "delete the row, which nobody was given its ULID for: `rowfeed check " + f.Name + "` names the shard; then roll the transaction back and begin again"}
	}
	if err == nil && forgetful != nil && !f.Store.UnsafeDurability {
		err = history.UnsafeDurability(forgetful)
	}
	return t, err
}

// lockError says what a database's error means for whoever wants a lock.
func (f *Locks) lockError(ctx context.Context, tx dialect.Querier, shard int, err error) error {
	object := fmt.Sprintf("feed %q, shard %d", f.Name, shard)
	switch class := f.Store.Dialect.Classify(err); {
	case errors.Is(err, feedtype.ErrNoULID):
		return f.HoldsNoULID(shard, err)
	case errors.Is(err, dialect.ErrNoTransaction):
		return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "tx", Object: object, Cause: "a lock would end with its own statement", Err: err,
			Next: "begin a transaction, lock, insert, commit"}
	case errors.Is(err, sql.ErrTxDone):
		return &feedtype.Error{Code: feedtype.InvalidRequest, Param: "tx", Object: object, Cause: "the transaction has ended, or the nested one that this is, and the ULIDs can be asked for no more", Err: err,
			Next: "lock in the transaction that inserts the rows; in a nested one verify before it is released, or lock in the one around it"}
	case class == dialect.ClassUndefined:
		return &feedtype.Error{Code: feedtype.UnknownFeed, Object: object, Cause: "there is no such feed any more, or it is being made, or what takes its ULIDs is missing", Err: err,
			Next: "roll the transaction back; `rowfeed feed list` shows the feeds, `rowfeed feed upgrade " + f.Name + "` makes what is missing"}
	case class == dialect.ClassPermission:
		return &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "this login may not take its ULIDs", Err: err, Next: "run `rowfeed feed grant " + f.Name + " --writer LOGIN`"}
	case errors.Is(err, errors.ErrUnsupported):
		return &feedtype.Error{Code: feedtype.Refused, Param: "idle", Object: object, Cause: "the transaction cannot be bounded as it is asked for", Err: err,
			Next: "bound the session as the message says, or leave Idle out"}
	case errors.Is(err, dialect.ErrLockWait), class == dialect.ClassLockTimeout:
		return f.lockedOut(ctx, tx, object, shard, err)
	case class == dialect.ClassRetry:
		return &feedtype.Error{Code: feedtype.Locked, Object: object, Cause: "the transaction cannot go on: a deadlock, or a serialization failure, or it has read before another one wrote", Err: err,
			Next: "roll back, and begin the whole transaction again; take several shards with one Lock, use READ COMMITTED, and on SQLite begin with BEGIN IMMEDIATE (_txlock=immediate)"}
	}
	return f.Store.Fail(object, "lock", err)
}

// lockedOut is the error of a wait that has run out. Whether the transaction can go on is
// asked of itself: some databases end it, as they are set.
func (f *Locks) lockedOut(ctx context.Context, tx dialect.Querier, object string, shard int, err error) error {
	e := &feedtype.Error{Code: feedtype.Locked, Object: object, Cause: "another transaction has held the shard for longer than this one may wait", Err: err,
		Next: "the transaction is as it was before: lock again, or roll back and begin again later; `rowfeed status` shows who has the shard, `rowfeed unblock` ends it"}
	if f.Store.Dialect.Usable(ctx, tx) != nil {
		e.Next = "the transaction cannot go on: roll it back and begin again; `rowfeed status` shows who has the shard, `rowfeed unblock` ends it"
	}
	if who := holderText(ctx, f.Feed, shard); who != "" {
		e.Cause += ": " + who
	}
	return e
}

// At is that of rowfeed.ULIDs.
func (u *ULIDs) At(shard int, i int64) ([16]byte, error) {
	t, err := u.of(shard)
	if err != nil {
		return [16]byte{}, err
	}
	if i < 0 || i >= dialect.ULIDsPerLock {
		return [16]byte{}, feedtype.Invalid("i", "%d is not between 0 and %d: lock again for more", i, int64(dialect.ULIDsPerLock-1))
	}
	t.first.Low += i
	return t.first.Position().Bytes(), nil
}

// HighLow is that of rowfeed.ULIDs.
func (u *ULIDs) HighLow(shard int) (high, low int64, err error) {
	t, err := u.of(shard)
	return t.first.High, t.first.Low, err
}

// Time is that of rowfeed.ULIDs.
func (u *ULIDs) Time(shard int) (time.Time, error) {
	t, err := u.of(shard)
	return time.UnixMilli(t.first.TimeMillis).UTC(), err
}

func (u *ULIDs) of(shard int) (taken, error) {
	i := slices.IndexFunc(u.shards, func(t taken) bool { return t.shard == shard })
	if i < 0 {
		return taken{}, feedtype.Invalid("shard", "%d was not locked by this call", shard)
	}
	return u.shards[i], nil
}

// Verify is that of rowfeed.ULIDs.
func (u *ULIDs) Verify(ctx context.Context) error {
	for _, t := range u.shards {
		witness, err := u.feed.Store.Dialect.Witness(ctx, u.tx, u.feed.DialectFeed(), t.shard)
		if err != nil {
			return u.feed.lockError(ctx, u.tx, t.shard, err)
		}
		if !slices.Contains(strings.Fields(witness), t.witness) {
			return &feedtype.Error{Code: feedtype.Conflict, Object: fmt.Sprintf("feed %q, shard %d", u.feed.Name, t.shard),
				Cause: fmt.Sprintf("its ULIDs were taken back: a savepoint from before the Lock was rolled back; or the transaction has locked the shard %d times since, and they are not known any more", dialect.Witnesses),
				Next:  "roll the transaction back; lock outside of savepoints, and once: the ULIDs of one Lock are enough for any transaction"}
		}
	}
	return nil
}

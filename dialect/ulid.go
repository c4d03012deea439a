package dialect

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Locks are the operations of writers on shards with ULIDs. The transaction may be the application's own, in any
// isolation level.
type Locks interface {
	// LockShard locks a shard's row in the table of shards until the transaction ends. It inserts the row if
	// there is none. The error is [ErrNoTransaction] if every statement commits by itself; then nothing is
	// locked. It is [ErrLockWait], or of class [ClassLockTimeout], if the wait was too long. The bound on waits
	// may stay set until the transaction ends.
	LockShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds) (Shard, error)
	// Usable returns nil in a transaction that can continue. It changes nothing.
	Usable(ctx context.Context, tx Querier) error
	// TakeShard locks a shard as LockShard does, takes ULIDsPerLock of its ULIDs, and adds the nonce word to
	// the shard's row, where LockNonces finds it. The ULIDs are above the shard's state and above the greatest
	// ULID of its rows, as far as the transaction sees them. On databases with functions, one function does all
	// of this, so a writer needs no right on the table of shards. hintMillis is Unix time in milliseconds; 0
	// means the database's clock.
	//
	// The errors are those of LockShard, [ErrHintAhead], [ErrNoULIDsLeft], and one of class [ClassUndefined] if
	// the feed does not exist or is not ready. If there is an error, no ULID was taken.
	//
	// Readers see a position as soon as the application commits, so the commit must be on the disk by then. If
	// a setting can be raised for the transaction, TakeShard raises it. forgetful names a setting that cannot,
	// and under which a crash could undo the commit.
	TakeShard(ctx context.Context, tx Querier, f *Feed, shard int, bounds LockBounds, hintMillis int64,
		word string) (first ULIDState, forgetful, err error)
	// LockNonces returns the nonces that the last TakeShards have added to the shard's row, as the transaction
	// sees it: the newest first, separated by spaces. It is empty if the shard has no row. The error is
	// [ErrNoTransaction] if the database can tell.
	LockNonces(ctx context.Context, tx Querier, f *Feed, shard int) (string, error)
	// AdvanceShard writes the state and the nonces of a shard that LockShard has locked.
	AdvanceShard(ctx context.Context, tx Querier, f *Feed, locked Shard, next ULIDState, nonces string) error
}

// Routines is for databases with routines, by which writers without this library take ULIDs.
type Routines interface {
	// ULIDUp returns the statements that make or replace the routines with which writers without this library
	// take ULIDs. ULIDDown removes them. ULIDProblems says which
	// of them are missing, and which differ from those of ULIDUp.
	ULIDUp(f *Feed) []Step
	ULIDDown(f *Feed) []Step
	ULIDProblems(ctx context.Context, q Querier, f *Feed) (missing, other []string, err error)
	// LockRights are the rights that a login needs to take a feed's ULIDs with the feed's functions.
	LockRights(f *Feed) []Right
}

// ULIDsPerLock is how many ULIDs one call of Lock takes.
const ULIDsPerLock = 100_000_000_000

// MaxHintAhead is how far a time hint may be ahead of the database's clock.
const MaxHintAhead = time.Minute

// MaxNonces is how many nonces of Locks a shard's row keeps: the last ones.
const MaxNonces = 8

// MaxULIDs is how many ULIDs can be taken at once.
const MaxULIDs = 1 << 62

// ULIDState says which ULID of a shard is given next. The zero state is that of a shard that has given none.
type ULIDState struct {
	TimeMillis int64 // the time of the next ULID, in Unix time
	// High has the first eight bytes of the next ULID: 48 bits of TimeMillis and 16 random bits. Low has the
	// last eight bytes, in two's complement: adding 1 gives the following ULID.
	High, Low int64
}

// ULIDRandom are random bits for a new millisecond: 16 for High and 64 for Low. Bit 62 of Low is not used.
type ULIDRandom [10]byte

// LastULIDMillis is the latest time that a ULID can have. It is in the year 10889.
const LastULIDMillis = 1<<48 - 1

var errTooMany = errors.New("between 1 and 2^62 ULIDs can be taken at once")

// Take takes count ULIDs: first, and those that follow by adding to Low. next is the state after them.
//
// If timeMillis is later than the state's time, a new millisecond begins, with new random bits. Otherwise the
// ULIDs continue in the state's millisecond. So the ULIDs of a shard grow whatever the clock does. If count
// ULIDs do not fit into the millisecond any more, the next one begins. The errors are ErrNoULIDsLeft, and one
// for a count outside 1 to 2^62.
func (s ULIDState) Take(timeMillis int64, random ULIDRandom, count int64) (first, next ULIDState, err error) {
	if count < 1 || count > MaxULIDs {
		return s, s, errTooMany
	}
	timeMillis = max(timeMillis, 1) // for a time hint before 1970 in a shard that has given nothing
	switch fits := s.Low&math.MaxInt64 <= math.MaxInt64-count; {
	case timeMillis > s.TimeMillis:
		s = freshULIDs(timeMillis, random)
	case !fits:
		s = freshULIDs(s.TimeMillis+1, random)
	}
	if s.TimeMillis > LastULIDMillis {
		return s, s, ErrNoULIDsLeft
	}
	next = s
	next.Low += count
	return s, next, nil
}

// freshULIDs begins a millisecond. Bit 62 of Low is 0, so 2^62 ULIDs fit before the lower 63 bits overflow.
func freshULIDs(timeMillis int64, random ULIDRandom) ULIDState {
	return ULIDState{
		TimeMillis: timeMillis,
		High:       timeMillis<<16 | int64(binary.BigEndian.Uint16(random[:2])),
		Low:        int64(binary.BigEndian.Uint64(random[2:]) &^ (1 << 62)),
	}
}

// Past returns the state, or one above greatest if the next ULID of the state would not be above it. greatest
// is the greatest ULID of the shard's rows. It may have been made elsewhere, or kept by the writer when a
// rollback to a savepoint restored an older state. The next ULIDs must be above all that readers may have
// passed.
func (s ULIDState) Past(greatest feedtype.Position) ULIDState {
	if greatest.Above(s.Given()) {
		return ULIDsAbove(greatest)
	}
	return s
}

// ULIDsAbove returns the state of a shard whose greatest ULID is last, which may have been made elsewhere. The
// next ULID begins a millisecond above that of last. If there is none, Take of the state fails.
func ULIDsAbove(last feedtype.Position) ULIDState {
	ms := int64(last.High>>16) + 1
	if ms > LastULIDMillis {
		return ULIDState{TimeMillis: LastULIDMillis, High: -1, Low: -1}
	}
	return ULIDState{TimeMillis: ms, High: ms << 16, Low: -1}
}

// Position returns the position of the ULID that is given next.
func (s ULIDState) Position() feedtype.Position {
	return feedtype.Position{High: uint64(s.High), Low: uint64(s.Low)}
}

// Given returns the highest position that may have been given.
func (s ULIDState) Given() feedtype.Position {
	if s == (ULIDState{}) {
		return feedtype.Position{}
	}
	return s.Position().Before()
}

// BackfillBatch says which rows back-fill places behind the head of an outbox feed. These are rows with neither an
// outbox record nor a place (see [Feed.Placed]). Their ULIDs are below the live part of the shard, which begins
// at shards.live_from. The shard must have been prepared by a run of back-fill: shards.filled_by is not 0. From
// the highest bits to the lowest, such a ULID consists of
//
//	time       48 bits, below live_from
//	run        16 bits: the number of the back-fill, from 1
//	batch      40 bits, from 1
//	number     24 bits: that of the row in its batch, from 1
//
// So no two rows get the same ULID. In a shard that an earlier run has prepared, the rows of a later run are
// above all rows of the earlier one.
type BackfillBatch struct {
	Run, Batch int64
	Time       *Column // of the source; if nil, all rows get the latest time
	// Rows returns conditions on the rows of the source (alias t).
	Rows func(b *Builder) []string
}

// MaxRuns is how many times a feed can be back-filled.
const MaxRuns = 1<<16 - 1

// These are the default bounds of transactions that take ULIDs.
const (
	LockWait = 10 * time.Second
	LockIdle = time.Minute
)

// LockBounds bound a transaction that takes ULIDs. The zero value leaves the session's own settings as they
// are.
type LockBounds struct {
	// Wait is the maximum wait for another transaction's lock, rounded up to the database's unit. It does not
	// change other waits of the session. With Tighter, the session's own setting holds if it is tighter.
	Wait    time.Duration
	Tighter bool
	// NoWait is for transactions of rowfeed itself, in READ COMMITTED. They do not wait for a shard that
	// another transaction has locked. They wait, up to Wait, only for a transaction that inserts the shard's
	// row. On a database with a single write lock, the transaction has got that lock when it began.
	NoWait bool
	// Idle is how long the transaction may be idle until its end. A tighter setting of the session holds. A
	// database that cannot bound a single transaction ignores Idle. With Demanded it returns an error instead,
	// which wraps errors.ErrUnsupported, unless the session's own bound is tight enough.
	Idle     time.Duration
	Demanded bool
}

// Shard is a row of the table of shards, as LockShard has read it.
type Shard struct {
	ULIDState
	Shard  int
	Nonces string // the column witness: lock nonces, newest first, as AdvanceShard or TakeShard wrote them
	Now    int64  // the time of the database's clock, in microseconds since the Unix epoch
	// Transaction identifies this transaction, on databases that can.
	Transaction string
}

package dialect

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ULIDsPerLock is how many ULIDs one call of Lock takes.
const ULIDsPerLock = 100_000_000_000

// MaxHintAhead is how far a time hint may be ahead of the database's clock.
const MaxHintAhead = time.Minute

// Witnesses is how many nonces of Locks a shard's row keeps: the last ones.
const Witnesses = 8

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

package dialect

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ULIDsPerLock is how many ULIDs one call of a Lock takes.
const ULIDsPerLock = 100_000_000_000

// MaxHintAhead is how far a hint may be ahead of the database's clock.
const MaxHintAhead = time.Minute

// Witnesses is how many words of a shard's witness are kept: the last ones.
const Witnesses = 8

// MaxULIDs is how many may be taken at once.
const MaxULIDs = 1 << 62

// ULIDState is how far the ULIDs of a shard are. The zero state is that of a shard that has
// given none.
type ULIDState struct {
	TimeMillis int64 // Unix time: that of the ULID to be given next
	// High are the first eight bytes of that ULID, 48 bits of TimeMillis and 16 random ones;
	// Low are the last eight, in two's complement: counting up counts on from ULID to ULID.
	High, Low int64
}

// ULIDRandom are random bits for a new millisecond: 16 for High, and 64 for Low, of which
// bit 62 is not used.
type ULIDRandom [10]byte

// LastULIDMillis is the last time that a ULID can have, in the year 10889.
const LastULIDMillis = 1<<48 - 1

// errTooMany is about a number of ULIDs.
var errTooMany = errors.New("between 1 and 2^62 ULIDs can be taken at once")

// Take takes count ULIDs, those from First on: First, First+1 and so on, by adding to Low.
// next is the state behind them. A later time than the state's begins a new millisecond
// with fresh bits; an equal or earlier one counts on, so that the ULIDs of a shard grow
// whatever the clock does. Where count does not fit any more, the next millisecond begins.
func (s ULIDState) Take(timeMillis int64, random ULIDRandom, count int64) (first, next ULIDState, err error) {
	if count < 1 || count > MaxULIDs {
		return s, s, errTooMany
	}
	timeMillis = max(timeMillis, 1) // for a hint of long ago, where nothing was given yet
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

// freshULIDs begins a millisecond. With bit 62 clear, 2^62 can be counted before the lower
// 63 bits overflow.
func freshULIDs(timeMillis int64, random ULIDRandom) ULIDState {
	return ULIDState{
		TimeMillis: timeMillis,
		High:       timeMillis<<16 | int64(binary.BigEndian.Uint16(random[:2])),
		Low:        int64(binary.BigEndian.Uint64(random[2:]) &^ (1 << 62)),
	}
}

// Past is the state, or one above the greatest ULID of the shard's rows where that is not below
// it: a ULID that was made elsewhere, or kept when a savepoint took its state back. What is
// taken next must not be below what readers have passed.
func (s ULIDState) Past(greatest feedtype.Position) ULIDState {
	if greatest.Above(s.Given()) {
		return ULIDsAbove(greatest)
	}
	return s
}

// ULIDsAbove is the state of a shard that has ULIDs up to last, which may have been made
// elsewhere: whatever is taken from it begins a millisecond above last's.
// Where there is nothing above, Take is refused.
func ULIDsAbove(last feedtype.Position) ULIDState {
	ms := int64(last.High>>16) + 1
	if ms > LastULIDMillis {
		return ULIDState{TimeMillis: LastULIDMillis, High: -1, Low: -1}
	}
	return ULIDState{TimeMillis: ms, High: ms << 16, Low: -1}
}

// Position is that of the ULID which the state gives next.
func (s ULIDState) Position() feedtype.Position {
	return feedtype.Position{High: uint64(s.High), Low: uint64(s.Low)}
}

// Given is the highest position that may have been given.
func (s ULIDState) Given() feedtype.Position {
	if s == (ULIDState{}) {
		return feedtype.Position{}
	}
	return s.Position().Before()
}

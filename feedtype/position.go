package feedtype

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
)

// Position is a position in a feed: the number that a publisher of a sequence feed has assigned, or a ULID. The zero
// Position is below all others. [Position.Compare] orders the positions of a feed, and in a ULID feed those of one
// shard.
type Position struct {
	High uint64 // the first eight bytes of a ULID; 0 for a number
	Low  uint64 // the last eight bytes of a ULID, or the number
}

// LastPosition is above every position.
var LastPosition = Position{math.MaxUint64, math.MaxUint64}

// LowestULID is below every ULID that rowfeed assigns.
var LowestULID = Position{High: 1}

// Numbered returns the position with this number.
func Numbered(n int64) Position { return Position{Low: uint64(n)} }

// Number returns the position as a number. For a ULID, and for a number above math.MaxInt64, it returns
// math.MaxInt64.
func (p Position) Number() int64 {
	if p.High != 0 || p.Low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(p.Low)
}

// IsULID tells whether p is a ULID. A ULID of the first millisecond of 1970 may not be recognized; no clock produces
// it.
func (p Position) IsULID() bool { return p.High != 0 }

// IsZero tells whether p is below every position.
func (p Position) IsZero() bool { return p == Position{} }

// Compare returns a negative number if p is below q, 0 if they are equal, and a positive number if p is above q.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.High, q.High), cmp.Compare(p.Low, q.Low))
}

// Above tells whether p is above q.
func (p Position) Above(q Position) bool { return p.Compare(q) > 0 }

// Max returns the higher of two positions.
func (p Position) Max(q Position) Position {
	if q.Above(p) {
		return q
	}
	return p
}

// Min returns the lower of two positions.
func (p Position) Min(q Position) Position {
	if p.Above(q) {
		return q
	}
	return p
}

// Before returns the position just below p, which must not be zero.
func (p Position) Before() Position {
	if p.Low == 0 {
		p.High--
	}
	p.Low--
	return p
}

// Bytes returns the 16 bytes of a ULID.
func (p Position) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], p.High)
	binary.BigEndian.PutUint64(b[8:], p.Low)
	return b
}

// ULIDPosition returns the position of a ULID.
func ULIDPosition(u [16]byte) Position {
	return Position{binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])}
}

// String returns the position as entries and cursors show it: the 26 characters of a ULID, or the digits of the
// number.
func (p Position) String() string {
	if p.IsULID() {
		return ulid.ULID(p.Bytes()).String()
	}
	return strconv.FormatUint(p.Low, 10)
}

// Append appends the text of String.
func (p Position) Append(dst []byte) []byte {
	if !p.IsULID() {
		return strconv.AppendUint(dst, p.Low, 10)
	}
	dst = append(dst, make([]byte, ulid.EncodedSize)...)
	_ = ulid.ULID(p.Bytes()).MarshalTextTo(dst[len(dst)-ulid.EncodedSize:]) // cannot fail: dst has the space
	return dst
}

// ordered is the number of digits of the largest int64.
const ordered = 19

// Ordered returns the position as text that sorts like positions do.
func (p Position) Ordered() string {
	if p.IsULID() {
		return p.String()
	}
	return fmt.Sprintf("%0*d", ordered, p.Low)
}

// ParsePosition parses the text of String: digits only, up to math.MaxInt64, or the 26 characters of a ULID.
func ParsePosition(text string) (Position, error) {
	if len(text) == ulid.EncodedSize {
		u, err := ulid.ParseStrict(text)
		if p := ULIDPosition(u); err == nil && p.IsULID() {
			return p, nil
		}
		return Position{}, ErrNoULID
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return Position{}, strconv.ErrSyntax
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Numbered(n), err
}

// ErrNoULID is the error for bytes or text that should be a ULID.
var ErrNoULID = errors.New("it is not a ULID")

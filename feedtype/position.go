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

// Position is a place in a feed: the number that a publisher gave, of a sequence, or a
// ULID. The zero Position is below all of them. Positions of one feed, or of one shard
// where each is a feed by itself, are ordered by [Position.Compare].
type Position struct {
	High uint64 // a ULID's first eight bytes; 0 for a sequence's positions
	Low  uint64 // a ULID's last eight bytes, or the number
}

// LastPosition is above every position.
var LastPosition = Position{math.MaxUint64, math.MaxUint64}

// LowestULID is below every ULID that is given.
var LowestULID = Position{High: 1}

// Numbered is a sequence's position.
func Numbered(n int64) Position { return Position{Low: uint64(n)} }

// Number is a sequence's position as an integer, and for what is above all of them the
// greatest integer.
func (p Position) Number() int64 {
	if p.High != 0 || p.Low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(p.Low)
}

// IsULID tells a ULID from a sequence's position. (A ULID of the first millisecond of 1970
// may not look like one; a clock never gives it.)
func (p Position) IsULID() bool { return p.High != 0 }

// IsZero tells whether p is below every position.
func (p Position) IsZero() bool { return p == Position{} }

// Compare is negative where p is below q, 0 where they are equal, positive where it is above.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.High, q.High), cmp.Compare(p.Low, q.Low))
}

// Above tells whether p is above q.
func (p Position) Above(q Position) bool { return p.Compare(q) > 0 }

// Max is the higher of two.
func (p Position) Max(q Position) Position {
	if q.Above(p) {
		return q
	}
	return p
}

// Min is the lower of two.
func (p Position) Min(q Position) Position {
	if p.Above(q) {
		return q
	}
	return p
}

// Before is the position just below p, which must not be zero.
func (p Position) Before() Position {
	if p.Low == 0 {
		p.High--
	}
	p.Low--
	return p
}

// Bytes are a ULID's 16 bytes.
func (p Position) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], p.High)
	binary.BigEndian.PutUint64(b[8:], p.Low)
	return b
}

// ULIDPosition is the position of a ULID.
func ULIDPosition(u [16]byte) Position {
	return Position{binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])}
}

// String is the position as entries and cursors show it: a ULID's 26 characters, or the
// number's digits.
func (p Position) String() string {
	if p.IsULID() {
		return ulid.ULID(p.Bytes()).String()
	}
	return strconv.FormatUint(p.Low, 10)
}

// Append appends what String answers.
func (p Position) Append(dst []byte) []byte {
	if !p.IsULID() {
		return strconv.AppendUint(dst, p.Low, 10)
	}
	dst = append(dst, make([]byte, ulid.EncodedSize)...)
	_ = ulid.ULID(p.Bytes()).MarshalTextTo(dst[len(dst)-ulid.EncodedSize:]) // which has room
	return dst
}

// ordered is the length of the longest number.
const ordered = 19

// Ordered is String as text that sorts as positions do.
func (p Position) Ordered() string {
	if p.IsULID() {
		return p.String()
	}
	return fmt.Sprintf("%0*d", ordered, p.Low)
}

// ParsePosition reads what String has written: digits only, up to the greatest int64, or the
// 26 characters of a ULID.
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

// ErrNoULID is about bytes or a text that should be a ULID.
var ErrNoULID = errors.New("it is no ULID")

package feedtype

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf8"
)

// MaxDataShards is the maximum number of data shards of a feed, and of parts that a request divides it into.
const MaxDataShards = 65_536

// Undivided replaces the number of data shards where parts of a feed with one data shard are computed. For a part of
// such a feed the server reads a page of the whole feed, and leaves out the keys of other parts. The parts are those
// that the feed has after it got this number of data shards.
const Undivided = 1024

// MaxParts returns the maximum number of parts of a feed with this many data shards. The parts are ranges of data
// shards or, if the feed has one, of Undivided numbers.
func MaxParts(dataShards int) int {
	if dataShards <= 1 {
		return Undivided
	}
	return dataShards
}

// Shards is the part of a feed that a request asks for. The zero value is the whole feed. Equal values ask for the
// same part.
type Shards struct {
	one          bool
	index, count int
}

// One is one data shard of a feed.
func One(shard int) Shards { return Shards{one: true, index: shard} }

// Part is part i of n, with i from 0: a half-open range of the feed's data shards. For every n the parts 0 to n-1 are
// the whole feed, and no two of them have a key in common. A feed has at most as many parts as data shards, and 1024 if
// it has only one.
func Part(i, n int) Shards { return Shards{index: i, count: n} }

// All tells whether s is the whole feed.
func (s Shards) All() bool { return s == Shards{} || s == Shards{index: 0, count: 1} }

// Numbers returns the number of a data shard and 0, or the number of a part and the number of parts. The whole feed
// is part 0 of 1.
func (s Shards) Numbers() (shard, count int) {
	if s == (Shards{}) {
		return 0, 1
	}
	return s.index, s.count
}

// Single returns the number of the data shard, if s is only one.
func (s Shards) Single() (shard int, one bool) { return s.index, s.one }

// Check returns an error if s is valid for no feed, as Range does. One is valid with any number: in ULID feeds the
// writers choose the numbers of shards.
func (s Shards) Check() error {
	if s.one {
		return nil
	}
	_, _, err := s.Range(MaxDataShards)
	return err
}

// String returns "all", "shard 3" or "shard 3 of 8".
func (s Shards) String() string {
	switch {
	case s.All():
		return "all"
	case s.one:
		return fmt.Sprintf("shard %d", s.index)
	}
	return fmt.Sprintf("shard %d of %d", s.index, s.count)
}

// Range returns the data shards of s as a half-open range, for a feed with dataShards data shards: those of MaxParts
// for a Part. Part(i, n) is i*dataShards/n to (i+1)*dataShards/n, both rounded down. The error has the code
// InvalidRequest and names the parameter, shard or shard_count.
func (s Shards) Range(dataShards int) (from, to int, err error) {
	switch {
	case s == Shards{}:
		return 0, dataShards, nil
	case s.one && (s.index < 0 || s.index >= dataShards):
		return 0, 0, Invalid("shard", "%d is not a data shard of the feed: they are numbered 0 to %d", s.index,
			dataShards-1)
	case s.one:
		return s.index, s.index + 1, nil
	case s.count < 1 || s.count > MaxDataShards:
		return 0, 0, Invalid("shard_count", "%d must be between 1 and %d", s.count, MaxDataShards)
	case s.count > dataShards:
		return 0, 0, Invalid("shard_count", "%d is more than the maximum number of parts of this feed, %d", s.count,
			dataShards)
	case s.index < 0 || s.index >= s.count:
		return 0, 0, Invalid("shard", "%d is not one of the %d shards, which are numbered 0 to %d", s.index, s.count,
			s.count-1)
	}
	return s.index * dataShards / s.count, (s.index + 1) * dataShards / s.count, nil
}

// ShardOf returns the data shard of a key: CRC-32 (IEEE) of the key's canonical text, modulo dataShards. The
// canonical text consists of the values as the JSON of an entry's key shows them, in the order of the key, joined by
// U+001F. Strings have neither quotes nor escapes. So the key id has the shard CRC32(id) % 1024 in MySQL, if there
// are 1024 data shards. The repository's testdata/shards.json has test vectors for other languages.
//
// The publisher assigns the shard together with the key's first position. If the database regards keys with different
// spellings as equal, the spelling at that time decides.
func ShardOf(key Row, dataShards int) int {
	return int(crc32.ChecksumIEEE(key.canonical()) % uint32(dataShards))
}

// canonical returns the canonical text of a key, see ShardOf.
func (r Row) canonical() []byte {
	var text []byte
	for i, c := range r.columns {
		if i > 0 {
			text = append(text, 0x1f)
		}
		if s, ok := r.values[i].(string); ok && c.Kind != Binary && utf8.ValidString(s) {
			text = append(text, s...) // the text that its JSON stands for
			continue
		}
		v := AppendValue(nil, c.Kind, r.values[i])
		var s string
		if v[0] == '"' && json.Unmarshal(v, &s) == nil {
			v = []byte(s)
		}
		text = append(text, v...)
	}
	return text
}

// moduloOf returns the non-negative remainder of an integer. It returns false for a value that is not an integer: on
// SQLite an integer column may hold any value.
func moduloOf(v any, n int) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int((v%int64(n) + int64(n)) % int64(n)), true
	case uint64:
		return int(v % uint64(n)), true
	}
	return 0, false
}

// ShardBy returns the data shard that the publisher assigns to a key. column is the feed's shard column, or empty. If
// the key has an integer in this column, the shard is that integer modulo dataShards. Otherwise it is ShardOf of that
// column's value or, without a shard column, of the whole key.
func ShardBy(column string, key Row, dataShards int) int {
	if n := slices.IndexFunc(key.columns, func(c Column) bool { return c.Name == column }); n >= 0 {
		if shard, ok := moduloOf(key.values[n], dataShards); ok {
			return shard
		}
		key = Row{key.columns[n : n+1], key.values[n : n+1]}
	}
	return ShardOf(key, dataShards)
}

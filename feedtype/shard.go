package feedtype

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"unicode/utf8"
)

// MaxDataShards is the greatest number of data shards of a feed, and of parts that a
// request may divide it into.
const MaxDataShards = 65_536

// Shards says which part of a feed a request asks for. The zero value is all of it; two
// values that are equal ask for the same.
type Shards struct {
	one          bool
	index, count int
}

// One asks for one data shard.
func One(shard int) Shards { return Shards{one: true, index: shard} }

// Part asks for part i of n, i from 0: a half-open range of the feed's data shards. For
// every n the parts 0 to n-1 are the whole feed, and no two of them have a key in common;
// where n is greater than the number of data shards some of them are empty.
func Part(i, n int) Shards { return Shards{index: i, count: n} }

// All tells whether s asks for the whole feed.
func (s Shards) All() bool { return s == Shards{} || s == Shards{index: 0, count: 1} }

// Numbers are the number of a data shard and 0, or those of a part and of all parts. The
// whole feed is part 0 of 1.
func (s Shards) Numbers() (shard, count int) {
	if s == (Shards{}) {
		return 0, 1
	}
	return s.index, s.count
}

// only is the number of the one shard that is asked for, if it is but one.
func (s Shards) Single() (shard int, one bool) { return s.index, s.one }

// Check answers an error for a request that is good for no feed, in the manner of Range.
// Any number is good for One: shards with ULIDs have numbers of their writers' choice.
func (s Shards) Check() error {
	if s.one {
		return nil
	}
	_, _, err := s.Range(MaxDataShards)
	return err
}

// String is "all", "shard 3" or "shard 3 of 8".
func (s Shards) String() string {
	switch {
	case s.All():
		return "all"
	case s.one:
		return fmt.Sprintf("shard %d", s.index)
	}
	return fmt.Sprintf("shard %d of %d", s.index, s.count)
}

// Range is the half-open range of data shards, of which a feed has dataShards, that s
// asks for: from i*dataShards/n to (i+1)*dataShards/n, both rounded down. The error has
// the code InvalidRequest and names the parameter, shard or shard_count.
func (s Shards) Range(dataShards int) (from, to int, err error) {
	switch {
	case s == Shards{}:
		return 0, dataShards, nil
	case s.one && (s.index < 0 || s.index >= dataShards):
		return 0, 0, Invalid("shard", "%d is none of the feed's data shards, which are 0 to %d", s.index, dataShards-1)
	case s.one:
		return s.index, s.index + 1, nil
	case s.count < 1 || s.count > MaxDataShards:
		return 0, 0, Invalid("shard_count", "%d must be between 1 and %d", s.count, MaxDataShards)
	case s.index < 0 || s.index >= s.count:
		return 0, 0, Invalid("shard", "%d is none of %d shards, which are 0 to %d", s.index, s.count, s.count-1)
	}
	return s.index * dataShards / s.count, (s.index + 1) * dataShards / s.count, nil
}

// ShardOf is the data shard of a key: CRC-32 (IEEE) of its canonical text modulo
// dataShards. The canonical text is that of its values as an entry's key shows them in
// JSON, strings without their quotes and escapes, in the key's order, joined by U+001F.
// So MySQL's CRC32(id) % 1024 is the shard of the key id in 1024; the vectors in
// the repository's testdata/shards.json are for other languages. The publisher gives a key its shard with
// its first position: among keys that the database holds for equal though they are spelled
// differently, that spelling counts.
func ShardOf(key Row, dataShards int) int {
	return int(crc32.ChecksumIEEE(key.canonical()) % uint32(dataShards))
}

// canonical is the canonical text of a key.
func (r Row) canonical() []byte {
	var text []byte
	for i, c := range r.columns {
		if i > 0 {
			text = append(text, 0x1f)
		}
		if s, ok := r.values[i].(string); ok && c.Kind != Binary && utf8.ValidString(s) {
			text = append(text, s...) // what its JSON would be read as
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

// moduloOf is the non-negative remainder of an integer; false for what is none, which
// a column may hold where values have types and columns have not.
func moduloOf(v any, n int) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int((v%int64(n) + int64(n)) % int64(n)), true
	case uint64:
		return int(v % uint64(n)), true
	}
	return 0, false
}

// ShardBy is the data shard that the publisher gives a key. If the key has an integer in the column that a feed's keys
// are sharded by, the shard is that integer modulo dataShards. Otherwise it is ShardOf of that column's value or, if
// the feed has no such column, of the whole key.
func ShardBy(column string, key Row, dataShards int) int {
	if n := slices.IndexFunc(key.columns, func(c Column) bool { return c.Name == column }); n >= 0 {
		if shard, ok := moduloOf(key.values[n], dataShards); ok {
			return shard
		}
		key = Row{key.columns[n : n+1], key.values[n : n+1]}
	}
	return ShardOf(key, dataShards)
}

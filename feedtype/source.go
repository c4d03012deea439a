package feedtype

import (
	"context"
	"regexp"
	"time"
) // Source is the one seam that everything downstream reads: a *Feed is a Source, an
// HTTP client is one, a handler serves one, consumers and relays read one.
type Source interface { // Fetch answers the entries above req.After, in increasing order of position.
	Fetch(ctx context.Context, req Request) (Page, error) // Info describes the feed.
	Info(ctx context.Context) (*Info, error)
}

const (
	// DefaultLimit is the number of entries on a page when the request names none.
	DefaultLimit = 100
	// MaxLimit is the greatest number that may be asked for.
	MaxLimit = 10_000
)

// Request asks for a page.
type Request struct {
	After Cursor
	Limit int // 1 to MaxLimit; 0 means DefaultLimit
	// Shards is the part of the feed that is asked for. Default: all of it. A cursor says
	// how far its part was read; it is good for that part, or one inside it.
	Shards Shards
	// Wait is how long an empty page may wait for an entry; 0 answers at once. A page
	// with entries is answered as soon as there is one.
	Wait time.Duration
	// Consistent publishes first: read up to More being false, the entries then show
	// everything that was committed before the request. Wait bounds the publishing (0: 5
	// seconds; else the error has code NotConsistent), and the page does not wait.
	Consistent bool
}

// Info describes a feed to its readers.
type Info struct {
	Name       string   `json:"name"`
	Mode       string   `json:"mode"`
	State      string   `json:"state"` // creating, filling, sharding, active
	Generation int64    `json:"generation"`
	Head       Cursor   `json:"head"`    // the cursor of a consumer that has read everything
	Key        []Column `json:"key"`     // in the key's order
	Columns    []Column `json:"columns"` // delivered
	Base64     []string `json:"base64"`  // the binary ones among Columns and Key
	DataShards int      `json:"data_shards"`
	// ShardColumn is the column of the key that gives the data shard; empty where it is
	// computed from the key.
	ShardColumn string `json:"shard_column,omitempty"`
	// PositionColumn is the table's own column that holds a row's ULID; empty where there is none.
	PositionColumn string `json:"position_column,omitempty"`
	// ShardIDs are the shards of a feed each of which is one by itself, with cursors of its
	// own, at most MaxShardIDs of them, from the lowest on. Head is then that of the only one, and
	// empty where there are more. Of other feeds it is nil; where there is no shard yet it is empty.
	ShardIDs []int `json:"shard_ids,omitzero"`
	// MoreShardIDs says that there are shards above these, which are not listed.
	MoreShardIDs bool `json:"more_shard_ids,omitempty"`
	// RetainSeconds and RetainCount say how long entries are kept, or how many of each shard;
	// both are 0 where they are kept for ever.
	RetainSeconds int64 `json:"retain_seconds,omitempty"`
	RetainCount   int64 `json:"retain_count,omitempty"`
}

// MaxShardIDs is the greatest number of shards that an Info lists.
const MaxShardIDs = 10_000

func (r Request) EffectiveLimit() (int, error) {
	switch {
	case r.Wait < 0:
		return 0, Invalid("wait", "%s must not be negative", r.Wait)
	case r.Limit < 0 || r.Limit > MaxLimit:
		return 0, Invalid("limit", "%d must be between 1 and %d", r.Limit, MaxLimit)
	case r.Limit == 0:
		return DefaultLimit, nil
	}
	return r.Limit, nil
}

// ShardSource is a Source that can say at once how far all shards of its feed are, where
// each is a feed by itself (see Info.ShardIDs), and can wait until one of them moves: who
// reads many of them then reads those alone that have something new. A Source that is none
// is asked for each of them, again and again.
type ShardSource interface {
	Source
	// Standings answers them as soon as their digest is not since, or when wait is over; at once
	// where wait is 0, or since "".
	Standings(ctx context.Context, since string, wait time.Duration) (*Standings, error)
}

// Standings is how far the shards of a feed are, where each is a feed by itself.
type Standings struct {
	// Digest stands for all of them: it is to be sent back as since.
	Digest string `json:"digest"`
	// Shards has a text for every shard. Where it is not that of a page (Page.Standing) the
	// shard may have something that the page has not shown. It is nil where nothing is other
	// than at since.
	Shards map[int]string `json:"shards,omitempty"`
}

// How a feed's positions are made.
const (
	// ModeSequence: a publisher gives them, one after the other, after the commit.
	ModeSequence = "sequence"
	// ModeBlocking: writers take them with Feed.Lock, in turns within a shard, and insert
	// rows that hold them. The table is only appended to.
	ModeBlocking = "blocking"
	// ModeOutbox: writers append a record to the feed's outbox, in the transaction of the row, and
	// do not wait for each other; whoever reads first, or a publisher, gives ULIDs. The table
	// is only appended to.
	ModeOutbox = "outbox"
)

var feedNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,38}$`)

func ValidName(name string) error {
	if !feedNamePattern.MatchString(name) {
		return Invalid("name", "%q is no feed name: a lower-case letter, then up to 38 of a-z, 0-9 and _", name)
	}
	return nil
}

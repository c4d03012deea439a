package feedtype

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Source is a feed that can be read. A *Feed of package rowfeed and a client of package feedhttp are Sources. HTTP
// handlers serve a Source, and consumers and relays read one.
type Source interface {
	// Fetch returns the entries above req.After, in increasing order of position.
	Fetch(ctx context.Context, req Request) (Page, error)
	// Info returns the description of the feed.
	Info(ctx context.Context) (*Info, error)
}

const (
	// DefaultLimit is the maximum number of entries on a page if Request.Limit is 0.
	DefaultLimit = 100
	// MaxLimit is the maximum of Request.Limit.
	MaxLimit = 10_000
)

// Request asks for a page.
type Request struct {
	After Cursor
	Limit int // maximum number of entries, 1 to MaxLimit; 0 means DefaultLimit
	// Shards is the part of the feed to read. Default: the whole feed. A cursor says how far its part was read: use
	// it for the same part, or for a part inside it.
	Shards Shards
	// Wait is how long Fetch may wait for an entry before it returns an empty page. 0 means that it does not wait.
	// Fetch returns as soon as there is an entry.
	Wait time.Duration
	// Consistent publishes before it reads. Pages read until More is false then show everything that was committed
	// before the request. Wait limits the publishing (default 5 s); when it has passed, the error has the code
	// NotConsistent. The page itself does not wait.
	Consistent bool
	// Room, if not nil, bounds the memory of the page. A page that reaches it ends early, with More true. A page has at
	// least one entry, however large that is. A Client of package feedhttp does not send it.
	Room Room
}

// Info describes a feed to its readers.
type Info struct {
	Name       string   `json:"name"`
	Mode       string   `json:"mode"`
	State      string   `json:"state"` // creating, filling, sharding, active
	Generation int64    `json:"generation"`
	Head       Cursor   `json:"head"`    // cursor of a consumer that has read everything
	Key        []Column `json:"key"`     // in the key's order
	Columns    []Column `json:"columns"` // delivered
	Base64     []string `json:"base64"`  // the binary columns of Columns and Key
	DataShards int      `json:"data_shards"`
	// ShardColumn is the column that determines the data shard: modulo DataShards if it is in the key, else as it is.
	// It is empty if the shard is computed from the whole key.
	ShardColumn string `json:"shard_column,omitempty"`
	// PositionColumn is the table's own column that holds a row's ULID. It is empty if there is none.
	PositionColumn string `json:"position_column,omitempty"`
	// ShardIDs are the shards of a ULID feed, in increasing order, at most MaxShardIDs. Each has cursors of its own.
	// Head is the head of the only shard, and empty if there are more. ShardIDs is empty while a ULID feed has no
	// shard, and nil for other feeds.
	ShardIDs []int `json:"shard_ids,omitzero"`
	// MoreShardIDs says that there are higher shards, which are not listed.
	MoreShardIDs bool `json:"more_shard_ids,omitempty"`
	// RetainSeconds is how long entries are kept, RetainCount is how many entries of each shard are kept. Both are 0
	// if entries are kept for ever.
	RetainSeconds int64 `json:"retain_seconds,omitempty"`
	RetainCount   int64 `json:"retain_count,omitempty"`
}

// MaxShardIDs is the maximum number of shards that an Info lists.
const MaxShardIDs = 10_000

// EffectiveLimit returns the maximum number of entries of the page. The error has the code InvalidRequest if Limit or
// Wait is invalid.
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

// ShardSource is a Source that reports how far all shards of a ULID feed are (see Info.ShardIDs), and waits until one
// of them changes. A reader of many shards then fetches only those that have something new. If a Source does not
// implement ShardSource, its reader has to poll every shard.
type ShardSource interface {
	Source
	// Standings returns the watermarks of all shards as soon as their digest differs from since, or when wait has
	// passed. It does not wait if wait is 0 or since is empty.
	Standings(ctx context.Context, since string, wait time.Duration) (*Standings, error)
}

// Standings are the watermarks of the shards of a ULID feed: how far each shard is.
type Standings struct {
	// Digest identifies this state of all shards. Send it back as since.
	Digest string `json:"digest"`
	// Shards has the watermark of every shard, an opaque text. If it differs from the watermark of a page
	// (Page.Standing), the shard may have entries that the page did not show. Shards is nil if nothing has changed
	// since the given digest.
	Shards map[int]string `json:"shards,omitempty"`
}

// The modes of a feed: how its positions are assigned.
const (
	// ModeSequence means that a publisher assigns numbers as positions, after the commit.
	ModeSequence = "sequence"
	// ModeBlocking means that writers reserve ULIDs with Feed.Lock, and insert rows that hold them. Writers of the
	// same shard wait for each other. The table is append-only.
	ModeBlocking = "blocking"
	// ModeOutbox means that writers append a record to the feed's outbox, in the transaction of the row, and do not
	// wait for each other. The first reader, or a publisher, assigns ULIDs. The table is append-only.
	ModeOutbox = "outbox"
)

var feedNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,38}$`)

// ValidName returns an error with the code InvalidRequest if name is not valid for a feed. A name is a lower-case
// letter, then up to 38 of a-z, 0-9 and '_'.
func ValidName(name string) error {
	if feedNamePattern.MatchString(name) {
		return nil
	}
	e := Invalid("name", "%q is not a feed name: a lower-case letter, then up to 38 of a-z, 0-9 and _", name)
	if lower := strings.ToLower(name); feedNamePattern.MatchString(lower) {
		e.Next = fmt.Sprintf("write %q: names of feeds are in lower case", lower)
	}
	return e
}

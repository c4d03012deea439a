package admin

import (
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Finding is something wrong with a feed, or with one of its keys.
type Finding struct {
	Rule    string        `json:"rule"`
	Key     *feedtype.Row `json:"key,omitempty"`
	Problem string        `json:"problem"`
	// Note says that nothing is known to be wrong: Problem is what was not looked for, and why.
	Note bool `json:"note,omitempty"`
}

// ByRepair tells whether Repair is for it. Triggers, functions and indexes are Upgrade's, and where
// rows of yours hold what they should not nobody else can mend it.
func (x Finding) ByRepair() bool {
	return !x.Note && !slices.Contains([]string{RuleTriggers, RuleParts, RuleULID, RuleBytes}, x.Rule)
}

// The rules of Check.
const (
	RuleTriggers = "triggers"
	RuleUnique   = "positions-unique"
	RuleSequence = "positions-below-sequence"
	RuleRow      = "row-has-position"
	RuleVanished = "position-has-row"
	RuleRisen    = "deleted-has-no-row"
	RuleShard    = "shard-of-key"
	RuleParts    = "index-by-bucket"
	RuleULID     = "ulid-was-given"
	RuleBytes    = "row-has-ulid"
	RulePlace    = "row-has-place"
)

// Status is how a feed stands.
type Status struct {
	Name       string `json:"name"`
	Mode       string `json:"mode"`
	State      string `json:"state"`
	Capture    string `json:"capture"`
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	Backlog
	TombstonesBelow int64 `json:"tombstones_below"`
	// Vanished counts keys whose rows are gone without a delete; nil when counting took
	// too long (Check tells).
	Vanished *int64 `json:"vanished"`
	// Publisher is the lease through which publishers take turns; nil while none has it.
	Publisher *feedtype.LeaseStatus `json:"publisher"`
	// Shards are those of a feed with ULIDs, in ascending order, and HoldersTold says how much of
	// who has them the database tells; "" for other feeds.
	Shards      []ShardStatus `json:"shards"`
	HoldersTold string        `json:"holders_told"`
	Blockers    []Blocker     `json:"blockers"`
	// BlockersUnseen says what is not told of who holds changes back; nil where everything is.
	BlockersUnseen *Unseen  `json:"blockers_unseen"`
	Problems       []string `json:"problems"`
	// Consumers are those whose cursors are in this database, with how far they are behind.
	Consumers []ConsumerStatus `json:"consumers"`
}

// Backlog is what waits for a feed's publisher, and how far it has come.
type Backlog struct {
	Head          int64      `json:"head"`            // 0 of a feed with ULIDs, whose shards each have one
	PublishedAt   *time.Time `json:"published_at"`    // when the head was last advanced
	Waiting       int64      `json:"changes_waiting"` // up to a limit, MaxWaiting in a Status; of a feed with an outbox its records
	OldestSeconds float64    `json:"oldest_seconds"`  // age of the oldest change waiting; 0 of rows that hold their positions, which do not tell
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session    string   `json:"session"`
	User       string   `json:"user"`
	Host       string   `json:"host"`
	AgeSeconds *float64 `json:"age_seconds"` // of the transaction; nil where nobody tells
	Statement  string   `json:"statement"`   // the current or last one; "" where nobody tells
	Scope      string   `json:"scope"`       // what is known of it
}

// Unseen is what a database, or the rights of rowfeed's login, keep from being told.
type Unseen struct {
	Cause string `json:"cause"` // what is not told, and why
	Next  string `json:"next"`  // what to run, or to do, so that it is
}

// ShardStatus is how a shard of a feed with ULIDs stands.
type ShardStatus struct {
	Shard int `json:"shard"`
	// Head is the greatest ULID that is there, and HeadAt its time; "" and nil where none is.
	Head   string     `json:"head"`
	HeadAt *time.Time `json:"head_at"`
	// Holder is the transaction that has the shard, as far as Status.HoldersTold says; nil
	// where none has.
	Holder *Session `json:"holder"`
	// Waiting are those that want it, who has waited longest first.
	Waiting []Session `json:"waiting"`
}

// Session is a connection with an open transaction, as the database tells of it: what it
// does not tell, or not to this login, is empty or nil.
type Session struct {
	Session     string `json:"session"` // what the database calls the connection
	User        string `json:"user"`
	Host        string `json:"host"`
	Application string `json:"application"`
	// Since is when the transaction began, AgeSeconds how long ago that was.
	Since      *time.Time `json:"since"`
	AgeSeconds *float64   `json:"age_seconds"`
	// State is what the session does, in the database's words, StateSeconds for how long.
	State        string   `json:"state"`
	StateSeconds *float64 `json:"state_seconds"`
	Statement    string   `json:"statement"` // the current or last one
}

// How much Status tells of who has the shards of a feed with ULIDs.
const (
	HoldersAll       = string(dialect.ToldAll)       // who has a shard is named
	HoldersWaitedFor = string(dialect.ToldWaitedFor) // who has a shard that others wait for is named
	HoldersNone      = string(dialect.ToldNothing)   // nobody is: the database or the login's rights do not tell
)

// MaxShardStatus is the greatest number of shards that Status lists. Those that somebody has
// or waits for are always among them.
const MaxShardStatus = 1000

// UnblockRequest says whose transaction is to be ended.
type UnblockRequest struct {
	// Shard is the one to free. Nil: the only one that somebody waits for, or, where nobody waits, the
	// only one that a transaction has.
	Shard *int
	// Session is who must have it, as Status names it; empty: whoever has it.
	Session string
	// DryRun only looks.
	DryRun bool
}

// Unblocked is what Unblock found and did.
type Unblocked struct {
	Shard   int       `json:"shard"`
	Holder  *Session  `json:"holder"` // nil: no transaction has the shard
	Waiting []Session `json:"waiting"`
	Ended   bool      `json:"ended"` // the holder's connection; its transaction is rolled back
}

const (
	// MaxWaiting bounds the count of changes waiting.
	MaxWaiting = 1_000_000
)

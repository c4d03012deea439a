package admin

import (
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Finding is a problem of a feed, or of one of its keys.
type Finding struct {
	Rule    string        `json:"rule"`          // RuleTriggers, RuleUnique, …
	Key     *feedtype.Row `json:"key,omitempty"` // nil if the problem is not of one key
	Problem string        `json:"problem"`       // a sentence
	// Note means that nothing is known to be wrong: Problem says what was not checked, and why.
	Note bool `json:"note,omitempty"`
}

// ByRepair tells whether Repair corrects the finding. Upgrade restores triggers, functions and indexes. Wrong values in
// the application's own rows have to be corrected by the application.
func (x Finding) ByRepair() bool {
	return !x.Note && !slices.Contains([]string{RuleTriggers, RuleParts, RuleULID, RuleBytes, RuleKey,
		RuleOwnShard}, x.Rule)
}

// Rules of Check, see Finding.Rule.
const (
	RuleTriggers = "triggers"                 // triggers, functions or tables are not as they should be
	RuleKey      = "row-has-key"              // a row has NULL in its key
	RuleUnique   = "positions-unique"         // two keys have the same position
	RuleSequence = "positions-below-sequence" // a position is above the feed's sequence
	RuleRow      = "row-has-position"         // a row has neither a position nor a waiting change
	RuleVanished = "position-has-row"         // a row is gone, but its position is not deleted
	RuleRisen    = "deleted-has-no-row"       // a row exists, but its position is deleted
	RuleShard    = "shard-of-key"             // a key is in the wrong data shard
	RuleOwnShard = "shard-of-row"             // a row's own column has another data shard than its key
	RuleParts    = "index-by-bucket"          // parts of the feed cannot be read, or only slowly
	RuleULID     = "ulid-was-given"           // a row has a ULID that rowfeed never gave
	RuleBytes    = "row-has-ulid"             // a row has no valid ULID or shard
	RulePlace    = "row-has-place"            // a row has neither a place nor a record in the outbox
)

// Status is the state of a feed.
type Status struct {
	Name       string `json:"name"`
	Mode       string `json:"mode"`
	State      string `json:"state"`
	Capture    string `json:"capture"`
	Table      string `json:"table"`
	Generation int64  `json:"generation"`
	Backlog
	TombstonesBelow int64 `json:"tombstones_below"`
	// Vanished counts keys whose rows are gone without a recorded delete. It is nil if counting took more than 2 s; use
	// Check then. It is nil for feeds with ULIDs.
	Vanished *int64 `json:"vanished"`
	// Publisher is the lease through which publishers take turns; nil if none holds it.
	Publisher *feedtype.LeaseStatus `json:"publisher"`
	// Failure is why the feed's publisher does not progress; nil if its last pass has succeeded.
	Failure *feedtype.Failure `json:"failure"`
	// Shards are the shards of a feed with ULIDs, in ascending order, at most MaxShardStatus. HoldersTold says which
	// holders the database names: HoldersAll, HoldersWaitedFor or HoldersNone; "" for other feeds.
	Shards      []ShardStatus `json:"shards"`
	HoldersTold string        `json:"holders_told"`
	Blockers    []Blocker     `json:"blockers"`
	// BlockersUnseen says which blockers the database does not show; nil if it shows all.
	BlockersUnseen *Unseen  `json:"blockers_unseen"`
	Problems       []string `json:"problems"`
	// Consumers are the consumers whose cursors are in this database.
	Consumers []ConsumerStatus `json:"consumers"`
}

// Backlog is what waits for a feed's publisher, and the head of the feed.
type Backlog struct {
	// Head is the highest position; 0 for a feed with ULIDs, whose shards have heads of their own.
	Head int64 `json:"head"`
	// PublishedAt is when the head was last advanced; nil if never, and for feeds with ULIDs.
	PublishedAt *time.Time `json:"published_at"`
	// Term is the term of the head, as cursors of it end, and TermSince when the term before ended; "" and nil if not
	// known, for the first term of a feed, and for feeds with ULIDs. A term that nobody expected tells of a restored
	// backup, a failover or another publisher.
	Term      string     `json:"term,omitempty"`
	TermSince *time.Time `json:"term_since,omitempty"`
	// Waiting counts waiting changes, or the records of an outbox, up to a limit (MaxWaiting in a Status).
	Waiting int64 `json:"changes_waiting"`
	// OldestSeconds is the age of the oldest waiting change in seconds; 0 with capture "column", where it is not known.
	OldestSeconds float64 `json:"oldest_seconds"`
}

// Blocker is an open transaction that may hold back changes.
type Blocker struct {
	Session    string   `json:"session"`
	User       string   `json:"user"`
	Host       string   `json:"host"`
	AgeSeconds *float64 `json:"age_seconds"` // of the transaction; nil if not known
	Statement  string   `json:"statement"`   // the current or last one; "" if not known
	Scope      string   `json:"scope"`       // why it may delay the feed, for example "holds shard 3"
}

// Unseen says what the database does not show, by itself or to rowfeed's login.
type Unseen struct {
	Cause string `json:"cause"` // what is not shown, and why
	Next  string `json:"next"`  // what to run or do to have it shown
}

// ShardStatus is the state of a shard of a feed with ULIDs.
type ShardStatus struct {
	Shard int `json:"shard"`
	// Head is the greatest ULID in the shard, and HeadAt its time; "" and nil if the shard has no rows.
	Head   string     `json:"head"`
	HeadAt *time.Time `json:"head_at"`
	// Holder is the transaction that holds the shard; nil if there is none, or if the database does not name it (see
	// Status.HoldersTold).
	Holder *Session `json:"holder"`
	// Waiting are the transactions that wait for the shard, the longest wait first.
	Waiting []Session `json:"waiting"`
}

// Session is a connection with an open transaction. A field is empty or nil if the database does not show it to this
// login.
type Session struct {
	Session     string `json:"session"` // the database's id of the connection
	User        string `json:"user"`
	Host        string `json:"host"`
	Application string `json:"application"`
	// Since is when the transaction began, and AgeSeconds its age.
	Since      *time.Time `json:"since"`
	AgeSeconds *float64   `json:"age_seconds"`
	// State is the session's state in the database's words, and StateSeconds the time since it changed.
	State        string   `json:"state"`
	StateSeconds *float64 `json:"state_seconds"`
	Statement    string   `json:"statement"` // the current or last one
}

// Values of Status.HoldersTold.
const (
	HoldersAll       = string(dialect.HoldersAll)       // every holder is named
	HoldersWaitedFor = string(dialect.HoldersWaitedFor) // a holder is named while others wait for its shard
	HoldersNone      = string(dialect.HoldersNone)      // no holder is named, for want of rights or by this database
)

// MaxShardStatus is the maximum number of shards in a Status. Shards that are held or waited for are always among them.
const MaxShardStatus = 1000

// UnblockRequest says which session Unblock is to end.
type UnblockRequest struct {
	// Shard is the shard to free. If it is nil, Unblock takes the only shard that a transaction waits for; if none
	// waits, the only shard that is held.
	Shard *int
	// Session is the id of the expected holder, as in Status. If it is empty, any holder is ended.
	Session string
	// DryRun finds the holder without ending its session.
	DryRun bool
}

// Unblocked is the result of Unblock.
type Unblocked struct {
	Shard   int       `json:"shard"`
	Holder  *Session  `json:"holder"` // nil if no transaction holds the shard
	Waiting []Session `json:"waiting"`
	Ended   bool      `json:"ended"` // whether the holder's connection was ended, and its transaction rolled back
}

// MaxWaiting is the maximum of Backlog.Waiting.
const MaxWaiting = 1_000_000

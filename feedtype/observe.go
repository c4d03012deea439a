package feedtype

import "time"

// Observer has functions that rowfeed calls when something happens. Every field may be nil. The functions are called
// from rowfeed's own goroutines and must not block. Metrics and logs are built on top of it.
type Observer struct {
	// Published reports a batch that a publisher has committed.
	Published func(PublishEvent)
	// Skipped reports rows that a publisher has skipped because another transaction has locked them. Counting them
	// needs a statement, which is sent only if Skipped is set.
	Skipped func(SkipEvent)
	// Fetched reports a page.
	Fetched func(FetchEvent)
	// Retried reports a transaction that is run again.
	Retried func(RetryEvent)
	// Consumed reports a page, or a part of a page, that a Consumer has committed.
	Consumed func(ConsumeEvent)
	// SetAside reports that a Consumer has stored an entry as a dead letter.
	SetAside func(SetAsideEvent)
	// Claim reports that this process has begun or lost a claim on a lease.
	Claim func(ClaimEvent)
	// Lease reports that a publisher has acquired the lease of its feed, or stands by because another publisher has
	// it.
	Lease func(LeaseEvent)
	// Job reports that this member of a Group begins or ends a job.
	Job func(JobEvent)
	// Trouble reports a failure that RunPublisher, Consumer.Run or Group.Run survives: it retries.
	Trouble func(TroubleEvent)
	// Recovered reports that what Trouble has reported is over: the first success after failures.
	Recovered func(RecoveredEvent)
}

// PublishEvent is a batch that a publisher has committed.
type PublishEvent struct {
	Feed       string
	Changes    int   // change records processed
	Keys       int   // positions assigned; in an outbox one per record, although a key keeps only the last
	Generation int64 // of the feed
	Head       int64 // the highest position
	Took       time.Duration
}

// SkipEvent is the number of rows that one pass has skipped. They belong to a feed with capture "column", wait for a
// position, and were locked by other transactions. The next pass tries them again.
type SkipEvent struct {
	Feed string
	Rows int // at most the size of a batch
}

// FetchEvent is a page that was fetched.
type FetchEvent struct {
	Feed     string
	Entries  int
	Deletes  int // among the entries
	Vanished int // keys left out because their rows no longer exist and their deletes are not yet published
	// Shared says that the page was not read for this request alone. It was read near the head of the feed, together
	// with the pages of other requests at the same time.
	Shared bool
	Took   time.Duration
}

// RetryEvent is a transaction that is run again, for example after a deadlock.
type RetryEvent struct {
	Doing   string
	Attempt int
	Err     error
}

// ConsumeEvent is a step that a consumer has committed.
type ConsumeEvent struct {
	Consumer   string
	Feed       string
	Shard      int // of ShardCount; in a ULID feed the number of the shard itself
	ShardCount int
	Entries    int // that were handled
	Collapsed  int // that joined the dead letters of their keys
	Cursor     Cursor
	Took       time.Duration
}

// SetAsideEvent is a dead letter that was stored.
type SetAsideEvent struct {
	Consumer   string
	Feed       string
	Shard      int // as in ConsumeEvent
	ShardCount int
	Attempts   int
	Key        string // as JSON
	Position   string // of the entry
	Err        error  // of the last attempt
}

// ClaimEvent is the beginning or the loss of a claim on a lease.
type ClaimEvent struct {
	Lease string
	Epoch int64
	Kind  ClaimEventKind
}

// ClaimEventKind tells what happened to a claim.
type ClaimEventKind int

const (
	// ClaimBegun means that a claim has begun, and that the lease was free.
	ClaimBegun ClaimEventKind = iota
	// ClaimTakenOver means that a claim has begun because the previous holder let its claim expire. That holder was
	// killed, or lost its connection.
	ClaimTakenOver
	// ClaimLost means that the claim ended before it was released.
	ClaimLost
)

// TroubleEvent is a failure of a feed's publisher or, if Consumer is set, of a consumer.
type TroubleEvent struct {
	Feed       string
	Consumer   string
	Shard      int // of ShardCount; in a ULID feed the number of the shard itself
	ShardCount int // 0 for a publisher
	// Key is the key of the entry that failed, as JSON. It is empty if the failure is not known to be of one entry.
	Key string
	// Position is that of the entry, or of the first one of the page that failed; else empty.
	Position string
	// Attempt counts the failed attempts since the last success; 0 if the failure is of no attempt.
	Attempt int
	Err     error
}

// RecoveredEvent is the first success of a publisher or, if Consumer is set, of a consumer, after failures.
type RecoveredEvent struct {
	Feed       string
	Consumer   string
	Shard      int // as in TroubleEvent
	ShardCount int
	Attempts   int // that had failed
}

// LeaseEvent says which publisher of a feed holds the lease of the feed's publishers.
type LeaseEvent struct {
	Feed  string
	Name  string // of the lease
	Owner string
	Epoch int64
	Since time.Time
	Mine  bool // this publisher holds it; otherwise it stands by
	// Stalled means that this publisher stands by, and has published changes that the holder had left waiting: the
	// holder was killed, or is stopped. It is reported once for each holder.
	Stalled bool
}

// JobEvent is the state of a group's job at this member.
type JobEvent struct {
	Group string
	Jobs  int // in the group
	Job   int
	Kind  JobEventKind
	Owner string // of the job's claim
	Epoch int64
}

// JobEventKind tells what happened to a job.
type JobEventKind int

const (
	// JobBegun means that this member has begun the job.
	JobBegun JobEventKind = iota
	// JobHandedOver means that this member has to hand the job over to another member.
	JobHandedOver
	// JobLost means that the job's claim ended before the job did.
	JobLost
	// JobEnded means that the job has ended, by itself or with the member.
	JobEnded
	// JobStandsBy means that this member waits for a job that another holder, Owner, has. If Job is -1, it waits
	// because other members have all jobs. It is reported once per wait.
	JobStandsBy
)

package feedtype

import "time"

// Observer is told what happens. Every field may be nil. The functions are called
// from rowfeed's own goroutines and must not block; metrics and logs live above.
type Observer struct {
	Published func(PublishEvent)
	// Skipped are rows that a publisher has passed over, since another transaction has them
	// locked. To count them costs a statement, which is sent only where somebody is told.
	Skipped func(SkipEvent)
	Fetched func(FetchEvent)
	Retried func(RetryEvent)
	// Consumed is a page, or a part of one, that a Consumer has committed.
	Consumed func(ConsumeEvent)
	// SetAside is an entry of which a Consumer has made a dead letter.
	SetAside func(SetAsideEvent)
	// Claim is any lease's that this process has begun, or lost.
	Claim func(ClaimEvent)
	// Lease is a publisher's turn that begins, or another's behind which it stands by.
	Lease func(LeaseEvent)
	// Job is one of a group's (see Group) that this member of it begins or ends.
	Job func(JobEvent)
	// Trouble is a failure that RunPublisher, Consumer.Run or Group.Run survives: it goes
	// on trying.
	Trouble func(TroubleEvent)
}

// PublishEvent is one committed batch.
type PublishEvent struct {
	Feed       string
	Changes    int   // records taken
	Keys       int   // positions given; in an outbox one to each record, of which a key keeps the last
	Generation int64 // of the feed
	Head       int64 // the highest position
	Took       time.Duration
}

// SkipEvent are rows of a feed with capture "column" that wait for a position, could be
// seen, and were held by others in one pass. The next pass looks at them again.
type SkipEvent struct {
	Feed string
	Rows int // at most as many as a batch has
}

// FetchEvent is one page.
type FetchEvent struct {
	Feed     string
	Entries  int
	Deletes  int // among the entries
	Vanished int // keys left out: their rows are gone and not yet published as deleted
	// Shared says that the database was not asked for the page alone: it was read near the
	// feed's end, together with pages that others have asked for at the same time.
	Shared bool
	Took   time.Duration
}

// RetryEvent is a transaction that is run again after a deadlock or the like.
type RetryEvent struct {
	Doing   string
	Attempt int
	Err     error
}

// ConsumeEvent is one committed step of a consumer.
type ConsumeEvent struct {
	Consumer   string
	Feed       string
	Shard      int // of ShardCount; its own number, where it is a feed by itself
	ShardCount int
	Entries    int // handed over
	Collapsed  int // joined dead letters of their keys
	Cursor     Cursor
	Took       time.Duration
}

// SetAsideEvent is a dead letter that was made. What it is about is in the table of dead
// letters, and nowhere else.
type SetAsideEvent struct {
	Consumer   string
	Feed       string
	Shard      int // as in ConsumeEvent
	ShardCount int
	Attempts   int
}

// ClaimEvent tells of a claim on a lease, whatever the lease is for.
type ClaimEvent struct {
	Lease string
	Epoch int64
	Kind  ClaimEventKind
}

// ClaimEventKind is what a ClaimEvent tells.
type ClaimEventKind int

const (
	// ClaimBegun: the lease was free.
	ClaimBegun ClaimEventKind = iota
	// ClaimTakenOver: the holder before had let its claim run out; it was killed, or cut off.
	ClaimTakenOver
	// ClaimLost: the claim was over before it was released.
	ClaimLost
)

// TroubleEvent is a failure of a feed's publisher or, where it is named, of a consumer.
type TroubleEvent struct {
	Feed       string
	Consumer   string
	Shard      int // of the consumer's ShardCount; its own number, where it is a feed by itself
	ShardCount int // 0 for a publisher
	Err        error
}

// LeaseEvent tells who has the lease of a feed's publishers.
type LeaseEvent struct {
	Feed  string
	Name  string // of the lease
	Owner string
	Epoch int64
	Since time.Time
	Mine  bool // this publisher has it; else it stands by
}

// JobEvent tells of a group's job at this member of it.
type JobEvent struct {
	Group string
	Jobs  int // in the group
	Job   int
	Kind  JobEventKind
	Owner string // of the job's claim
	Epoch int64
}

// JobEventKind is what a JobEvent tells.
type JobEventKind int

const (
	// JobBegun: this member has the job.
	JobBegun JobEventKind = iota
	// JobHandedOver: another member is to have it.
	JobHandedOver
	// JobLost: its claim was over before it came to an end.
	JobLost
	// JobEnded by itself, or with the member.
	JobEnded
	// JobStandsBy: somebody else, the Owner, has the job, which is waited for; or, if Job is
	// -1, others have all of them. It is told once.
	JobStandsBy
)

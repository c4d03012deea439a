package rowfeed

import (
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// The types that readers of a feed use.
type (
	// Source is a feed to read: a [Feed] of this process, or a client of a server.
	Source = feedtype.Source
	// Request asks a Source for a page.
	Request = feedtype.Request
	// Page is what a Source returns for a Request.
	Page = feedtype.Page
	// Entry is one entry of a page.
	Entry = feedtype.Entry
	// Op tells whether the row of an entry exists.
	Op = feedtype.Op
	// Row holds the values of a key, or of the delivered columns of a row.
	Row = feedtype.Row
	// Column is the name, type and kind of a column of a Row.
	Column = feedtype.Column
	// DecodeOption changes what Entry.Decode requires.
	DecodeOption = feedtype.DecodeOption
	// Cursor is how far a reader has read.
	Cursor = feedtype.Cursor
	// Shards is the part of a feed that a Request asks for.
	Shards = feedtype.Shards
	// Info describes a feed to its readers.
	Info = feedtype.Info
)

// The modes of a feed: how its positions are assigned. See [feedtype.ModeSequence], [feedtype.ModeBlocking] and
// [feedtype.ModeOutbox].
const (
	ModeSequence = feedtype.ModeSequence
	ModeBlocking = feedtype.ModeBlocking
	ModeOutbox   = feedtype.ModeOutbox
)

// The settings of a feed, and of rowfeed's tables.
type (
	// FeedSpec holds the settings of a new feed.
	FeedSpec = feedtype.FeedSpec
	// AddPlan is what adding a feed does, beyond what its spec says.
	AddPlan = feedtype.AddPlan
	// DropPlan is what dropping a feed does to its readers, and to the tables that it was adopted from.
	DropPlan = feedtype.DropPlan
	// Capture is how a feed's changes are captured.
	Capture = feedtype.Capture
	// MigrationStatus is one version of rowfeed's own tables, applied or not.
	MigrationStatus = feedtype.MigrationStatus
	// Grants are the logins of the database that may use a feed.
	Grants = feedtype.Grants
	// Retention is how long the entries of a feed with ModeOutbox are kept.
	Retention = feedtype.Retention
)

const (
	// Upsert is the Op of an entry whose row exists.
	Upsert = feedtype.Upsert
	// Delete is the Op of an entry whose row is gone.
	Delete = feedtype.Delete
	// EveryField makes Entry.Decode fail if a field of the struct has no column.
	EveryField = feedtype.EveryField
	// Beginning is the cursor below every position.
	Beginning = feedtype.Beginning
	// Now is the head of the feed at the time of the fetch.
	Now = feedtype.Now
	// MaxDataShards is the maximum number of data shards of a feed, and of parts that a Request divides it into.
	MaxDataShards = feedtype.MaxDataShards
)

// At is the cursor just below the first entry that was published at or after t.
func At(t time.Time) Cursor { return feedtype.At(t) }

// One is one data shard of a feed.
func One(shard int) Shards { return feedtype.One(shard) }

// Part is part i of n of a feed, with i from 0. See [feedtype.Part].
func Part(i, n int) Shards { return feedtype.Part(i, n) }

// The arguments of writers.
type (
	// Key holds the values of a feed's key columns, in the order of the key.
	Key = feedtype.Key
	// LockRequest names the shards that Feed.Lock locks, and its limits.
	LockRequest = feedtype.LockRequest
	// OutboxRecord is a record of an inserted row, for Feed.AppendOutbox.
	OutboxRecord = feedtype.OutboxRecord
)

const (
	// NoBound as LockRequest.Wait or LockRequest.Idle sets no limit: the session's own settings apply.
	NoBound = feedtype.NoBound
	// DefaultTombstones is how long deletes are kept if FeedSpec.Tombstones is 0.
	DefaultTombstones = feedtype.DefaultTombstones
)

// Errors and events.
type (
	// Error says what failed, on which object, why, and what to do next.
	Error = feedtype.Error
	// Code is the kind of an Error. errors.Is(err, rowfeed.CursorAhead) tests for one.
	Code = feedtype.Code
	// Observer has functions that rowfeed calls when something happens.
	Observer = feedtype.Observer
	// Tracer creates spans of rowfeed's operations.
	Tracer = feedtype.Tracer

	// PublishEvent and the types below are the arguments of an Observer's functions.
	PublishEvent   = feedtype.PublishEvent
	SkipEvent      = feedtype.SkipEvent
	FetchEvent     = feedtype.FetchEvent
	RetryEvent     = feedtype.RetryEvent
	ConsumeEvent   = feedtype.ConsumeEvent
	SetAsideEvent  = feedtype.SetAsideEvent
	ClaimEvent     = feedtype.ClaimEvent
	ClaimEventKind = feedtype.ClaimEventKind
	TroubleEvent   = feedtype.TroubleEvent
	RecoveredEvent = feedtype.RecoveredEvent
	Failure        = feedtype.Failure
	LeaseEvent     = feedtype.LeaseEvent
	JobEvent       = feedtype.JobEvent
	JobEventKind   = feedtype.JobEventKind
)

// Observers returns one Observer that calls several, in their order. It leaves out those that are nil.
func Observers(all ...*Observer) *Observer { return feedtype.Observers(all...) }

// The kinds of a ClaimEvent and of a JobEvent.
const (
	ClaimBegun     = feedtype.ClaimBegun
	ClaimTakenOver = feedtype.ClaimTakenOver
	ClaimLost      = feedtype.ClaimLost

	JobBegun      = feedtype.JobBegun
	JobHandedOver = feedtype.JobHandedOver
	JobLost       = feedtype.JobLost
	JobEnded      = feedtype.JobEnded
	JobStandsBy   = feedtype.JobStandsBy
)

// The codes of errors. Package feedtype describes each of them.
const (
	InvalidRequest    = feedtype.InvalidRequest
	UnknownFeed       = feedtype.UnknownFeed
	NotInitialized    = feedtype.NotInitialized
	SchemaVersion     = feedtype.SchemaVersion
	CursorAhead       = feedtype.CursorAhead
	HistoryLost       = feedtype.HistoryLost
	GenerationChanged = feedtype.GenerationChanged
	TombstonesExpired = feedtype.TombstonesExpired
	EntriesExpired    = feedtype.EntriesExpired
	Refused           = feedtype.Refused
	Conflict          = feedtype.Conflict
	Unavailable       = feedtype.Unavailable
	UnsafeDurability  = feedtype.UnsafeDurability
	Locked            = feedtype.Locked
	HandlerFailed     = feedtype.HandlerFailed
	ConsumerPaused    = feedtype.ConsumerPaused
	UnknownConsumer   = feedtype.UnknownConsumer
	DatabaseChanged   = feedtype.DatabaseChanged
	ReadOnly          = feedtype.ReadOnly
	NotConsistent     = feedtype.NotConsistent
	Sharding          = feedtype.Sharding
	OtherPart         = feedtype.OtherPart
	Filling           = feedtype.Filling
	LeaseTaken        = feedtype.LeaseTaken
	LeaseLost         = feedtype.LeaseLost
	UnknownLease      = feedtype.UnknownLease
	UnknownToken      = feedtype.UnknownToken
	Unauthorized      = feedtype.Unauthorized
	Forbidden         = feedtype.Forbidden
	Failed            = feedtype.Failed
)

// LeaseStatus is the state of a lease, on the database's clock.
type LeaseStatus = feedtype.LeaseStatus

// The states of a lease.
const (
	LeaseHeld    = feedtype.LeaseHeld
	LeaseExpired = feedtype.LeaseExpired
	LeaseFree    = feedtype.LeaseFree
)

// The settings and failures of a Consumer.
type (
	// ConsumerID selects cursors of a consumer.
	ConsumerID = feedtype.ConsumerID
	// Retry is how often and how fast a failed page is retried.
	Retry = feedtype.Retry
	// OnFailure is what a consumer does with an entry whose attempts are used up.
	OnFailure = feedtype.OnFailure
	// Refusal is an entry that the receiver of a Consumer's Deliver rejected.
	Refusal = feedtype.Refusal
	// DeadLetter is a key that a consumer has set aside.
	DeadLetter = feedtype.DeadLetter
	// LetterQuery selects dead letters.
	LetterQuery = feedtype.LetterQuery
)

const (
	// Stop ends Run with the handler's error. See [feedtype.Stop] for consumers with several shards.
	Stop = feedtype.Stop
	// SetAside stores the key as a dead letter, and continues with the other keys.
	SetAside = feedtype.SetAside
	// LetterAside is the state of a dead letter that waits for an operator.
	LetterAside = feedtype.LetterAside
	// LetterRetry is the state of a dead letter that its consumer will retry.
	LetterRetry = feedtype.LetterRetry
)

// Later wraps an error of Handle that is not caused by the entries. See [feedtype.Later].
func Later(err error) error { return feedtype.Later(err) }

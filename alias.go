package rowfeed

import (
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// What a feed's readers handle.
type (
	// Source is a feed to read: a [Feed] of this process, or a client of a server.
	Source = feedtype.Source
	// Request asks a Source for a page.
	Request = feedtype.Request
	// Page is a Source's answer.
	Page = feedtype.Page
	// Entry is one entry of a page.
	Entry = feedtype.Entry
	// Op says whether an entry's row exists.
	Op = feedtype.Op
	// Row has the values of a key, or of a row's delivered columns.
	Row = feedtype.Row
	// Column is one of a Row's columns.
	Column = feedtype.Column
	// DecodeOption changes what Entry.Decode requires.
	DecodeOption = feedtype.DecodeOption
	// Cursor says how far a reader has read.
	Cursor = feedtype.Cursor
	// Shards is the part of a feed that a Request asks for.
	Shards = feedtype.Shards
	// Info describes a feed to its readers.
	Info = feedtype.Info
)

// How a feed's positions are made, see [feedtype.ModeSequence] and what follows it.
const (
	ModeSequence = feedtype.ModeSequence
	ModeBlocking = feedtype.ModeBlocking
	ModeOutbox   = feedtype.ModeOutbox
)

// What a feed is made with.
type (
	// FeedSpec says what a feed is made of.
	FeedSpec = feedtype.FeedSpec
	// Capture is how a feed's changes are captured.
	Capture = feedtype.Capture
	// MigrationStatus is one version of rowfeed's own tables.
	MigrationStatus = feedtype.MigrationStatus
	// Grants are logins of the database that may use a feed.
	Grants = feedtype.Grants
	// Retention is how long the places of a feed with an outbox are kept.
	Retention = feedtype.Retention
)

const (
	// Upsert is the Op of an entry whose row exists.
	Upsert = feedtype.Upsert
	// Delete is the Op of an entry whose row is gone.
	Delete = feedtype.Delete
	// EveryField makes Entry.Decode refuse a struct with a field for which there is no column.
	EveryField = feedtype.EveryField
	// Beginning is the cursor below every position.
	Beginning = feedtype.Beginning
	// Now asks for the head at the time of the fetch.
	Now = feedtype.Now
	// MaxDataShards is the maximum number of data shards of a feed, and of parts that a Request divides it into.
	MaxDataShards = feedtype.MaxDataShards
)

// At asks for the entries published at or after t.
func At(t time.Time) Cursor { return feedtype.At(t) }

// One asks for one data shard.
func One(shard int) Shards { return feedtype.One(shard) }

// Part asks for part i of n, i from 0. See [feedtype.Part].
func Part(i, n int) Shards { return feedtype.Part(i, n) }

// What writers hand over.
type (
	// Key is the values of a feed's key columns, in the key's order.
	Key = feedtype.Key
	// LockRequest says what Feed.Lock is to take.
	LockRequest = feedtype.LockRequest
	// OutboxRecord says that a row was inserted.
	OutboxRecord = feedtype.OutboxRecord
)

const (
	// NoBound as LockRequest.Wait or Idle leaves the bound to the session's own settings.
	NoBound = feedtype.NoBound
	// DefaultTombstones is how long deletes are kept if a FeedSpec does not say.
	DefaultTombstones = feedtype.DefaultTombstones
)

// What an application is told of the work.
type (
	// Error says what failed, on which object, why, and what to do next.
	Error = feedtype.Error
	// Code is the kind of an Error: errors.Is(err, rowfeed.CursorAhead) asks for one.
	Code = feedtype.Code
	// Observer has functions that are called when something happens.
	Observer = feedtype.Observer
	// Tracer makes spans of what rowfeed does.
	Tracer = feedtype.Tracer

	PublishEvent   = feedtype.PublishEvent
	SkipEvent      = feedtype.SkipEvent
	FetchEvent     = feedtype.FetchEvent
	RetryEvent     = feedtype.RetryEvent
	ConsumeEvent   = feedtype.ConsumeEvent
	SetAsideEvent  = feedtype.SetAsideEvent
	ClaimEvent     = feedtype.ClaimEvent
	ClaimEventKind = feedtype.ClaimEventKind
	TroubleEvent   = feedtype.TroubleEvent
	LeaseEvent     = feedtype.LeaseEvent
	JobEvent       = feedtype.JobEvent
	JobEventKind   = feedtype.JobEventKind
)

// Observers is one Observer that calls several, in their order. Nil ones are left out.
func Observers(all ...*Observer) *Observer { return feedtype.Observers(all...) }

// What a ClaimEvent and a JobEvent tell.
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

// The codes of errors. Package feedtype says what each means.
const (
	InvalidRequest    = feedtype.InvalidRequest
	UnknownFeed       = feedtype.UnknownFeed
	NotInitialized    = feedtype.NotInitialized
	SchemaVersion     = feedtype.SchemaVersion
	CursorAhead       = feedtype.CursorAhead
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
	Filling           = feedtype.Filling
	LeaseTaken        = feedtype.LeaseTaken
	LeaseLost         = feedtype.LeaseLost
	UnknownLease      = feedtype.UnknownLease
	UnknownToken      = feedtype.UnknownToken
	Unauthorized      = feedtype.Unauthorized
	Forbidden         = feedtype.Forbidden
	Failed            = feedtype.Failed
)

// LeaseStatus is how a lease stands.
type LeaseStatus = feedtype.LeaseStatus

// The states of a lease.
const (
	LeaseHeld    = feedtype.LeaseHeld
	LeaseExpired = feedtype.LeaseExpired
	LeaseFree    = feedtype.LeaseFree
)

// What a Consumer is set up with, and what becomes of it.
type (
	// ConsumerID names cursors.
	ConsumerID = feedtype.ConsumerID
	// Retry is how often and how quickly a failed page is tried again.
	Retry = feedtype.Retry
	// OnFailure is what a consumer does with an entry that cannot be handled.
	OnFailure = feedtype.OnFailure
	// Refusal is an entry that a Consumer's Deliver could not get rid of.
	Refusal = feedtype.Refusal
	// DeadLetter is a key that a consumer has set aside.
	DeadLetter = feedtype.DeadLetter
)

const (
	// Stop ends Run with the handler's error, see [feedtype.Stop].
	Stop = feedtype.Stop
	// SetAside makes the key a dead letter and goes on with the others.
	SetAside = feedtype.SetAside
	// LetterAside is the state of a dead letter that waits for an operator.
	LetterAside = feedtype.LetterAside
	// LetterRetry is the state of one that its consumer will try again.
	LetterRetry = feedtype.LetterRetry
)

// Later wraps an error of Handle that is no fault of the entries, see [feedtype.Later].
func Later(err error) error { return feedtype.Later(err) }

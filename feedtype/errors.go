package feedtype

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of a kind of error. It is an error itself, so that errors.Is(err, rowfeed.CursorAhead)
// tests for it. Over HTTP, the problem type ends with the same text.
type Code string

func (c Code) Error() string { return string(c) }

const (
	// InvalidRequest means that a parameter is invalid. Error.Param names it.
	InvalidRequest Code = "invalid-request"
	// UnknownFeed means that the feed does not exist, or no longer exists.
	UnknownFeed Code = "unknown-feed"
	// NotInitialized means that rowfeed's own tables are missing.
	NotInitialized Code = "not-initialized"
	// SchemaVersion means that rowfeed's own tables have another version than this program needs.
	SchemaVersion Code = "schema-version"
	// CursorAhead means that the cursor has no term and is above the feed's head. It belongs to another feed, or the
	// database was restored to an earlier state.
	CursorAhead Code = "cursor-ahead"
	// HistoryLost means that the consumer has read positions which the database has lost, or never had: a backup was
	// restored, or a failover lost commits. Consumers that have read nothing of them are not refused.
	HistoryLost Code = "history-lost"
	// GenerationChanged means that the cursor is of another generation of the feed.
	GenerationChanged Code = "generation-changed"
	// TombstonesExpired means that the cursor is older than the oldest kept tombstone. Deletes between the cursor and
	// now were purged.
	TombstonesExpired Code = "tombstones-expired"
	// EntriesExpired means that the cursor is older than the oldest kept entry of its shard. Entries between the
	// cursor and now were purged, see FeedSpec.Retain.
	EntriesExpired Code = "entries-expired"
	// Refused means that rowfeed cannot serve the table or database safely, or does not support the request.
	Refused Code = "refused"
	// Conflict means that the request contradicts what is stored, such as a feed that exists with other settings.
	Conflict Code = "conflict"
	// Unavailable means that the database or server cannot be reached now.
	Unavailable Code = "unavailable"
	// UnsafeDurability means that the server may lose commits with its current settings.
	UnsafeDurability Code = "unsafe-durability"
	// Locked means that the locks of other sessions were not released in time.
	Locked Code = "locked"
	// HandlerFailed means that a consumer's handler failed.
	HandlerFailed Code = "handler-failed"
	// ConsumerPaused means that an operator has paused the consumer.
	ConsumerPaused Code = "consumer-paused"
	// UnknownConsumer means that the consumer, or its dead letter, does not exist.
	UnknownConsumer Code = "unknown-consumer"
	// DatabaseChanged means that the database of a ULID feed was replaced or restored: by a backup, a failover or a
	// move. Reading continues after an operator has called Bump or AdoptDatabase. It also means that another SQLite
	// file is at the path of the one that was opened.
	DatabaseChanged Code = "database-changed"
	// ReadOnly means that the database is a replica or a read-only server, and a primary is needed.
	ReadOnly Code = "read-only"
	// NotConsistent means that the changes committed before a request with Consistent could not be published in time.
	NotConsistent Code = "not-consistent"
	// Sharding means that the keys of the feed are being assigned to other data shards. Until that is done, only the
	// whole feed is served, and no part of it.
	Sharding Code = "sharding"
	// OtherPart means that the cursor was given for another part of the feed than the one that is asked for, or before
	// the feed's number of data shards was changed. Going on from it would skip keys. The lowest cursor of all parts is
	// valid for the whole feed and all of its parts, once '@' and '_' are left out, each with the digits behind it.
	OtherPart Code = "other-part"
	// Filling means that the back-fill of the feed is running. Until it is done, the feed refuses cursors below the
	// rows that are still to get positions, and serves higher cursors.
	Filling Code = "filling"
	// LeaseTaken means that another process, or another claim of this process, holds the lease.
	LeaseTaken Code = "lease-taken"
	// LeaseLost means that the claim on a lease has ended: it expired, or was released or taken over.
	LeaseLost Code = "lease-lost"
	// UnknownLease means that the lease was never acquired.
	UnknownLease Code = "unknown-lease"
	// UnknownToken means that the token does not exist, has expired or was revoked.
	UnknownToken Code = "unknown-token"
	// Unauthorized means that the server does not know the client.
	Unauthorized Code = "unauthorized"
	// Forbidden means that the client does not have the right to do this.
	Forbidden Code = "forbidden"
	// Failed means any other failure.
	Failed Code = "failed"
)

// Error says what failed, on which object, why, and what to do next.
type Error struct {
	Code   Code
	Object string // such as `feed "kv"`
	Cause  string
	Next   string // the next step, an imperative sentence; may be empty
	Param  string // the parameter at fault, for InvalidRequest
	Err    error  // the driver's error, or nil
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Object != "" {
		b.WriteString(e.Object + ": ")
	}
	b.WriteString(e.Cause)
	if e.Err != nil && e.Err != errors.ErrUnsupported { // errors.ErrUnsupported is for programs; Cause says the same
		b.WriteString(": " + strings.TrimSuffix(e.Err.Error(), ": "+errors.ErrUnsupported.Error()))
	}
	if e.Next != "" {
		b.WriteString(". Next: " + e.Next)
	}
	return b.String()
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether target is the error's Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Invalid returns an error with the code InvalidRequest about a parameter.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Code: InvalidRequest, Param: param, Cause: param + ": " + fmt.Sprintf(format, args...)}
}

// FeedObject is the text for Error.Object of an error about a feed, such as `feed "kv"`.
func FeedObject(name string) string { return fmt.Sprintf("feed %q", name) }

package feedtype

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the stable name of a kind of error. It is itself an error, so that
// errors.Is(err, rowfeed.CursorAhead) asks for it; the same text is the last part
// of the problem type over HTTP.
type Code string

func (c Code) Error() string { return string(c) }

const (
	// InvalidRequest is a parameter that cannot be; Error.Param names it.
	InvalidRequest Code = "invalid-request"
	// UnknownFeed is a feed that does not exist (or no longer does).
	UnknownFeed Code = "unknown-feed"
	// NotInitialized means that rowfeed's own tables are missing.
	NotInitialized Code = "not-initialized"
	// SchemaVersion means that rowfeed's own tables are of another version.
	SchemaVersion Code = "schema-version"
	// CursorAhead is a cursor above the feed's head: it belongs to another feed or to a
	// database that was set back.
	CursorAhead Code = "cursor-ahead"
	// GenerationChanged is a cursor of another generation of the feed.
	GenerationChanged Code = "generation-changed"
	// TombstonesExpired is a cursor older than the oldest kept tombstone: deletes
	// between it and now have been forgotten.
	TombstonesExpired Code = "tombstones-expired"
	// EntriesExpired is a cursor older than the oldest kept entry of its shard: entries between
	// it and now were purged, see FeedSpec.Retain.
	EntriesExpired Code = "entries-expired"
	// Refused is a table or database that rowfeed cannot serve safely.
	Refused Code = "refused"
	// Conflict is a feed that exists with other settings.
	Conflict Code = "conflict"
	// Unavailable is a database that cannot be reached now.
	Unavailable Code = "unavailable"
	// UnsafeDurability is a server setting under which a commit can be forgotten.
	UnsafeDurability Code = "unsafe-durability"
	// Locked means that other sessions' locks were in the way for too long.
	Locked Code = "locked"
	// HandlerFailed is a consumer's handler that could not do its work.
	HandlerFailed Code = "handler-failed"
	// ConsumerPaused is a consumer that an operator has paused.
	ConsumerPaused Code = "consumer-paused"
	// UnknownConsumer is a consumer, or a dead letter of one, that does not exist.
	UnknownConsumer Code = "unknown-consumer"
	// DatabaseChanged is a database that is not the one it was, or was set back: after a
	// restored backup, a failover or a move. It passes when an operator has said which,
	// by Bump or AdoptDatabase.
	DatabaseChanged Code = "database-changed"
	// ReadOnly is a replica or a read-only server that was taken for a primary.
	ReadOnly Code = "read-only"
	// NotConsistent means that what was committed before a request with Consistent could
	// not be published in time.
	NotConsistent Code = "not-consistent"
	// Sharding is a feed whose keys are being given other data shards: parts of it are not
	// served until that is done, the whole feed is.
	Sharding Code = "sharding"
	// Filling is a feed whose back-fill is under way: cursors from which rows that are placed
	// later would be missed are not served until it is done, those above them are.
	Filling Code = "filling"
	// LeaseTaken is a lease that somebody else holds.
	LeaseTaken Code = "lease-taken"
	// LeaseLost is a claim on a lease that is over: expired, released, or taken over.
	LeaseLost Code = "lease-lost"
	// UnknownLease is a lease that nobody has ever acquired.
	UnknownLease Code = "unknown-lease"
	// UnknownToken is a token that there is not, or that holds no more.
	UnknownToken Code = "unknown-token"
	// Unauthorized is a server of feeds that does not know who asks.
	Unauthorized Code = "unauthorized"
	// Forbidden is something that who asks has not the right to.
	Forbidden Code = "forbidden"
	// Failed is any other failure of the database.
	Failed Code = "failed"
)

// Error says what failed, on which object, why, and what to do next.
type Error struct {
	Code   Code
	Object string // such as `feed "kv"`
	Cause  string
	Next   string // the next step, an imperative sentence; may be empty
	Param  string // the parameter at fault, for InvalidRequest
	Err    error  // the driver's error, where there is one
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Object != "" {
		b.WriteString(e.Object + ": ")
	}
	b.WriteString(e.Cause)
	if e.Err != nil && e.Err != errors.ErrUnsupported { // which tells programs what Cause has said
		b.WriteString(": " + strings.TrimSuffix(e.Err.Error(), ": "+errors.ErrUnsupported.Error()))
	}
	if e.Next != "" {
		b.WriteString(". Next: " + e.Next)
	}
	return b.String()
}

// Unwrap gives the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the error's Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

func Invalid(param, format string, args ...any) *Error {
	return &Error{Code: InvalidRequest, Param: param, Cause: param + ": " + fmt.Sprintf(format, args...)}
}

func FeedObject(name string) string { return fmt.Sprintf("feed %q", name) }

package dialect

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
)

// Class is what an error of the database means to rowfeed.
type Class int

const (
	// ClassOther is every error without a meaning of its own.
	ClassOther Class = iota
	// ClassRetry is a deadlock, a serialization failure or a busy database: the
	// transaction had no effect and may be run again.
	ClassRetry
	// ClassLockTimeout is a bounded wait for another session's lock that ran out.
	ClassLockTimeout
	// ClassConnection is a lost or refused connection, or a server that shuts down or
	// starts up. Whether a commit in flight took effect is unknown.
	ClassConnection
	// ClassUndefined is a table, column, function or savepoint that does not exist.
	ClassUndefined
	// ClassPermission is a missing right.
	ClassPermission
	// ClassDuplicate is a violated unique constraint.
	ClassDuplicate
	// ClassInvalid is a value that its column's type, or an index of it, does not accept.
	ClassInvalid
	// ClassFull is a disk or a quota that is full.
	ClassFull
	// ClassReadOnly is a server that takes no writes: a replica, or one set read-only.
	ClassReadOnly
)

// CodeField walks an error's chain and answers the first exported integer field
// of the given name, as database drivers have one for the server's code. It spares
// the dialects from importing a driver, so that any driver of the database will do.
func CodeField(err error, field string) (int64, bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.ValueOf(err)
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		f := v.FieldByName(field)
		switch {
		case !f.IsValid():
		case f.CanInt():
			return f.Int(), true
		case f.CanUint():
			return int64(f.Uint()), true
		}
	}
	return 0, false
}

// ErrNoTable is what Describe answers for a table that does not exist; its class is
// ClassUndefined on every database.
var ErrNoTable = errors.New("no such table")

// SystemTable is the refusal that Describe answers for a table of the database's own.
const SystemTable = "it is one of the database's own tables, on which nobody else may make triggers; make feeds of your tables"

// ErrHintAhead is what TakeShard answers to a hint of more than MaxHintAhead ahead of the
// database's clock.
var ErrHintAhead = errors.New("the hint is ahead of the clock")

// ErrNoULIDsLeft is what TakeShard answers where a shard has come to the last ULIDs that there are.
var ErrNoULIDsLeft = errors.New("there is no ULID above those of the shard")

// ErrNoTransaction is what LockShard answers where every statement is committed by itself.
var ErrNoTransaction = errors.New("no transaction is open")

// ErrLockWait is a wait for a shard's lock that has run out, on databases whose code for it
// stands for more.
var ErrLockWait = errors.New("another transaction has the lock")

// ErrReadOnly is what Identity answers on a server that takes no writes; its class is
// ClassReadOnly on every database that has such servers.
var ErrReadOnly = errors.New("the server is a replica or read-only")

// IsConnection tells whether err means a connection that was lost or could not be
// made, for errors that carry no code of the server.
func IsConnection(err error) bool {
	// pgx says so of an error that came before anything was sent: the connection was
	// closed under it.
	var unsent interface{ SafeToRetry() bool }
	if errors.As(err, &unsent) && unsent.SafeToRetry() {
		return true
	}
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

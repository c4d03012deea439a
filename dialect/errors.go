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
	// ClassOther is an error that has no class of its own.
	ClassOther Class = iota
	// ClassRetry is a deadlock, a serialization failure or a busy database. The transaction had no effect and
	// may be run again.
	ClassRetry
	// ClassLockTimeout is a wait for another session's lock that took longer than its bound.
	ClassLockTimeout
	// ClassConnection is a connection that was lost or refused, or a server that shuts down or starts up. It is
	// unknown whether a commit in flight took effect.
	ClassConnection
	// ClassUndefined is a table, column, function or savepoint that does not exist.
	ClassUndefined
	// ClassPermission is a missing right.
	ClassPermission
	// ClassDuplicate is a violated unique constraint.
	ClassDuplicate
	// ClassInvalid is a value that its column's type, or an index of it, does not accept.
	ClassInvalid
	// ClassFull is a full disk or an exhausted quota.
	ClassFull
	// ClassReadOnly is a server that accepts no writes: a replica, or a server that is set to read-only.
	ClassReadOnly
)

// CodeField searches the chain of an error for the first exported integer field of this name, in which a
// database driver has the server's error code. So a dialect needs no import of a driver, and works with every
// driver that has such a field.
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

// ErrNoTable is the error of Describe if the table does not exist. Its class is ClassUndefined on every
// database.
var ErrNoTable = errors.New("no such table")

// SystemTable is what Describe puts into Table.Refusals for a table of the database itself.
const SystemTable = "it is one of the database's own tables, on which only the database makes triggers; " +
	"make feeds of your tables"

// ErrHintAhead is the error of TakeShard if the time hint is more than MaxHintAhead ahead of the database's
// clock.
var ErrHintAhead = errors.New("the hint is ahead of the clock")

// ErrNoULIDsLeft is the error of TakeShard if the last possible ULID of a shard was given.
var ErrNoULIDsLeft = errors.New("there is no ULID above those of the shard")

// ErrNoTransaction is the error of LockShard outside of a transaction, where every statement commits by itself.
var ErrNoTransaction = errors.New("no transaction is open")

// ErrLockWait is a wait for a shard's lock that took longer than its bound, on databases whose error code for
// that has other meanings, too.
var ErrLockWait = errors.New("another transaction has the lock")

// ErrReadOnly is the error of Identity on a server that accepts no writes. Its class is ClassReadOnly on every
// database that has such servers.
var ErrReadOnly = errors.New("the server is a replica or read-only")

// IsConnection tells whether err, which has no code of the server, means that a connection was lost or could
// not be opened.
func IsConnection(err error) bool {
	// pgx has this method on an error that occurred before anything was sent: the connection was already
	// closed.
	var unsent interface{ SafeToRetry() bool }
	if errors.As(err, &unsent) && unsent.SafeToRetry() {
		return true
	}
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

package sqlserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// These are the numbers of the errors that rowfeed's own procedures and batches throw. Nothing else throws them.
const (
	errNoTransaction = 77100
	errLockWait      = 77101
	errHintAhead     = 77102
	errNoULIDsLeft   = 77103
	errNotReady      = 77104
	errDeadlock      = 77105
	errNoLock        = 77106
	errEnded         = 77117
	// 77107 to 77116 say what to do, and callers show them: see original.sql, outbox.sql and publish.sql.
)

// classes are the server's error numbers.
var classes = map[int32]dialect.Class{
	1205:        dialect.ClassRetry, // deadlock
	1204:        dialect.ClassRetry, // no memory for locks
	3930:        dialect.ClassRetry, // the transaction was doomed by an earlier error
	3960:        dialect.ClassRetry, // a snapshot's update conflict
	3961:        dialect.ClassRetry, // DDL since the snapshot
	8645:        dialect.ClassRetry, // no memory for the query in time
	errDeadlock: dialect.ClassRetry,

	1222:        dialect.ClassLockTimeout,
	errLockWait: dialect.ClassLockTimeout,

	// Connections that the network or the server has ended, and servers that start, stop or fail over.
	64: dialect.ClassConnection, 233: dialect.ClassConnection, 10053: dialect.ClassConnection,
	10054: dialect.ClassConnection, 10060: dialect.ClassConnection, 6005: dialect.ClassConnection,
	4060: dialect.ClassConnection, 40197: dialect.ClassConnection, 40501: dialect.ClassConnection,
	40613: dialect.ClassConnection, 49918: dialect.ClassConnection, 49919: dialect.ClassConnection,
	49920: dialect.ClassConnection, 10928: dialect.ClassConnection, 10929: dialect.ClassConnection,
	// A killed session, a database that recovers or changes its state, an availability group that fails over, and a
	// transaction that the server does not find any more.
	596: dialect.ClassConnection, 921: dialect.ClassConnection, 922: dialect.ClassConnection,
	924: dialect.ClassConnection, 942: dialect.ClassConnection, 952: dialect.ClassConnection,
	982: dialect.ClassConnection, 983: dialect.ClassConnection, 3902: dialect.ClassConnection,
	3971: dialect.ClassConnection, 4221: dialect.ClassConnection, 18401: dialect.ClassConnection,

	207:         dialect.ClassUndefined, // column
	208:         dialect.ClassUndefined, // table or view
	308:         dialect.ClassUndefined, // index in a hint
	1088:        dialect.ClassUndefined, // table of an index or a trigger
	4121:        dialect.ClassUndefined, // function
	2812:        dialect.ClassUndefined, // procedure
	3701:        dialect.ClassUndefined,
	4902:        dialect.ClassUndefined,
	6401:        dialect.ClassUndefined, // savepoint
	errNotReady: dialect.ClassUndefined,
	errEnded:    dialect.ClassUndefined,

	229: dialect.ClassPermission, 230: dialect.ClassPermission, 262: dialect.ClassPermission,
	297: dialect.ClassPermission, 300: dialect.ClassPermission, 371: dialect.ClassPermission,
	916: dialect.ClassPermission, 6102: dialect.ClassPermission, 15151: dialect.ClassPermission,
	// sp_getapplock's principal, and an owner who cannot be impersonated: a restored database whose owner has no login.
	1202: dialect.ClassPermission, 15517: dialect.ClassPermission,
	15247: dialect.ClassPermission, 18456: dialect.ClassPermission, errNoLock: dialect.ClassPermission,

	2601: dialect.ClassDuplicate, 2627: dialect.ClassDuplicate,

	220: dialect.ClassInvalid, 241: dialect.ClassInvalid, 245: dialect.ClassInvalid, 515: dialect.ClassInvalid,
	547: dialect.ClassInvalid, 1946: dialect.ClassInvalid, 2628: dialect.ClassInvalid, 8114: dialect.ClassInvalid,
	8115: dialect.ClassInvalid, 8152: dialect.ClassInvalid, 8169: dialect.ClassInvalid,

	1101: dialect.ClassFull, 1105: dialect.ClassFull, 9002: dialect.ClassFull,
	3958: dialect.ClassFull, 3959: dialect.ClassFull, 3966: dialect.ClassFull, 3967: dialect.ClassFull, // row versions

	976: dialect.ClassReadOnly, 978: dialect.ClassReadOnly, 3906: dialect.ClassReadOnly,
}

// number returns the server's number of an error, and false for an error of another origin.
func number(err error) (int32, bool) {
	var numbered interface{ SQLErrorNumber() int32 }
	if !errors.As(err, &numbered) {
		return 0, false
	}
	return numbered.SQLErrorNumber(), true
}

// Classify implements [dialect.Core] by the number of the error.
func (database) Classify(err error) dialect.Class {
	switch {
	case err == nil:
		return dialect.ClassOther
	case errors.Is(err, dialect.ErrReadOnly):
		return dialect.ClassReadOnly
	case errors.Is(err, dialect.ErrNoTable):
		return dialect.ClassUndefined
	// DeadlineExceeded is a net.Error, too
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return dialect.ClassOther
	}
	if n, ok := number(err); ok {
		return classes[n]
	}
	if dialect.IsConnection(err) {
		return dialect.ClassConnection
	}
	return dialect.ClassOther
}

// thrown turns an error that rowfeed's own procedures have thrown into the one that callers know.
func thrown(err error) error {
	switch n, _ := number(err); n {
	case errNoTransaction:
		return dialect.ErrNoTransaction
	case errLockWait:
		return fmt.Errorf("%w: %w", dialect.ErrLockWait, err) // and of class LockTimeout, as movers look for
	case errHintAhead:
		return dialect.ErrHintAhead
	case errNoULIDsLeft:
		return dialect.ErrNoULIDsLeft
	}
	return err
}

package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"regexp"

	"github.com/rowfeed/rowfeed/dialect"
)

// serverError is an error of rowfeed that has the number of one of the server's errors.
type serverError struct {
	Number  uint16
	message string
}

func (e *serverError) Error() string { return e.message }

const (
	errLockWaitTimeout = 1205
	errNoSuchTable     = 1146
	errTableExists     = 1050
	errNoSuchThread    = 1094
	// MySQL, for a read of INNODB_TRX while any statement runs whose bytes are not valid text
	errCannotShow = 3854
)

// classes are the server's error numbers. MariaDB and MySQL use the same numbers for the same errors.
var classes = map[int64]dialect.Class{
	1213: dialect.ClassRetry, // deadlock; on Galera also a conflict at COMMIT
	1020: dialect.ClassRetry, // MariaDB with innodb_snapshot_isolation: the record has changed
	1412: dialect.ClassRetry, // the table's definition has changed since the snapshot
	1689: dialect.ClassRetry, // a pending exclusive lock has aborted a lock
	3101: dialect.ClassRetry, // group replication: a conflict at COMMIT
	3058: dialect.ClassRetry, // deadlock of user-level locks

	// A wait that exceeded innodb_lock_wait_timeout (50 s by default) is reported, and not repeated silently.
	// For DDL it is lock_wait_timeout, and rowfeed tries again.
	errLockWaitTimeout: dialect.ClassLockTimeout,
	3572:               dialect.ClassLockTimeout, // NOWAIT

	1040: dialect.ClassConnection, // too many connections
	1047: dialect.ClassConnection, // Galera: the node is not ready
	1053: dialect.ClassConnection, // shutdown
	1077: dialect.ClassConnection,
	1152: dialect.ClassConnection, // aborted connection
	1159: dialect.ClassConnection, // timeouts and errors of the network
	1160: dialect.ClassConnection,
	1161: dialect.ClassConnection,
	1184: dialect.ClassConnection,
	1203: dialect.ClassConnection, // too many connections of this user
	1226: dialect.ClassConnection,
	1927: dialect.ClassConnection, // killed
	2006: dialect.ClassConnection,
	2013: dialect.ClassConnection,
	4031: dialect.ClassConnection, // idle for too long

	errNoSuchTable: dialect.ClassUndefined,
	1049:           dialect.ClassUndefined, // database
	1051:           dialect.ClassUndefined,
	1054:           dialect.ClassUndefined, // column
	1305:           dialect.ClassUndefined, // function, savepoint
	1176:           dialect.ClassUndefined, // index in a hint
	1360:           dialect.ClassUndefined, // trigger

	1044: dialect.ClassPermission,
	1045: dialect.ClassPermission,
	1095: dialect.ClassPermission, // KILL of another user's connection
	1142: dialect.ClassPermission,
	1143: dialect.ClassPermission,
	1227: dialect.ClassPermission,
	1370: dialect.ClassPermission,
	1419: dialect.ClassPermission, // with a binary log, triggers need more rights
	1698: dialect.ClassPermission,

	1022: dialect.ClassDuplicate,
	1062: dialect.ClassDuplicate,
	1586: dialect.ClassDuplicate,

	1264: dialect.ClassInvalid, // out of range
	1265: dialect.ClassInvalid, // truncated
	1292: dialect.ClassInvalid, // not a value of the type
	1366: dialect.ClassInvalid,
	1367: dialect.ClassInvalid,
	1406: dialect.ClassInvalid, // too long
	1411: dialect.ClassInvalid,
	1525: dialect.ClassInvalid,
	1048: dialect.ClassInvalid, // NULL

	// a server option refuses the statement; the only such option that rowfeed can meet is read_only
	1290: dialect.ClassReadOnly,
	1792: dialect.ClassReadOnly,
	1836: dialect.ClassReadOnly,

	1021: dialect.ClassFull,
	1114: dialect.ClassFull, // table or tablespace
}

// Classify implements [dialect.Core].
func (database) Classify(err error) dialect.Class {
	switch {
	case err == nil:
		return dialect.ClassOther
	case errors.Is(err, dialect.ErrNoTable):
		return dialect.ClassUndefined
	case errors.Is(err, dialect.ErrReadOnly):
		return dialect.ClassReadOnly
	case errors.Is(err, errMoved):
		return dialect.ClassRetry
	// DeadlineExceeded is a net.Error, too
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return dialect.ClassOther
	}
	if number, ok := dialect.CodeField(err, "Number"); ok {
		if noSpace(number, err) {
			return dialect.ClassFull
		}
		return classes[number]
	}
	var network net.Error
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return dialect.ClassConnection
	}
	if invalidConn(err) {
		return dialect.ClassConnection
	}
	return dialect.ClassOther
}

// Only the two functions below read the text of errors. The server and the driver report these facts in no
// other way.

// systemError finds the operating system's error number in the server's messages: "error 28", "Errcode: 28",
// "errno: 28", "OS errno 28".
var systemError = regexp.MustCompile(`(?i)(?:error|errcode:|errno:?) (\d+)\b`)

// noSpace tells whether an error of the engine, of the file system or at COMMIT means a full disk. The server
// has one number for each of these three, and puts the operating system's number into the message, whose form
// is fixed. SHOW WARNINGS has no more. If a full disk were not recognised, only the advice in rowfeed's message
// would be missing.
func noSpace(number int64, err error) bool {
	if number != 1026 && number != 1030 && number != 1180 {
		return false
	}
	all := systemError.FindAllStringSubmatch(err.Error(), -1)
	// The last number is the operating system's: a file may be named before it. The first one may be the
	// server's own number, which the driver puts in front.
	return len(all) > 0 && all[len(all)-1][1] == "28"
}

// invalidConn recognises go-sql-driver/mysql's ErrInvalidConn, an error without number or type, for a
// connection that was lost while a statement ran. To compare it with the variable, this package would have to
// import the driver. Then all users would depend on it.
func invalidConn(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == "invalid connection" {
			return true
		}
	}
	return false
}

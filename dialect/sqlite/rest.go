package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// lookAgain is how long a process must have the lock to be listed. Shorter locks are those of normal writes.
const lookAgain = 100 * time.Millisecond

// Blockers implements [dialect.Inspection]. It returns the processes that have the write lock of the file, for which
// publishers wait like all writers. Only one process can have it at a time. SQLite does not know which; the
// operating system does.
func (d database) Blockers(ctx context.Context, q dialect.Querier,
	_ *dialect.Feed) ([]dialect.Blocker, *dialect.Unseen, error) {
	var path string
	if err := dialect.One(ctx, q, syntax, statement(publishing, "file"), nil, &path); err != nil {
		return nil, nil, err
	}
	if path == "" { // in memory
		return nil, nil, nil
	}
	held, told := writers(path)
	if !told {
		return nil, &dialect.Unseen{Cause: "neither SQLite nor the operating system shows this process " +
			"which process has locked the file",
			Next: "run the command on Linux, outside of its container, or see which processes have the file " +
				"open (`fuser -v`)"}, nil
	}
	if len(held) == 0 {
		return nil, nil, nil
	}
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(lookAgain):
	}
	still, _ := writers(path)
	var found []dialect.Blocker
	for _, pid := range held {
		if slices.Contains(still, pid) {
			found = append(found, process(pid))
		}
	}
	return found, nil, nil
}

// Backlog implements [dialect.Inspection].
func (d database) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, age int64, err error) {
	name, args := "backlog", dialect.Args{"limit": limit}
	switch {
	case f.Outbox && len(shard) > 0:
		name, args["shard"] = "backlog_of_shard", shard[0]
	case f.Outbox:
		name = "backlog_of_outbox"
	}
	err = dialect.One(ctx, q, syntax, publishing.For(syntax, f, name), args, &count, &age)
	return count, age, err
}

// These are SQLite's primary result codes, https://www.sqlite.org/rescode.html.
const (
	codeError      = 1
	codePerm       = 3
	codeBusy       = 5
	codeLocked     = 6
	codeReadonly   = 8
	codeIOErr      = 10
	codeFull       = 13
	codeCantOpen   = 14
	codeSchema     = 17
	codeConstraint = 19
	codeMismatch   = 20
	codeAuth       = 23
	// extended codes
	busySnapshot         = codeBusy | 2<<8
	constraintPrimaryKey = codeConstraint | 6<<8
	constraintUnique     = codeConstraint | 8<<8
)

// Classify implements [dialect.Core] by the result code. SQLite has one code for all errors in the text of a
// statement. A missing table is one of them, and the only one that rowfeed's statements can have.
func (database) Classify(err error) dialect.Class {
	if errors.Is(err, dialect.ErrNoTable) {
		return dialect.ClassUndefined
	}
	if errors.Is(err, driver.ErrBadConn) {
		return dialect.ClassConnection
	}
	code, ok := resultCode(err)
	if !ok {
		return dialect.ClassOther
	}
	switch code {
	case constraintPrimaryKey, constraintUnique:
		return dialect.ClassDuplicate
	}
	switch code & 0xff {
	case codeBusy, codeLocked:
		return dialect.ClassRetry
	case codeError, codeSchema:
		return dialect.ClassUndefined
	case codePerm, codeAuth, codeReadonly:
		return dialect.ClassPermission
	case codeFull:
		return dialect.ClassFull
	case codeCantOpen, codeIOErr:
		return dialect.ClassConnection
	case codeMismatch, codeConstraint:
		return dialect.ClassInvalid
	}
	return dialect.ClassOther
}

// resultCode reads the code from the driver's error: a method Code (modernc.org/sqlite) or a field ExtendedCode
// (mattn/go-sqlite3).
func resultCode(err error) (int64, bool) {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return int64(coded.Code()), true
	}
	return dialect.CodeField(err, "ExtendedCode")
}

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// This file has what SQLite has not: logins, sessions, schemas, partitions, stored functions, an identity.

// Restore implements [dialect.Publish]. There is nothing to restore.
func (Dialect) Restore(dialect.Purpose) string { return "" }

// Unlocked implements [dialect.Publish].
func (Dialect) Unlocked() string { return "" }

// Identity implements [dialect.Publish]. SQLite has none: a file that was replaced by another one looks the
// same.
func (Dialect) Identity(context.Context, dialect.Querier, dialect.Names) (string, error) {
	return "", nil
}

// IdentitySQL implements [dialect.Publish].
func (Dialect) IdentitySQL(dialect.Names) string { return "" }

// Stamp implements [dialect.Publish]. PRAGMA data_version does not show commits of the same connection. Its
// values can be compared only if they come from the same connection, which would have to be reserved for that.
func (Dialect) Stamp() string { return "" }

// SeqsGrow implements [dialect.Publish]. In a table that is empty, the seqs start again. A scan does not read
// deleted changes, so no range has to be left out.
func (Dialect) SeqsGrow() bool { return false }

// ScanRanges implements [dialect.Publish]. It returns the whole table: see SeqsGrow.
func (Dialect) ScanRanges(string, dialect.Seqs) []string { return []string{""} }

// Writers implements [dialect.Publish]. It tells nothing: see SeqsGrow.
func (Dialect) Writers(context.Context, dialect.Querier, *dialect.Feed) ([]dialect.Writer, bool, error) {
	return nil, false, nil
}

// PublishBatch implements [dialect.Publish]: the other operations do the work.
func (Dialect) PublishBatch(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs,
	int) (dialect.BatchResult, error) {
	return dialect.BatchResult{}, nil
}

// Flush implements [dialect.Read]. It writes nothing: a commit is in the file before other sessions see it.
func (Dialect) Flush(context.Context, dialect.Querier, dialect.Names) error { return nil }

// FlushAlone implements [dialect.Read]. It writes nothing, either.
func (Dialect) FlushAlone(context.Context, dialect.Querier, dialect.Names) (bool, error) {
	return true, nil
}

// ULIDUp implements [dialect.ULID]: SQLite has no stored functions.
func (Dialect) ULIDUp(*dialect.Feed) []dialect.Step { return nil }

// ULIDDown implements [dialect.ULID].
func (Dialect) ULIDDown(*dialect.Feed) []dialect.Step { return nil }

// ULIDProblems implements [dialect.ULID].
func (Dialect) ULIDProblems(context.Context, dialect.Querier, *dialect.Feed) (missing, other []string, err error) {
	return nil, nil, nil
}

// CurrentSchema implements [dialect.Schema]. A trigger can neither write into another database file nor name
// one.
func (Dialect) CurrentSchema(context.Context, dialect.Querier) (string, error) { return "", nil }

// NewPartitions implements [dialect.Schema]: SQLite has no partitions.
func (Dialect) NewPartitions(context.Context, dialect.Querier, *dialect.Feed,
	*dialect.Table) ([]dialect.NewPartition, error) {
	return nil, nil
}

// Takeovers implements [dialect.Schema]: SQLite has no logins.
func (Dialect) Takeovers(context.Context, dialect.Querier, *dialect.Feed, *dialect.Table) ([]string, error) {
	return nil, nil
}

// Strays implements [dialect.Schema]: a trigger and its table are in the same file.
func (Dialect) Strays(context.Context, dialect.Querier, *dialect.Feed, *dialect.Table) ([]string, error) {
	return nil, nil
}

// Moved implements [dialect.Schema]: there is only one schema.
func (Dialect) Moved(context.Context, dialect.Querier, *dialect.Feed) (now feedtype.TableName, ok bool, err error) {
	return now, false, nil
}

// OtherSchemas implements [dialect.Schema]: there is only one schema.
func (Dialect) OtherSchemas(context.Context, dialect.Querier, dialect.Names) ([]string, error) {
	return nil, nil
}

// Holders implements [dialect.Rest]. It returns nothing: SQLite does not tell which session has the lock.
func (Dialect) Holders(context.Context, dialect.Querier,
	*dialect.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	return nil, dialect.HoldersNone, nil
}

// EndHolder implements [dialect.Rest]. It always fails: no server knows SQLite's sessions.
func (Dialect) EndHolder(context.Context, dialect.Querier, *dialect.Feed, dialect.Holding) (bool, error) {
	return false, fmt.Errorf("SQLite has no sessions that another process could end: %w", errors.ErrUnsupported)
}

// Login implements [dialect.Roles]. SQLite has no logins: a process that can open the file can do everything.
func (Dialect) Login(string) (string, error) { return "", errors.ErrUnsupported }

// Account implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) Account(context.Context, dialect.Querier, string) (string, error) {
	return "", errors.ErrUnsupported
}

// Owns implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) Owns(context.Context, dialect.Querier, string, dialect.Right) (bool, error) {
	return false, errors.ErrUnsupported
}

// PartsVisible implements [dialect.Roles]: a process that can open the file can read all of it.
func (Dialect) PartsVisible(context.Context, dialect.Querier, []string) (bool, error) {
	return true, nil
}

// LockRights implements [dialect.Roles].
func (Dialect) LockRights(*dialect.Feed) []dialect.Right { return nil }

// FlushRights implements [dialect.Roles].
func (Dialect) FlushRights(dialect.Names) []dialect.Right { return nil }

// GrantSQL implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) GrantSQL(string, []dialect.Right) []dialect.Step { return nil }

// RevokeSQL implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) RevokeSQL(string, []dialect.Right) []dialect.Step { return nil }

// Grant implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) Grant(context.Context, dialect.Querier, string, []dialect.Right) error {
	return errors.ErrUnsupported
}

// Revoke implements [dialect.Roles]. It is not called on SQLite.
func (Dialect) Revoke(context.Context, dialect.Querier, string, []dialect.Right) error {
	return errors.ErrUnsupported
}

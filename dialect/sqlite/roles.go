package sqlite

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
)

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

package sqlite

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
)

// Login refuses: who may open the file may do everything.
func (Dialect) Login(string) (string, error) { return "", errors.ErrUnsupported }

// Account is never asked for.
func (Dialect) Account(context.Context, dialect.Querier, string) (string, error) {
	return "", errors.ErrUnsupported
}

// Owns is never asked for.
func (Dialect) Owns(context.Context, dialect.Querier, string, dialect.Right) (bool, error) {
	return false, errors.ErrUnsupported
}

// Shown: whoever may open the file may read all of it.
func (Dialect) Shown(context.Context, dialect.Querier, []string) (bool, error) { return true, nil }

// LockRights are none.
func (Dialect) LockRights(*dialect.Feed) []dialect.Right { return nil }

// FlushRights are none.
func (Dialect) FlushRights(dialect.Names) []dialect.Right { return nil }

// GrantSQL is never asked for, as there is no login.
func (Dialect) GrantSQL(string, []dialect.Right) []dialect.Step { return nil }

// RevokeSQL is never asked for.
func (Dialect) RevokeSQL(string, []dialect.Right) []dialect.Step { return nil }

// Grant is never asked for.
func (Dialect) Grant(context.Context, dialect.Querier, string, []dialect.Right) error {
	return errors.ErrUnsupported
}

// Revoke is never asked for.
func (Dialect) Revoke(context.Context, dialect.Querier, string, []dialect.Right) error {
	return errors.ErrUnsupported
}

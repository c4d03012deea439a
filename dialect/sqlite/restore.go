package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// Identity implements [dialect.Publish]. SQLite has none: a file that was replaced by another one looks the
// same.
func (Dialect) Identity(context.Context, dialect.Querier, dialect.Names) (string, error) {
	return "", nil
}

// IdentitySQL implements [dialect.Publish].
func (Dialect) IdentitySQL(dialect.Names) string { return "" }

package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// Identity is not known: a file that was put in another's place looks like it.
func (Dialect) Identity(context.Context, dialect.Querier, dialect.Names) (string, error) {
	return "", nil
}

// IdentitySQL is empty: nothing is known.
func (Dialect) IdentitySQL(dialect.Names) string { return "" }

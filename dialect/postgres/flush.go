package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// Flush implements [dialect.Read]. It writes nothing: PostgreSQL flushes its log before it shows a commit.
func (Dialect) Flush(context.Context, dialect.Querier, dialect.Names) error { return nil }

// FlushAlone implements [dialect.Read]. It writes nothing, either.
func (Dialect) FlushAlone(context.Context, dialect.Querier, dialect.Names) (bool, error) {
	return true, nil
}

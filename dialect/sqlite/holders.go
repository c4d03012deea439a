package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// Holders implements [dialect.Rest]. It returns nothing: SQLite does not tell which session has the lock.
func (Dialect) Holders(context.Context, dialect.Querier,
	*dialect.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	return nil, dialect.HoldersNone, nil
}

// EndHolder implements [dialect.Rest]. It always fails: no server knows SQLite's sessions.
func (Dialect) EndHolder(context.Context, dialect.Querier, *dialect.Feed, dialect.Holding) (bool, error) {
	return false, fmt.Errorf("SQLite has no sessions that another process could end: %w", errors.ErrUnsupported)
}

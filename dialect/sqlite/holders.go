package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// Holders tells nothing: a file's lock has no name.
func (Dialect) Holders(context.Context, dialect.Querier, *dialect.Feed) ([]dialect.Holding, dialect.Told, error) {
	return nil, dialect.ToldNothing, nil
}

// EndHolder cannot: there is no server that knows its sessions.
func (Dialect) EndHolder(context.Context, dialect.Querier, *dialect.Feed, dialect.Holding) (bool, error) {
	return false, fmt.Errorf("SQLite has no sessions that somebody else could end: %w", errors.ErrUnsupported)
}

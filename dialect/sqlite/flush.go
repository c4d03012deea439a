package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// noFlushTable keeps the versions the same on all databases: MySQL and MariaDB have a
// table here that makes what was read durable.
func (d Dialect) noFlushTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 3,
		Title:   "flushes (nothing to do here)",
		Up:      []string{"INSERT INTO " + name("schema_version") + " VALUES (3, " + d.Now() + ")"},
		Down:    []string{"DELETE FROM " + name("schema_version") + " WHERE version = 3"},
	}
}

// Flush has nothing to write: a commit is in the file before anybody sees it.
func (Dialect) Flush(context.Context, dialect.Querier, dialect.Names) error { return nil }

// FlushAlone has nothing to write, either.
func (Dialect) FlushAlone(context.Context, dialect.Querier, dialect.Names) (bool, error) {
	return true, nil
}

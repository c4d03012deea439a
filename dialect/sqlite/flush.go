package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// noFlushTable keeps the version numbers the same on all databases. On MySQL and MariaDB this version makes the
// table that [dialect.Read].Flush writes.
func (d Dialect) noFlushTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 3,
		Title:   "flushes (nothing to do here)",
		Up:      []string{"INSERT INTO " + name("schema_version") + " VALUES (3, " + d.Now() + ")"},
		Down:    []string{"DELETE FROM " + name("schema_version") + " WHERE version = 3"},
	}
}

// Flush implements [dialect.Read]. It writes nothing: a commit is in the file before other sessions see it.
func (Dialect) Flush(context.Context, dialect.Querier, dialect.Names) error { return nil }

// FlushAlone implements [dialect.Read]. It writes nothing, either.
func (Dialect) FlushAlone(context.Context, dialect.Querier, dialect.Names) (bool, error) {
	return true, nil
}

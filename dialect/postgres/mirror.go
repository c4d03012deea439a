package postgres

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Upsert implements [dialect.Spelling].
func (Dialect) Upsert(table string, columns []string, rows [][]string, key []string) string {
	return dialect.Upsert(table, columns, rows, key)
}

// Store implements [dialect.Spelling]. The type is the column's wherever there is no cast
// of another one; one to the column's own would cut what is too long.
func (Dialect) Store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "(CAST(" + placeholder + " AS timestamp) AT TIME ZONE 'UTC')" // not the session's
	}
	return placeholder
}

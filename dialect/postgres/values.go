package postgres

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// InsertNew implements [dialect.Spelling].
func (Dialect) InsertNew(table string, columns, values, key []string) string {
	return dialect.InsertNew(table, columns, values, key)
}

// Upsert implements [dialect.Spelling].
func (Dialect) Upsert(table string, columns []string, rows [][]string, key []string) string {
	return dialect.Upsert(table, columns, rows, key)
}

// Store implements [dialect.Spelling]. Without a cast to another type, the parameter gets the column's type. A
// cast to the column's own type would cut text that is too long.
func (Dialect) Store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "(CAST(" + placeholder + " AS timestamp) AT TIME ZONE 'UTC')" // not in the time zone of the session
	}
	return placeholder
}

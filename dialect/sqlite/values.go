package sqlite

import "github.com/rowfeed/rowfeed/dialect"

// InsertNew implements [dialect.Spelling].
func (Dialect) InsertNew(table string, columns, values, key []string) string {
	return dialect.InsertNew(table, columns, values, key)
}

// Upsert implements [dialect.Spelling].
func (Dialect) Upsert(table string, columns []string, rows [][]string, key []string) string {
	return dialect.Upsert(table, columns, rows, key)
}

// Store implements [dialect.Spelling].
func (Dialect) Store(_ dialect.Column, placeholder string) string { return placeholder }

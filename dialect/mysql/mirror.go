package mysql

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// InsertNew implements [dialect.Spelling] with INSERT IGNORE. For a row that exists already, the rows affected
// are then 0, whatever the driver's clientFoundRows. IGNORE also cuts values that are too long, so rowfeed
// checks their lengths before.
func (Dialect) InsertNew(table string, columns, values, _ []string) string {
	return "INSERT IGNORE INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")"
}

// Upsert implements [dialect.Spelling]. ON DUPLICATE KEY finds a row by any of its unique indexes, and cannot
// be limited to one. So the statement also sets the key columns. A row with the same value in another unique
// index becomes the new row, as if it had been deleted first. Without that, it would get the values of another
// key. VALUES is deprecated on MySQL, but MariaDB has no other form.
func (Dialect) Upsert(table string, columns []string, rows [][]string, _ []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = VALUES(" + c + ")"
	}
	return dialect.InsertRows(table, columns, rows) + " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// Store implements [dialect.Spelling]. A TIMESTAMP is written in the session's time zone. There, the last hour
// of summer time has the same clock times as the first hour of winter time. All other instants are exact.
func (Dialect) Store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "CONVERT_TZ(CAST(" + placeholder + " AS DATETIME(6)), '+00:00', @@session.time_zone)"
	}
	return placeholder
}

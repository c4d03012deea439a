package mysql

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Upsert implements [dialect.Spelling]. ON DUPLICATE KEY finds a row by any of its unique
// indexes, and nothing limits it to one. So the key is set like every other column: a row
// that has the new one's value in another index becomes the new one, as if it had made
// room for it; without that it would be given the values of a row that it is not. VALUES
// is deprecated on MySQL, but the only form that MariaDB has as well.
func (Dialect) Upsert(table string, columns []string, rows [][]string, _ []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = VALUES(" + c + ")"
	}
	return dialect.InsertRows(table, columns, rows) + " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// Store implements [dialect.Spelling]. A TIMESTAMP is written in the session's time zone,
// whose last hour of summer is the first of winter as well; all other instants are exact.
func (Dialect) Store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "CONVERT_TZ(CAST(" + placeholder + " AS DATETIME(6)), '+00:00', @@session.time_zone)"
	}
	return placeholder
}

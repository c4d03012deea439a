// Package sqlite is the SQLite dialect, for any database/sql driver of SQLite 3.38
// or later (modernc.org/sqlite and mattn/go-sqlite3 have been seen to work); clients
// that only write need not be that new, since the triggers use no newer SQL.
//
// SQLite types values, not columns: every column but a BLOB one is delivered by
// each value's own type. It has one writer at a time, which makes publishing
// simple, and no server: the reasons that matter are in DESIGN.md.
package sqlite

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Dialect implements dialect.Dialect.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// New makes the dialect; it has no settings.
func New() Dialect { return Dialect{} }

// Name is "sqlite".
func (Dialect) Name() string { return "sqlite" }

// Quote uses double quotes, as the standard has it.
func (Dialect) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Literal doubles quotes.
func (Dialect) Literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// RowValues are compared by an index as a whole.
func (Dialect) RowValues() bool { return true }

// Frame is one transaction.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{{Note: "all or nothing", SQL: "BEGIN IMMEDIATE"}}, []dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// Terminate adds a semicolon: the sqlite3 shell knows where a trigger's body ends.
func (Dialect) Terminate(statement string) string { return statement + ";" }

// Placeholder is "?".
func (Dialect) Placeholder(int) string { return "?" }

// Inline implements [dialect.Spelling]: there are no round trips.
func (Dialect) Inline(any) (string, bool) { return "", false }

// Now works back to SQLite 3.0: unixepoch('subsec') is younger than the clients
// that fire our triggers. It has a resolution of a millisecond.
func (Dialect) Now() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"
}

// Value reads a column behind a unary plus: an expression has no declared type, so
// that no driver turns a TEXT in a DATETIME column into a time, or a 1 in a BOOLEAN
// column into true.
func (Dialect) Value(_ dialect.Column, ref string) string { return "+" + ref }

// Param needs no cast: values carry their types.
func (Dialect) Param(_ dialect.Column, placeholder string) string { return placeholder }

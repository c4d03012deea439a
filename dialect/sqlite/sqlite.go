// Package sqlite is the SQLite dialect, for any database/sql driver of SQLite 3.38 or later. It is tried with
// modernc.org/sqlite and mattn/go-sqlite3. Clients that only write may have an older SQLite, because the
// triggers use no newer SQL.
//
// In SQLite values have types, and columns do not. So every column except a BLOB one is delivered with the type
// of each value. SQLite has one writer at a time, which makes publishing simple, and it has no server.
// DESIGN.md has the reasons.
//
// The statements are in the files *.sql, with their reasons. capture.sql has the triggers, publish.sql what a publisher
// locks, rows.sql positions in the rows themselves, outbox.sql and shards.sql feeds with ULIDs. read.go has the
// statement of a page, absent.go what SQLite does not have.
package sqlite

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Dialect implements [dialect.Dialect].
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// New returns the dialect, which has no settings.
func New() Dialect { return Dialect{} }

// Name implements [dialect.Spelling].
func (Dialect) Name() string { return "sqlite" }

// Quote implements [dialect.Spelling] with double quotes, as in standard SQL.
func (Dialect) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Literal implements [dialect.Spelling].
func (Dialect) Literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// RowValues implements [dialect.Spelling]: SQLite uses an index to compare row values.
func (Dialect) RowValues() bool { return true }

// Frame implements [dialect.Spelling]. The script is one transaction.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{{Note: "all or nothing", SQL: "BEGIN IMMEDIATE"}},
		[]dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// Terminate implements [dialect.Spelling] with a semicolon. The sqlite3 shell knows where the body of a trigger
// ends.
func (Dialect) Terminate(statement string) string { return statement + ";" }

// Placeholder implements [dialect.Spelling].
func (Dialect) Placeholder(int) string { return "?" }

// Inline implements [dialect.Spelling]: SQLite has no round trips to save.
func (Dialect) Inline(any) (string, bool) { return "", false }

// Now implements [dialect.Spelling] with a resolution of one millisecond. It works in SQLite 3.0 and later.
// unixepoch('subsec') is newer than some clients that fire rowfeed's triggers.
func (Dialect) Now() string {
	return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"
}

// Value implements [dialect.Spelling]. It reads a column behind a unary plus. Such an expression has no
// declared type, so no driver turns TEXT in a DATETIME column into a time, or 1 in a BOOLEAN column into true.
func (Dialect) Value(_ dialect.Column, ref string) string { return "+" + ref }

// Param implements [dialect.Spelling]. It needs no cast, because values have types.
func (Dialect) Param(_ dialect.Column, placeholder string) string { return placeholder }

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

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	st, err := file.Render(Dialect{}, dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	return st
}

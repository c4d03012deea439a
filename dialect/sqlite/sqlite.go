// Package sqlite is the SQLite dialect, for any database/sql driver of SQLite 3.38 or later. It is tried with
// modernc.org/sqlite and mattn/go-sqlite3. Clients that only write may have an older SQLite, because the
// triggers use no newer SQL.
//
// In SQLite values have types, and columns do not. So every column except a BLOB one is delivered with the type
// of each value. SQLite has one writer at a time, which makes publishing simple, and it has no server.
// DESIGN.md has the reasons.
//
// The statements are in the files *.sql, with their reasons. capture.sql has the triggers, publish.sql what a publisher
// locks, rows.sql positions in the rows themselves, outbox.sql and shards.sql feeds with ULIDs, and pages.sql the
// statement of a page.
package sqlite

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// New returns the dialect, which has no settings.
func New() *dialect.Dialect {
	var d database
	// There are no logins, sessions, schemas, partitions and stored functions. A commit is in the file before other
	// sessions see it. PRAGMA data_version is no Stamp: it does not show commits of the same connection. A process that
	// can open the file can do everything.
	return &dialect.Dialect{Syntax: syntax, Savepoint: dialect.StandardSavepoint, Tables: schema,
		Core: d, Publishing: d, Placing: d, Pages: d, Locks: d,
		Moving: d, Inspection: d, TriggerNames: triggerNames,
		ULIDsAbove: ulidsAbove, Fences: true, OwnShards: true}
}

// database runs the statements.
type database struct{}

var syntax = &dialect.Syntax{
	Name: "sqlite", Quote: quote, Placeholder: placeholder, Literal: literal, Inline: inline,
	IsInteger: func(ref string) string { return "typeof(" + ref + ") = 'integer'" },
	RowValues: true, // SQLite uses an index to compare them
	// It has a resolution of one millisecond, and works in SQLite 3.0 and later. unixepoch('subsec') is newer than some
	// clients that fire rowfeed's triggers.
	Now:   "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000",
	Frame: frame, Terminate: terminate, InsertNew: dialect.InsertNew, Upsert: dialect.Upsert,
	Reads: pages, Scan: scan,
	// Both are SQLITE_MAX_COLUMN, unless SQLite was built with another.
	MaxAnswered: 2000, MaxDeclared: 2000, MaxParams: 32766,
	Codec: dialect.Codec{Value: value, Param: param, Store: param, KeyColumn: keyColumn,
		// A ULID is a BLOB.
		OwnULID: dialect.Column{Name: "ulid", Type: "BLOB", Decl: "BLOB", Kind: feedtype.Binary},
		Millis:  millis, ULIDProblem: ulidProblem,
		ShardProblem: shardProblem, NoShard: noShard, NoULID: noULID},
}

// quote is [dialect.Syntax].Quote with double quotes, as in standard SQL.
func quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// literal is [dialect.Syntax].Literal.
func literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// frame is [dialect.Syntax].Frame. The script is one transaction.
func frame() (first, last []dialect.Step) {
	return []dialect.Step{{Note: "all or nothing", SQL: "BEGIN IMMEDIATE"}},
		[]dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// terminate is [dialect.Syntax].Terminate with a semicolon. The sqlite3 shell knows where the body of a trigger
// ends.
func terminate(statement string) string { return statement + ";" }

// placeholder is [dialect.Syntax].Placeholder.
func placeholder(int) string { return "?" }

// inline is [dialect.Syntax].Inline: SQLite has no round trips to save.
func inline(any) (string, bool) { return "", false }

// value is [dialect.Codec].Value. It reads a column behind a unary plus. Such an expression has no
// declared type, so no driver turns TEXT in a DATETIME column into a time, or 1 in a BOOLEAN column into true.
func value(_ dialect.Column, ref string) string { return "+" + ref }

// param is [dialect.Codec].Param. It needs no cast, because values have types.
func param(_ dialect.Column, placeholder string) string { return placeholder }

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	st, err := file.Render(syntax, dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	return st
}

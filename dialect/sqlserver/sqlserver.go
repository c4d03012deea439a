// Package sqlserver is the SQL Server dialect (2017 and later), for any database/sql driver whose errors have a method
// SQLErrorNumber, such as github.com/microsoft/go-mssqldb.
//
// It has not been run on a server yet: its statements are parsed, and no more. The rules that it is written by are at
// the beginning of each .sql file. The database must have READ_COMMITTED_SNAPSHOT and ALLOW_SNAPSHOT_ISOLATION on: see
// WithSchemaLock.
//
// capture.sql has the triggers, publish.sql what a publisher locks, pages.sql the statements of pages, shards.sql the
// procedures with which writers take ULIDs, original.sql the names of the library mssql-changefeed.
package sqlserver

import (
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// New returns the dialect, which has no settings.
func New() *dialect.Dialect {
	var d database
	// There is no Flushing: a commit is on the disk before it is shown, unless it asks for DELAYED_DURABILITY. There
	// are no Partitions and Owners: a trigger belongs to the whole table, and runs as the owner of its schema. There
	// is no IdentitySQL: one statement for all servers cannot read it, so the first process that uses a feed does.
	return &dialect.Dialect{Experimental: "its statements have not been run on SQL Server yet",
		Syntax: syntax, Tables: schema, Core: d, Publishing: d, Placing: d, Pages: d, Locks: d,
		Moving: d, Inspection: d, ULIDsAbove: ulidsAbove, TriggerNames: triggerNames,
		Gaps: d, Routines: d, Copies: d, Renames: d, Roles: d, Sessions: d, Replicas: d,
		TriggersBreak: triggersBreak, Savepoint: savepoint}
}

// triggersBreak is [dialect.Dialect].TriggersBreak.
const triggersBreak = "while a trigger is on the table, SQL Server refuses its writers' statements with an OUTPUT " +
	"clause that has no INTO (error 334). EF Core 7 and later and other mappers send such statements. Tell EF Core " +
	"of the trigger (HasTrigger), switch its OUTPUT clause off (UseSqlOutputClause(false), from version 8 on), or " +
	"write OUTPUT … INTO"

// database runs the statements.
type database struct{}

var syntax = &dialect.Syntax{
	Name: "sqlserver", Quote: quote, Placeholder: placeholder, Literal: literal, Inline: inline,
	RowValues: false, // T-SQL cannot compare rows
	Limit:     limit, Skip: skip, AtMost: atMost,
	Count:      "COUNT_BIG(*)", // count(*) is an int: error 8115
	DrawsUncut: true,           // error 11740, and 1033
	// READPAST passes locks on rows only, and needs a read that takes locks. A shared lock would not meet the update
	// lock of a pass.
	SkipLockedHint: " WITH (ROWLOCK, UPDLOCK, READPAST, READCOMMITTEDLOCK)",
	Now:            "DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())",
	Frame:          frame, Terminate: terminate, InsertNew: insertNew, Upsert: upsert,
	Reads: pages, Scan: dialect.RangeScans,
	MaxAnswered: 4096, MaxDeclared: 1024, MaxParams: 2098, // 2,100 with those of sp_executesql
	Codec: dialect.Codec{Value: value, Param: param, Store: store, KeyColumn: keyColumn,
		// A binary(16) is ordered byte by byte.
		OwnULID: dialect.Column{Name: "ulid", Type: "binary(16)", Decl: "binary(16)", Kind: feedtype.Binary},
		Millis:  millis, ULIDProblem: ulidProblem, ShardProblem: shardProblem,
		NoShard: noShard, NoULID: noULID},
}

// quote is [dialect.Syntax].Quote with brackets, which mean the same whatever QUOTED_IDENTIFIER is.
func quote(ident string) string {
	return "[" + strings.ReplaceAll(ident, "]", "]]") + "]"
}

// placeholder is [dialect.Syntax].Placeholder.
func placeholder(n int) string { return "@p" + strconv.Itoa(n) }

// special has what means something else inside of a literal, or to a client that runs a script: a line of a script
// that says GO ends a batch, a backslash at the end of a line continues the literal without either, and $( begins a
// variable of sqlcmd.
var special = strings.NewReplacer("'", "''", "\n", "' + NCHAR(10) + N'", "\r", "' + NCHAR(13) + N'",
	"$(", "$' + N'(")

// longLiteral is the number of characters up to which a sum of literals is not cut.
const longLiteral = 4000

// literal is [dialect.Syntax].Literal. A text that needs several literals is an expression in parentheses.
func literal(text string) string {
	escaped := "N'" + special.Replace(text) + "'"
	switch {
	case !strings.ContainsAny(text, "\n\r") && !strings.Contains(text, "$("):
		return escaped
	case len(text) > longLiteral:
		return "(CONVERT(nvarchar(max), N'') + " + escaped + ")"
	}
	return "(" + escaped + ")"
}

// inline is [dialect.Syntax].Inline. Parameters are sent with the statement, and keep one plan for all values.
func inline(any) (string, bool) { return "", false }

// limit is [dialect.Syntax].Limit.
func limit(rows string) string { return "OFFSET 0 ROWS FETCH NEXT " + rows + " ROWS ONLY" }

// skip is [dialect.Syntax].Skip.
func skip(rows string) string { return "OFFSET " + rows + " ROWS FETCH NEXT 1 ROWS ONLY" }

// atMost is [dialect.Syntax].AtMost.
func atMost(rows string) string { return "ORDER BY (SELECT NULL) " + limit(rows) }

// finish ends a script. Its second batch also runs if an error has ended the script before.
const finish = "COMMIT\nGO\nSET NOEXEC OFF"

// frame is [dialect.Syntax].Frame. The script is one transaction. Clients go on with the next batch after an
// error, when there is no transaction any more: see Terminate. sqlcmd has QUOTED_IDENTIFIER off, but tables with
// filtered indexes need it, and triggers keep it. While CREATE TRIGGER waits for the table, all later statements on the
// table wait behind it.
func frame() (first, last []dialect.Step) {
	return []dialect.Step{{
		Note: "all or nothing; when the lock timeout runs out, run the script again",
		SQL: "SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;\n" +
			"BEGIN TRANSACTION",
	}}, []dialect.Step{{Note: "done", SQL: finish}}
}

// terminate is [dialect.Syntax].Terminate. Every statement is a batch, because a batch begins with CREATE TRIGGER or
// CREATE PROCEDURE. After an error nothing more is executed.
func terminate(statement string) string {
	if statement == finish {
		return statement + "\nGO"
	}
	return statement + "\nGO\nIF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON\nGO"
}

// statement returns a statement that depends on nothing.
func statement(file *dialect.Statements, name string) dialect.Statement {
	st, err := file.Render(syntax, dialect.Names{}, name)
	if err != nil {
		panic(err)
	}
	return st
}

// rendered returns a statement about rowfeed's own tables.
func rendered(file *dialect.Statements, n dialect.Names, name string) dialect.Statement {
	st, err := file.Render(syntax, n, name)
	if err != nil {
		panic(err)
	}
	return st
}

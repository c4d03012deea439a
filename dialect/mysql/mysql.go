// Package mysql is the dialect of MariaDB (10.6 and later) and MySQL (8.0 and later), for any database/sql
// driver that supports them. DESIGN.md has the reasons for what is locked and read in which order.
//
// The statements are in .sql files, and the Go file of the same name runs them: schema.sql has rowfeed's own tables,
// capture.sql a feed's tables and triggers, describe.sql queries of the catalog, publish.sql what a publisher sets and
// locks, pages.sql pages and scans, flush.sql the durability of what readers see, rows.sql positions in the user's
// rows, shards.sql ULIDs and their procedures, outbox.sql the outbox and back-fill, sessions.sql open transactions and
// their locks, roles.sql accounts and rights.
package mysql

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
)

// New returns the dialect. It only remembers whether pages can be read without a transaction.
func New() *dialect.Dialect {
	d := database{plain: new(atomic.Bool)}
	// There is no Stamp: no variable shows cheaply that a transaction has committed. There are no Partitions and
	// Renames: a trigger belongs to the whole table, a table with triggers cannot be moved to another database, and no
	// database can be renamed.
	return &dialect.Dialect{Syntax: syntax, Savepoint: dialect.StandardSavepoint, Tables: schema,
		Core: d, Publishing: d, Placing: d, Pages: d, Locks: d,
		Moving: d, Inspection: d, IdentitySQL: identity, ULIDsAbove: ulidsAbove, TriggerNames: triggerNames,
		Gaps: d, Flushing: d, Bounds: d, Routines: d, Owners: d, Copies: d, Roles: d, Sessions: d, Replicas: d,
		Fences: true, OwnShards: true, Together: together}
}

// database runs the statements.
type database struct {
	plain *atomic.Bool // the last page's session can read pages without a transaction: see readPage
}

var syntax = &dialect.Syntax{
	Name: "mysql", Quote: quote, Placeholder: placeholder, Literal: literal, Inline: inline,
	RowValues:  false, // an index is used only for the spelled-out form of a comparison
	SkipLocked: " FOR UPDATE SKIP LOCKED",
	// Unlike NOW and SYSDATE, UTC_TIMESTAMP does not depend on the session's time zone.
	Now:   "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))",
	Frame: frame, Terminate: terminate, InsertNew: insertNew, Upsert: upsert,
	Reads: pages, Scan: scan,
	MaxAnswered: 4096, MaxDeclared: 1017, MaxParams: 65535, // the second is InnoDB's limit
	Codec: dialect.Codec{Value: value, Param: param, Store: store, KeyColumn: keyColumn, OwnULID: ownULID,
		Millis: millis, ULIDProblem: ulidProblem, ShardProblem: shardProblem,
		NoShard: noShard, NoULID: noULID},
}

// quote is [dialect.Syntax].Quote. Backticks mean the same in every sql_mode.
func quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// frame is [dialect.Syntax].Frame. DDL commits by itself. The statements after it must not lock the rows
// that they read.
func frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "rows are read without locking them", SQL: "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"},
		{Note: "when this runs out, run the script again", SQL: "SET SESSION lock_wait_timeout = 2"},
	}, nil
}

// terminate is [dialect.Syntax].Terminate. The clients end a statement at the first semicolon, even inside the
// body of a trigger, unless they are told another delimiter.
func terminate(statement string) string {
	if strings.Contains(statement, ";") {
		// the delimiter has a line of its own because a statement may end in a slash
		return "DELIMITER //\n" + statement + "\n//\nDELIMITER ;"
	}
	return statement + ";"
}

// placeholder is [dialect.Syntax].Placeholder.
func placeholder(int) string { return "?" }

// inline is [dialect.Syntax].Inline. The protocol has parameters only for a prepared statement, which costs
// a round trip more and is planned twice. Inline writes out numbers, and strings of at most 200 characters that
// have no special meaning in any sql_mode and character set, such as names, cursors and digests. All other
// values stay parameters.
func inline(v any) (string, bool) {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case string:
		if len(v) <= maxInline && strings.Trim(v, inlined) == "" {
			return "'" + v + "'", true
		}
	}
	return "", false
}

const (
	inlined   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-/"
	maxInline = 200
)

var literalEscapes = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// literal is [dialect.Syntax].Literal, for sessions without NO_BACKSLASH_ESCAPES.
func literal(text string) string {
	return "'" + literalEscapes.Replace(text) + "'"
}

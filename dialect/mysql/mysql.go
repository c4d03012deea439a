// Package mysql is the dialect of MariaDB (10.6 and later) and MySQL (8.0 and later), for any database/sql
// driver that supports them. DESIGN.md has the reasons for what is locked and read in which order.
//
// capture.go has the triggers, publish.go what a publisher locks, read.go the statement of a page, seqs.go the open
// sequence numbers.
package mysql

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
)

// Dialect implements [dialect.Dialect]. It only remembers whether pages can be read without a transaction.
type Dialect struct {
	plain *atomic.Bool // the last page's session can read pages without a transaction: see readPage
}

// New returns the dialect.
func New() Dialect { return Dialect{plain: new(atomic.Bool)} }

var _ dialect.Dialect = Dialect{}

// Name implements [dialect.Spelling].
func (Dialect) Name() string { return "mysql" }

// Quote implements [dialect.Spelling]. Backticks mean the same in every sql_mode.
func (Dialect) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// RowValues implements [dialect.Spelling]: an index is used only for the spelled-out form of a comparison.
func (Dialect) RowValues() bool { return false }

// Frame implements [dialect.Spelling]. DDL commits by itself. The statements after it must not lock the rows
// that they read.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "rows are read without locking them", SQL: "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"},
		{Note: "when this runs out, run the script again", SQL: "SET SESSION lock_wait_timeout = 2"},
	}, nil
}

// Terminate implements [dialect.Spelling]. The clients end a statement at the first semicolon, even inside the
// body of a trigger, unless they are told another delimiter.
func (Dialect) Terminate(statement string) string {
	if strings.Contains(statement, ";") {
		// the delimiter has a line of its own because a statement may end in a slash
		return "DELIMITER //\n" + statement + "\n//\nDELIMITER ;"
	}
	return statement + ";"
}

// Placeholder implements [dialect.Spelling].
func (Dialect) Placeholder(int) string { return "?" }

// Inline implements [dialect.Spelling]. The protocol has parameters only for a prepared statement, which costs
// a round trip more and is planned twice. Inline writes out numbers, and strings of at most 200 characters that
// have no special meaning in any sql_mode and character set, such as names, cursors and digests. All other
// values stay parameters.
func (Dialect) Inline(v any) (string, bool) {
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

// Literal implements [dialect.Spelling], for sessions without NO_BACKSLASH_ESCAPES.
func (Dialect) Literal(text string) string {
	return "'" + literalEscapes.Replace(text) + "'"
}

// Now implements [dialect.Spelling]. Unlike NOW and SYSDATE, UTC_TIMESTAMP does not depend on the session's
// time zone.
func (Dialect) Now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
}

// Package mysql is rowfeed on MariaDB (10.6 and later) and MySQL (8.0 and later),
// through any database/sql driver that speaks to them. DESIGN.md gives the reasons
// for what is locked and read in which order.
package mysql

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rowfeed/rowfeed/dialect"
)

// Dialect implements [dialect.Dialect]. All that it remembers is how to begin with a page.
type Dialect struct {
	plain *atomic.Bool // the last page's session reads what is committed without being told, see readPlain
}

// New makes the dialect.
func New() Dialect { return Dialect{plain: new(atomic.Bool)} }

var _ dialect.Dialect = Dialect{}

// Name implements [dialect.Spelling].
func (Dialect) Name() string { return "mysql" }

// Quote implements [dialect.Spelling]. Backticks mean the same under every sql_mode.
func (Dialect) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// RowValues implements [dialect.Spelling]: an index answers the spelled-out form only.
func (Dialect) RowValues() bool { return false }

// Frame implements [dialect.Spelling]. DDL commits by itself; what follows it must
// not lock the rows that it reads.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "rows are read without locking them", SQL: "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"},
		{Note: "when this runs out, run the script again", SQL: "SET SESSION lock_wait_timeout = 2"},
	}, nil
}

// Terminate implements [dialect.Spelling]. The clients end a statement at the first
// semicolon, also inside a trigger's body, unless they are told of another end.
func (Dialect) Terminate(statement string) string {
	if strings.Contains(statement, ";") {
		return "DELIMITER //\n" + statement + "\n//\nDELIMITER ;" // on a line of its own: a statement may end in a slash
	}
	return statement + ";"
}

// Placeholder implements [dialect.Spelling].
func (Dialect) Placeholder(int) string { return "?" }

// Inline implements [dialect.Spelling]. The protocol has no parameters but those of a
// statement that was prepared by a round trip of its own, and planned twice. Numbers
// are written out, and strings of characters that mean nothing in any sql_mode and
// character set, such as names, cursors and digests; all others stay parameters.
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

// Now implements [dialect.Spelling]. UTC_TIMESTAMP does not follow the session's
// time zone, as NOW and SYSDATE do.
func (Dialect) Now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
}

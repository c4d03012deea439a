// Package postgres is the PostgreSQL dialect (14 and later), for any database/sql driver of PostgreSQL whose
// errors have a method SQLState (pgx, lib/pq).
//
// Values are read as text, in formats that rowfeed sets for the transaction. So neither the session's time zone
// nor its DateStyle changes what consumers get. DESIGN.md has the reasons for locks and plans.
//
// capture.go has the triggers, publish.go what a publisher locks, read.go the statement of a page, seqs.go the open
// sequence numbers.
package postgres

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Dialect implements [dialect.Dialect].
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// New returns the dialect, which has no settings.
func New() Dialect { return Dialect{} }

// Name implements [dialect.Spelling].
func (Dialect) Name() string { return "postgres" }

// Quote implements [dialect.Spelling] with double quotes.
func (Dialect) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Literal implements [dialect.Spelling]. The literal means the same whatever standard_conforming_strings is.
func (Dialect) Literal(text string) string {
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		text = " E" + strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

// RowValues implements [dialect.Spelling]: PostgreSQL uses an index to compare row values.
func (Dialect) RowValues() bool { return true }

// Frame implements [dialect.Spelling]. The script is one transaction with a short lock_timeout: while CREATE
// TRIGGER waits for the table, all later statements on the table wait behind it.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "all or nothing", SQL: "BEGIN"},
		{Note: "when this runs out, run the script again", SQL: "SET LOCAL lock_timeout = '2s'"},
	}, []dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// Terminate implements [dialect.Spelling] with a semicolon. Bodies of functions are quoted.
func (Dialect) Terminate(statement string) string { return statement + ";" }

// Placeholder implements [dialect.Spelling].
func (Dialect) Placeholder(n int) string { return "$" + strconv.Itoa(n) }

// Inline implements [dialect.Spelling]. Parameters save no round trip here: they are sent with the statement.
func (Dialect) Inline(any) (string, bool) { return "", false }

// Now implements [dialect.Spelling] with clock_timestamp(). now() would be the start of the transaction.
func (Dialect) Now() string {
	return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
}

// Value implements [dialect.Spelling]. Most types are read as their text, which has every digit. For other
// types, such as domains and enums, it is the text that the type's own output function writes. A cast to text
// would drop the blanks of a char(n), and add a netmask to an inet. IS NOT DISTINCT FROM is used because a row
// of NULLs "IS NULL", but is not NULL.
func (Dialect) Value(c dialect.Column, ref string) string {
	switch c.Kind {
	case feedtype.Integer, feedtype.Boolean, feedtype.Binary:
		return ref
	case feedtype.Decimal: // the text of money depends on the locale
		return ref + "::numeric::text"
	case feedtype.JSON: // an array becomes JSON here, also one of a domain type
		return "to_json(" + ref + ")::text"
	case feedtype.Text:
		switch {
		case c.Type == "text":
			return ref
		case c.Type == "uuid" || strings.HasPrefix(c.Type, "character varying"):
			return ref + "::text"
		}
		return "CASE WHEN " + ref + " IS NOT DISTINCT FROM NULL THEN NULL ELSE format('%s', " + ref + ") END"
	}
	return ref + "::text"
}

// Param implements [dialect.Spelling]. It casts the placeholder first to the type as which drivers encode the
// Go value.
func (Dialect) Param(c dialect.Column, placeholder string) string {
	switch c.Kind {
	case feedtype.Integer:
		return "CAST(" + placeholder + " AS bigint)"
	case feedtype.Boolean:
		return "CAST(" + placeholder + " AS boolean)"
	case feedtype.Binary:
		return "CAST(" + placeholder + " AS bytea)"
	}
	return "CAST(CAST(" + placeholder + " AS text) AS " + c.Type + ")"
}

// bigints writes an array as text, which every driver can send. The statement casts it.
func bigints[T any](list []T, value func(T) int64) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, x := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(value(x), 10))
	}
	return b.String() + "}"
}

// withBody matches a statement that ends with a body in dollar quotes. What is before it has dollars only in quoted
// names.
var withBody = regexp.MustCompile(`(?s)^((?:"[^"]*"|[^"$])*)\$rowfeed\w*\$(.*)\$rowfeed\w*\$$`)

// bodyOf returns the body of a function from the statement that makes it.
func bodyOf(statement string) string { return withBody.FindStringSubmatch(statement)[2] }

// quoted puts a body into other quotes than $rowfeed$ if a name in the body would end them.
func quoted(s dialect.Step) dialect.Step {
	parts := withBody.FindStringSubmatch(s.SQL)
	if parts == nil {
		return s
	}
	tag := "$rowfeed$"
	for n := 1; strings.Contains(parts[2], tag); n++ {
		tag = "$rowfeed" + strconv.Itoa(n) + "$"
	}
	s.SQL = parts[1] + tag + parts[2] + tag
	return s
}

// Package postgres is the PostgreSQL dialect (14 and later), for any database/sql
// driver of PostgreSQL whose errors have a method SQLState (pgx, lib/pq).
//
// Values are read as text in formats that rowfeed sets for the transaction, so that
// neither the session's time zone nor its DateStyle changes what consumers get. The
// reasons behind locks and plans are in DESIGN.md.
package postgres

import (
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Dialect implements dialect.Dialect.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// New makes the dialect; it has no settings.
func New() Dialect { return Dialect{} }

// Name is "postgres".
func (Dialect) Name() string { return "postgres" }

// Quote uses double quotes.
func (Dialect) Quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// Literal writes a string that means the same whatever standard_conforming_strings is.
func (Dialect) Literal(text string) string {
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		text = " E" + strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

// RowValues are compared by an index as a whole.
func (Dialect) RowValues() bool { return true }

// Frame is one transaction that does not wait long: whoever comes after a CREATE
// TRIGGER that waits for the table waits behind it.
func (Dialect) Frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "all or nothing", SQL: "BEGIN"},
		{Note: "when this runs out, run the script again", SQL: "SET LOCAL lock_timeout = '2s'"},
	}, []dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// Terminate adds a semicolon: the bodies of functions are quoted.
func (Dialect) Terminate(statement string) string { return statement + ";" }

// Placeholder is $n.
func (Dialect) Placeholder(n int) string { return "$" + strconv.Itoa(n) }

// Inline implements [dialect.Spelling]: parameters travel with the statement, which is prepared once.
func (Dialect) Inline(any) (string, bool) { return "", false }

// Now is clock_timestamp(): now() is the start of the transaction.
func (Dialect) Now() string {
	return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
}

// Value reads most types by their text, which has every digit. Of a type that is
// none of those known, a domain or an enum say, it is the text that the type itself
// writes: casts to text drop the blanks of a char(n), and add a netmask to an inet.
// A row of NULLs is not NULL, though it "IS NULL".
func (Dialect) Value(c dialect.Column, ref string) string {
	switch c.Kind {
	case feedtype.Integer, feedtype.Boolean, feedtype.Binary:
		return ref
	case feedtype.Decimal: // money's text depends on the locale
		return ref + "::numeric::text"
	case feedtype.JSON: // an array becomes JSON here, also one behind a domain
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

// Param goes through the type that the driver encodes the Go value as.
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

// bigints writes an array that every driver can pass: as text, cast by the server.
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

// Package postgres is the PostgreSQL dialect (14 and later), for any database/sql driver of PostgreSQL whose
// errors have a method SQLState (pgx, lib/pq).
//
// Values are read as text, in formats that rowfeed sets for the transaction. So neither the session's time zone
// nor its DateStyle changes what consumers get. DESIGN.md has the reasons for locks and plans.
//
// The statements are in .sql files, each next to the Go code that runs them: schema.sql has rowfeed's own tables,
// capture.sql a feed's tables and triggers, describe.sql what the catalog says of a table, publish.sql what a publisher
// sets and locks, pages.sql pages, rows.sql positions in the user's rows, shards.sql ULIDs and their functions,
// outbox.sql the outbox and back-fill, sessions.sql open transactions and their locks, roles.sql rights.
package postgres

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// New returns the dialect, which has no settings.
func New() *dialect.Dialect {
	var d database
	// There is no Flushing: PostgreSQL flushes its log before it shows a commit. There are no Owners and Copies: a role
	// that owns a function cannot be dropped, and a dump names the schema of every object.
	return &dialect.Dialect{Syntax: syntax, Savepoint: dialect.StandardSavepoint, Tables: schema,
		Core: d, Publishing: d, Placing: d, Pages: d, Locks: d,
		Moving: d, Inspection: d, IdentitySQL: identity, ULIDsAbove: ulidsAbove, TriggerNames: triggerNames,
		Batches: d, Gaps: d, Stamp: stamp, Routines: d, Partitions: d, Renames: d, Roles: d, Sessions: d, Replicas: d,
		Fences: true, OwnShards: true}
}

// database runs the statements.
type database struct{}

var syntax = &dialect.Syntax{
	Name: "postgres", Quote: quote, Placeholder: placeholder, Literal: literal, Inline: inline,
	RowValues:  true, // PostgreSQL uses an index to compare them
	SkipLocked: " FOR UPDATE SKIP LOCKED",
	// now() would be the start of the transaction.
	Now:   "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
	Frame: frame, Terminate: terminate, InsertNew: dialect.InsertNew, Upsert: dialect.Upsert,
	// One condition for all ranges would make one scan filter the table from its beginning.
	Reads: pages, Scan: dialect.RangeScans,
	// These are the server's MaxTupleAttributeNumber and MaxHeapAttributeNumber.
	MaxAnswered: 1664, MaxDeclared: 1600, MaxParams: 65535,
	Codec: dialect.Codec{Value: value, Param: param, Store: store, KeyColumn: keyColumn,
		// A uuid has 16 bytes, and is ordered by them.
		OwnULID: dialect.Column{Name: "ulid", Type: "uuid", Decl: "uuid", Kind: feedtype.Text},
		Millis:  millis, ULIDProblem: ulidProblem, ShardProblem: shardProblem,
		NoShard: noShard, NoULID: noULID},
}

// quote is [dialect.Syntax].Quote with double quotes.
func quote(ident string) string {
	return `"` + strings.ReplaceAll(ident, `"`, `""`) + `"`
}

// literal is [dialect.Syntax].Literal. The literal means the same whatever standard_conforming_strings is.
func literal(text string) string {
	text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		text = " E" + strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

// frame is [dialect.Syntax].Frame. The script is one transaction with a short lock_timeout: while CREATE
// TRIGGER waits for the table, all later statements on the table wait behind it.
func frame() (first, last []dialect.Step) {
	return []dialect.Step{
		{Note: "all or nothing", SQL: "BEGIN"},
		{Note: "when this runs out, run the script again", SQL: "SET LOCAL lock_timeout = '2s'"},
	}, []dialect.Step{{Note: "done", SQL: "COMMIT"}}
}

// terminate is [dialect.Syntax].Terminate with a semicolon. Bodies of functions are quoted.
func terminate(statement string) string { return statement + ";" }

// placeholder is [dialect.Syntax].Placeholder.
func placeholder(n int) string { return "$" + strconv.Itoa(n) }

// inline is [dialect.Syntax].Inline. Parameters save no round trip here: they are sent with the statement.
func inline(any) (string, bool) { return "", false }

// value is [dialect.Codec].Value. Most types are read as their text, which has every digit. For other
// types, such as domains and enums, it is the text that the type's own output function writes. A cast to text
// would drop the blanks of a char(n), and add a netmask to an inet. IS NOT DISTINCT FROM is used because a row
// of NULLs "IS NULL", but is not NULL.
func value(c dialect.Column, ref string) string {
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

// param is [dialect.Codec].Param. It casts the placeholder first to the type as which drivers encode the
// Go value.
func param(c dialect.Column, placeholder string) string {
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

// store is [dialect.Codec].Store. Without a cast to another type, the parameter gets the column's type. A
// cast to the column's own type would cut text that is too long.
func store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "(CAST(" + placeholder + " AS timestamp) AT TIME ZONE 'UTC')" // not in the time zone of the session
	}
	return placeholder
}

// Classify implements [dialect.Core] by the SQLSTATE,
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
func (database) Classify(err error) dialect.Class {
	if errors.Is(err, dialect.ErrReadOnly) {
		return dialect.ClassReadOnly
	}
	if errors.Is(err, dialect.ErrNoTable) {
		return dialect.ClassUndefined
	}
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		if dialect.IsConnection(err) {
			return dialect.ClassConnection
		}
		return dialect.ClassOther
	}
	code := coded.SQLState()
	switch code {
	case "40001", "40P01", // serialization_failure, deadlock_detected
		// feature_not_supported: a column's type has changed under a prepared statement, which the driver
		// prepares again
		"0A000":
		return dialect.ClassRetry
	case "55P03": // lock_not_available
		return dialect.ClassLockTimeout
	case "42P01", "42703", "42883", "3F000", // undefined table, column, function; invalid schema
		"3B001", "25P01": // undefined savepoint; no transaction
		return dialect.ClassUndefined
	case "25006": // read_only_sql_transaction
		return dialect.ClassReadOnly
	case "42501": // insufficient_privilege
		return dialect.ClassPermission
	case "23505": // unique_violation
		return dialect.ClassDuplicate
	// Timeouts of an idle transaction and of a transaction, shutdown, crash, cannot connect now, too many
	// connections.
	case "25P03", "25P04", "57P01", "57P02", "57P03", "53300":
		return dialect.ClassConnection
	case "54000": // program_limit_exceeded: a value that is too large for an index
		return dialect.ClassInvalid
	case "53100", "53400": // disk_full, configuration_limit_exceeded
		return dialect.ClassFull
	}
	switch {
	case strings.HasPrefix(code, "08"): // connection exceptions
		return dialect.ClassConnection
	case strings.HasPrefix(code, "28"): // invalid authorization
		return dialect.ClassPermission
	case strings.HasPrefix(code, "22"): // data exceptions
		return dialect.ClassInvalid
	}
	return dialect.ClassOther
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

// withBody matches a statement that ends with a body in dollar quotes. Before it there are dollars only in quoted
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

package dialect

import (
	"slices"
	"strings"
)

// Right is what a login may do with one of rowfeed's own objects.
type Right struct {
	Privilege string   // SELECT, INSERT, UPDATE or EXECUTE
	Columns   []string // of a table; empty: all of them
	// Kind is TABLE, FUNCTION or PROCEDURE. Arguments are a routine's types, in parentheses,
	// on databases where they are part of its name.
	Kind      string
	On        TableName
	Arguments string
}

// Equal tells whether two rights are the same.
func (r Right) Equal(other Right) bool {
	return r.Privilege == other.Privilege && r.Kind == other.Kind && r.On == other.On && r.Arguments == other.Arguments && slices.Equal(r.Columns, other.Columns)
}

// May are rights on a table.
func May(privilege string, table TableName, columns ...string) Right {
	return Right{Privilege: privilege, Columns: columns, Kind: "TABLE", On: table}
}

// SQL is the right in a GRANT or a REVOKE: "INSERT (a, b) ON TABLE t".
func (r Right) SQL(s Spelling) string {
	text := r.Privilege
	if len(r.Columns) > 0 {
		quoted := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			quoted[i] = s.Quote(c)
		}
		text += " (" + strings.Join(quoted, ", ") + ")"
	}
	return text + " ON " + r.Kind + " " + Qualified(s, r.On) + r.Arguments
}

// Refusal is what a dialect refuses to do, and why, with the next step.
type Refusal struct{ Cause, Next string }

func (r *Refusal) Error() string { return r.Cause }

package dialect

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Roles grants logins, or groups of logins, rights on rowfeed's own objects.
type Roles interface {
	// Login returns a login as statements spell it. name is as people write it. The error is a [Refusal] if
	// name is not one of a login, and errors.ErrUnsupported on databases without logins.
	Login(name string) (string, error)
	// Account returns the canonical name of a login: all spellings of a login's name have the same one.
	Account(ctx context.Context, q Querier, name string) (string, error)
	// Owns tells whether the login owns the object of the right. An owner needs no GRANT, and a REVOKE would
	// take away a right that it has without one.
	Owns(ctx context.Context, q Querier, login string, r Right) (bool, error)
	// PartsVisible tells whether this login can see the parts of a feed, if the feed's rights were granted to these
	// accounts. Some catalogs hide what a login has no right on. To a reader, functions and triggers then look
	// as if they were missing.
	PartsVisible(ctx context.Context, q Querier, granted []string) (bool, error)
	// GrantSQL and RevokeSQL return the statements of Grant and Revoke.
	GrantSQL(login string, rights []Right) []Step
	RevokeSQL(login string, rights []Right) []Step
	// Grant gives a login rights. The caller holds the schema lock. If the login does not exist, or the present
	// user may not grant them, the error is a [Refusal] or that of the database.
	Grant(ctx context.Context, q Querier, login string, rights []Right) error
	// Revoke takes rights away. It ignores a right, an object or a login that does not exist.
	Revoke(ctx context.Context, q Querier, login string, rights []Right) error
}

// Right is what a login may do with one of rowfeed's own objects.
type Right struct {
	Privilege string   // SELECT, INSERT, UPDATE or EXECUTE
	Columns   []string // columns of a table; if empty, all of them
	// Kind is TABLE, FUNCTION or PROCEDURE. Arguments are the types of a routine's arguments, in parentheses,
	// on databases where these are part of its name.
	Kind      string
	On        feedtype.TableName
	Arguments string
}

func (r Right) Equal(other Right) bool {
	return r.Privilege == other.Privilege && r.Kind == other.Kind && r.On == other.On &&
		r.Arguments == other.Arguments && slices.Equal(r.Columns, other.Columns)
}

// May returns a right on a table.
func May(privilege string, table feedtype.TableName, columns ...string) Right {
	return Right{Privilege: privilege, Columns: columns, Kind: "TABLE", On: table}
}

// SQL returns the right as a GRANT or a REVOKE spells it: "INSERT (a, b) ON TABLE t".
func (r Right) SQL(s *Syntax) string {
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

// Refusal is the error of an operation that a dialect refuses. Cause says why, and Next what to do.
type Refusal struct{ Cause, Next string }

func (r *Refusal) Error() string { return r.Cause }

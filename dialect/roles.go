package dialect

import (
	"context"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Roles are the rights of logins, or of groups of them, on rowfeed's own objects.
type Roles interface {
	// Login is a login as statements spell it, of a name as people write it: a [Refusal]
	// where it is none, [errors.ErrUnsupported] on databases without logins.
	Login(name string) (string, error)
	// Account is the one name of a login, whatever way it is written: two names that are one
	// login's are the same.
	Account(ctx context.Context, q Querier, name string) (string, error)
	// Owns tells whether what the right is on belongs to the login. An owner needs no grant, and
	// would lose by a REVOKE what nobody has granted.
	Owns(ctx context.Context, q Querier, login string, r Right) (bool, error)
	// Shown tells whether this login is shown what a feed consists of that was granted to these
	// accounts: some catalogs leave out what a login has no right on, so that a reader's functions
	// and triggers look as if they were missing.
	Shown(ctx context.Context, q Querier, granted []string) (bool, error)
	// LockRights are those to take a feed's ULIDs with its functions, FlushRights those of
	// [Read.Flush].
	LockRights(f *Feed) []Right
	FlushRights(n Names) []Right
	// GrantSQL and RevokeSQL are the statements of Grant and Revoke.
	GrantSQL(login string, rights []Right) []Step
	RevokeSQL(login string, rights []Right) []Step
	// Grant gives a login rights, under the schema lock. What cannot be is a [Refusal].
	Grant(ctx context.Context, q Querier, login string, rights []Right) error
	// Revoke takes rights away, and passes over what is not there: right, object, login.
	Revoke(ctx context.Context, q Querier, login string, rights []Right) error
}

// Right is what a login may do with one of rowfeed's own objects.
type Right struct {
	Privilege string   // SELECT, INSERT, UPDATE or EXECUTE
	Columns   []string // of a table; empty: all of them
	// Kind is TABLE, FUNCTION or PROCEDURE. Arguments are a routine's types, in parentheses,
	// on databases where they are part of its name.
	Kind      string
	On        feedtype.TableName
	Arguments string
}

// Equal tells whether two rights are the same.
func (r Right) Equal(other Right) bool {
	return r.Privilege == other.Privilege && r.Kind == other.Kind && r.On == other.On && r.Arguments == other.Arguments && slices.Equal(r.Columns, other.Columns)
}

// May are rights on a table.
func May(privilege string, table feedtype.TableName, columns ...string) Right {
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

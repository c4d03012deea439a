package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for roles.sql
	"errors"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed roles.sql
var rolesFile string

var roles = dialect.NewStatements(rolesFile)

// Login implements [dialect.Roles]. A login is a user or a role of the database.
func (d database) Login(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) || strings.EqualFold(name, "public") ||
		strings.EqualFold(name, "guest") {
		return "", &dialect.Refusal{Cause: "it is not a user or role that can be granted rights",
			Next: "give the name as sys.database_principals has it, without brackets"}
	}
	return quote(name), nil
}

// Account implements [dialect.Roles]. It returns the name as the catalog spells it.
func (d database) Account(ctx context.Context, q dialect.Querier, name string) (string, error) {
	known := name
	err := dialect.One(ctx, q, syntax, statement(roles, "account"), dialect.Args{"name": name}, &known)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return known, err
}

// unquoted returns the name of a login that Login has spelled.
func unquoted(login string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(login, "["), "]"), "]]", "]")
}

// Owns implements [dialect.Roles].
func (d database) Owns(ctx context.Context, q dialect.Querier, login string, r dialect.Right) (owns bool, err error) {
	err = dialect.One(ctx, q, syntax, statement(roles, "owns"),
		dialect.Args{"object": dialect.Qualified(syntax, r.On), "name": unquoted(login)}, &owns)
	return owns, err
}

// PartsVisible implements [dialect.Roles].
func (d database) PartsVisible(ctx context.Context, q dialect.Querier, granted []string) (bool, error) {
	var all bool
	var user string
	err := dialect.One(ctx, q, syntax, statement(roles, "visible"), nil, &all, &user)
	return all || !slices.Contains(granted, user), err
}

// LockRights implements [dialect.Routines].
func (database) LockRights(f *dialect.Feed) []dialect.Right {
	return []dialect.Right{
		{Privilege: "EXECUTE", Kind: "PROCEDURE", On: f.LockRoutine()},
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.ULIDRoutine()},
		dialect.May("SELECT", f.Names.Table("shards")), // for LockNonces
	}
}

// right fills a GRANT or a REVOKE. A right to insert is one for all columns.
func (d database) right(name, login string, r dialect.Right) string {
	privilege := r.Privilege
	if len(r.Columns) > 0 && r.Privilege != "INSERT" {
		quoted := make([]string, len(r.Columns))
		for i, c := range r.Columns {
			quoted[i] = quote(c)
		}
		privilege += " (" + strings.Join(quoted, ", ") + ")"
	}
	return dialect.NewScript(syntax).Fill(statement(roles, name), dialect.Args{"privilege": dialect.SQL(privilege),
		"object": dialect.SQL(dialect.Qualified(syntax, r.On)), "login": dialect.SQL(login)})
}

// GrantSQL implements [dialect.Roles].
func (d database) GrantSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "a right of " + login, SQL: d.right("grant", login, r)})
	}
	return steps
}

// RevokeSQL implements [dialect.Roles].
func (d database) RevokeSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "no right of " + login + " any more",
			SQL: d.right("revoke", login, r)})
	}
	return steps
}

// isPrincipal tells whether a user or role exists.
func (d database) isPrincipal(ctx context.Context, q dialect.Querier, login string) (there bool, err error) {
	err = dialect.One(ctx, q, syntax, statement(roles, "principal"), dialect.Args{"name": unquoted(login)}, &there)
	return there, err
}

// Grant implements [dialect.Roles].
func (d database) Grant(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	there, err := d.isPrincipal(ctx, q, login)
	if err == nil && !there {
		return &dialect.Refusal{Cause: "there is no user or role " + login + " in this database",
			Next: "make it with CREATE USER " + login + " FOR LOGIN …, or give the name of an existing one"}
	}
	for _, s := range d.GrantSQL(login, rights) {
		if err == nil {
			_, err = q.Exec(ctx, s.SQL)
		}
	}
	return err
}

// Revoke implements [dialect.Roles]. It checks first what exists: under XACT_ABORT an error ends the transaction.
func (d database) Revoke(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	there, err := d.isPrincipal(ctx, q, login)
	if err != nil || !there {
		return err
	}
	for i, s := range d.RevokeSQL(login, rights) {
		var missing bool
		err := dialect.One(ctx, q, syntax, statement(capture, "missing"),
			dialect.Args{"object": dialect.Qualified(syntax, rights[i].On)}, &missing)
		if err == nil && !missing {
			_, err = q.Exec(ctx, s.SQL)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

package postgres

import (
	"context"
	_ "embed" // for roles.sql
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed roles.sql
var rolesFile string

var roles = dialect.NewStatements(rolesFile)

// Login implements [dialect.Roles]. A login is a role, or a role that others are members of. PUBLIC is not one:
// in a GRANT it means all roles.
func (d database) Login(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) || strings.EqualFold(name, "public") ||
		strings.EqualFold(name, "none") {
		return "", &dialect.Refusal{Cause: "it is not a role name",
			Next: "give the name as pg_roles has it, without quotes"}
	}
	return quote(name), nil
}

// Account implements [dialect.Roles]. A role has only one name.
func (database) Account(_ context.Context, _ dialect.Querier, name string) (string, error) {
	return name, nil
}

// about returns the statement with this name for the kind of object that a right is on, and the object as its argument.
func (d database) about(name string, r dialect.Right) (dialect.Statement, dialect.Args) {
	kind := "_table"
	if r.Kind == "FUNCTION" {
		kind = "_function"
	}
	return statement(roles, name+kind), dialect.Args{"object": dialect.Qualified(syntax, r.On) + r.Arguments}
}

// Owns implements [dialect.Roles].
func (d database) Owns(ctx context.Context, q dialect.Querier, login string, r dialect.Right) (owns bool, err error) {
	query, args := d.about("owns", r)
	args["login"] = login
	err = dialect.One(ctx, q, syntax, query, args, &owns)
	return owns, err
}

// PartsVisible implements [dialect.Roles]: every role can read the catalogs.
func (database) PartsVisible(context.Context, dialect.Querier, []string) (bool, error) {
	return true, nil
}

// LockRights implements [dialect.Routines].
func (database) LockRights(f *dialect.Feed) []dialect.Right {
	return []dialect.Right{
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.LockRoutine(), Arguments: lockArguments},
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.ULIDRoutine(), Arguments: ulidArguments},
		dialect.May("SELECT", f.Names.Table("shards")), // for LockNonces
	}
}

// GrantSQL implements [dialect.Roles].
func (d database) GrantSQL(login string, rights []dialect.Right) []dialect.Step {
	return d.each("grant", "a right of "+login, login, rights)
}

// RevokeSQL implements [dialect.Roles].
func (d database) RevokeSQL(login string, rights []dialect.Right) []dialect.Step {
	return d.each("revoke", "no right of "+login+" any more", login, rights)
}

// each returns a statement for each right.
func (d database) each(name, note, login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: note, SQL: dialect.NewScript(syntax).Fill(statement(roles, name),
			dialect.Args{"right": dialect.SQL(r.SQL(syntax)), "login": dialect.SQL(login)})})
	}
	return steps
}

// Grant implements [dialect.Roles]. It refuses a role that does not exist, or that may not use rowfeed's
// schema: the schema's owner has to allow that. Afterwards it checks whether the role has the rights.
func (d database) Grant(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	oid, err := d.role(ctx, q, login)
	if err == nil && oid == 0 {
		return &dialect.Refusal{Cause: "there is no role " + login, Next: "make it with CREATE ROLE " + login +
			" LOGIN, or give the name of an existing one"}
	}
	if err != nil {
		return err
	}
	for _, s := range d.GrantSQL(login, rights) {
		if _, err := q.Exec(ctx, s.SQL); err != nil {
			return err
		}
	}
	for _, r := range rights {
		var usage, has bool
		query, args := d.about("may_use", r)
		if len(r.Columns) > 0 {
			query, args["column"] = statement(roles, "may_use_column"), r.Columns[0]
		}
		args["role"], args["privilege"] = oid, r.Privilege
		switch err := dialect.One(ctx, q, syntax, query, args, &usage, &has); {
		case err != nil:
			return err
		case !usage:
			return &dialect.Refusal{Cause: login + " may not use schema " + quote(r.On.Schema),
				Next: "run GRANT USAGE ON SCHEMA " + quote(r.On.Schema) + " TO " + login + ", then this again"}
		case !has:
			return &dialect.Refusal{Cause: "this user may not grant " + r.SQL(syntax),
				Next: "connect as the owner of rowfeed's tables"}
		}
	}
	return nil
}

// Revoke implements [dialect.Roles]. It checks first what exists, because a failed statement would make the
// transaction unusable.
func (d database) Revoke(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	if oid, err := d.role(ctx, q, login); err != nil || oid == 0 {
		return err
	}
	for i, s := range d.RevokeSQL(login, rights) {
		find, args := d.about("has", rights[i])
		var there bool
		err := dialect.One(ctx, q, syntax, find, args, &there)
		if err == nil && there {
			_, err = q.Exec(ctx, s.SQL)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// role returns the oid of a role, or 0 if it does not exist.
func (d database) role(ctx context.Context, q dialect.Querier, login string) (oid int64, err error) {
	err = dialect.One(ctx, q, syntax, statement(roles, "role"), dialect.Args{"login": login}, &oid)
	return oid, err
}

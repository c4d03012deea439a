package postgres

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Login implements [dialect.Roles]. A login is a role, or a role that others are members of. PUBLIC is not one:
// in a GRANT it means all roles.
func (d Dialect) Login(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) || strings.EqualFold(name, "public") ||
		strings.EqualFold(name, "none") {
		return "", &dialect.Refusal{Cause: "it is no name of a role",
			Next: "give the name as pg_roles has it, without quotes"}
	}
	return d.Quote(name), nil
}

// Account implements [dialect.Roles]. A role has only one name.
func (Dialect) Account(_ context.Context, _ dialect.Querier, name string) (string, error) {
	return name, nil
}

// Owns implements [dialect.Roles]. PostgreSQL lists an owner's own rights, and a REVOKE takes them away like
// others.
func (d Dialect) Owns(ctx context.Context, q dialect.Querier, login string, r dialect.Right) (owns bool, err error) {
	query := "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass($2) AND relowner = to_regrole($1))"
	if r.Kind == "FUNCTION" {
		query = "SELECT EXISTS (SELECT 1 FROM pg_proc WHERE oid = to_regprocedure($2) AND proowner = to_regrole($1))"
	}
	err = dialect.QueryRow(ctx, q, query, []any{login, dialect.Qualified(d, r.On) + r.Arguments}, &owns)
	return owns, err
}

// PartsVisible implements [dialect.Roles]: every role can read the catalogs.
func (Dialect) PartsVisible(context.Context, dialect.Querier, []string) (bool, error) {
	return true, nil
}

// LockRights implements [dialect.Roles].
func (Dialect) LockRights(f *dialect.Feed) []dialect.Right {
	return []dialect.Right{
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.LockRoutine(), Arguments: lockArguments},
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.ULIDRoutine(), Arguments: ulidArguments},
		dialect.May("SELECT", f.Names.Table("shards")), // for LockNonces
	}
}

// FlushRights implements [dialect.Roles]. There are none: a commit that is visible is on the disk.
func (Dialect) FlushRights(dialect.Names) []dialect.Right { return nil }

// GrantSQL implements [dialect.Roles].
func (d Dialect) GrantSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "a right of " + login, SQL: "GRANT " + r.SQL(d) + " TO " + login})
	}
	return steps
}

// RevokeSQL implements [dialect.Roles].
func (d Dialect) RevokeSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "no right of " + login + " any more",
			SQL: "REVOKE " + r.SQL(d) + " FROM " + login})
	}
	return steps
}

// Grant implements [dialect.Roles]. It refuses a role that does not exist, or that may not use rowfeed's
// schema: the schema's owner has to allow that. A GRANT by a role that may not grant is only a warning of the
// server. So Grant checks afterwards whether the role has the rights.
func (d Dialect) Grant(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	oid, err := d.role(ctx, q, login)
	if err == nil && oid == 0 {
		return &dialect.Refusal{Cause: "there is no role " + login, Next: "make it with CREATE ROLE " + login +
			" LOGIN, or give the name of one that is there"}
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
		query := "SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), " +
			"has_table_privilege($1::bigint::oid, c.oid, $3) FROM pg_class c WHERE c.oid = to_regclass($2)"
		args := []any{oid, dialect.Qualified(d, r.On) + r.Arguments, r.Privilege}
		switch {
		case r.Kind == "FUNCTION":
			query = "SELECT has_schema_privilege($1::bigint::oid, p.pronamespace, 'USAGE'), " +
				"has_function_privilege($1::bigint::oid, p.oid, $3) FROM pg_proc p WHERE p.oid = to_regprocedure($2)"
		case len(r.Columns) > 0:
			query = "SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), " +
				"has_column_privilege($1::bigint::oid, c.oid, $4, $3) FROM pg_class c WHERE c.oid = to_regclass($2)"
			args = append(args, r.Columns[0])
		}
		switch err := dialect.QueryRow(ctx, q, query, args, &usage, &has); {
		case err != nil:
			return err
		case !usage:
			return &dialect.Refusal{Cause: login + " may not use schema " + d.Quote(r.On.Schema),
				Next: "run GRANT USAGE ON SCHEMA " + d.Quote(r.On.Schema) + " TO " + login + ", then this again"}
		case !has:
			return &dialect.Refusal{Cause: "this user may not grant " + r.SQL(d),
				Next: "connect as the owner of rowfeed's tables"}
		}
	}
	return nil
}

// Revoke implements [dialect.Roles]. It checks first what exists, because a failed statement would make the
// transaction unusable.
func (d Dialect) Revoke(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	if oid, err := d.role(ctx, q, login); err != nil || oid == 0 {
		return err
	}
	for i, s := range d.RevokeSQL(login, rights) {
		find := "SELECT to_regclass($1) IS NOT NULL"
		if rights[i].Kind == "FUNCTION" {
			find = "SELECT to_regprocedure($1) IS NOT NULL"
		}
		var there bool
		err := dialect.QueryRow(ctx, q, find, []any{dialect.Qualified(d, rights[i].On) + rights[i].Arguments}, &there)
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
func (Dialect) role(ctx context.Context, q dialect.Querier, login string) (oid int64, err error) {
	err = dialect.QueryRow(ctx, q, "SELECT COALESCE(to_regrole($1)::oid::bigint, 0)", []any{login}, &oid)
	return oid, err
}

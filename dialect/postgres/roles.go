package postgres

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Login is the name of a role, which may be a group of others. PUBLIC is everybody, with quotes or
// without.
func (d Dialect) Login(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) || strings.EqualFold(name, "public") || strings.EqualFold(name, "none") {
		return "", &dialect.Refusal{Cause: "it is no name of a role", Next: "give the name as pg_roles has it, without quotes"}
	}
	return d.Quote(name), nil
}

// Account is the name: a role has one.
func (Dialect) Account(_ context.Context, _ dialect.Querier, name string) (string, error) {
	return name, nil
}

// Owns: an owner's own rights are listed, and are revoked, like anybody's.
func (d Dialect) Owns(ctx context.Context, q dialect.Querier, login string, r dialect.Right) (owns bool, err error) {
	query := "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass($2) AND relowner = to_regrole($1))"
	if r.Kind == "FUNCTION" {
		query = "SELECT EXISTS (SELECT 1 FROM pg_proc WHERE oid = to_regprocedure($2) AND proowner = to_regrole($1))"
	}
	err = dialect.QueryRow(ctx, q, query, []any{login, dialect.Qualified(d, r.On) + r.Arguments}, &owns)
	return owns, err
}

// Shown: the catalogs are everybody's.
func (Dialect) Shown(context.Context, dialect.Querier, []string) (bool, error) { return true, nil }

// LockRights are those to take ULIDs.
func (Dialect) LockRights(f *dialect.Feed) []dialect.Right {
	return []dialect.Right{
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.LockRoutine(), Arguments: lockArguments},
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.ULIDRoutine(), Arguments: ulidArguments},
		dialect.May("SELECT", f.Names.Table("shards")), // for Witness
	}
}

// FlushRights are none: a commit that is shown is on the disk.
func (Dialect) FlushRights(dialect.Names) []dialect.Right { return nil }

// GrantSQL is a statement for each right.
func (d Dialect) GrantSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "a right of " + login, SQL: "GRANT " + r.SQL(d) + " TO " + login})
	}
	return steps
}

// RevokeSQL is a statement for each right.
func (d Dialect) RevokeSQL(login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: "no right of " + login + " any more", SQL: "REVOKE " + r.SQL(d) + " FROM " + login})
	}
	return steps
}

// Grant refuses a role that is not there, or may not look into rowfeed's schema, which is its
// owner's to allow. A GRANT by somebody who may not grant is a warning only, so the
// rights are looked at behind it.
func (d Dialect) Grant(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	oid, err := d.role(ctx, q, login)
	if err == nil && oid == 0 {
		return &dialect.Refusal{Cause: "there is no role " + login, Next: "make it with CREATE ROLE " + login + " LOGIN, or give the name of one that is there"}
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
		query := "SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), has_table_privilege($1::bigint::oid, c.oid, $3) FROM pg_class c WHERE c.oid = to_regclass($2)"
		args := []any{oid, dialect.Qualified(d, r.On) + r.Arguments, r.Privilege}
		switch {
		case r.Kind == "FUNCTION":
			query = "SELECT has_schema_privilege($1::bigint::oid, p.pronamespace, 'USAGE'), has_function_privilege($1::bigint::oid, p.oid, $3) FROM pg_proc p WHERE p.oid = to_regprocedure($2)"
		case len(r.Columns) > 0:
			query = "SELECT has_schema_privilege($1::bigint::oid, c.relnamespace, 'USAGE'), has_column_privilege($1::bigint::oid, c.oid, $4, $3) FROM pg_class c WHERE c.oid = to_regclass($2)"
			args = append(args, r.Columns[0])
		}
		switch err := dialect.QueryRow(ctx, q, query, args, &usage, &has); {
		case err != nil:
			return err
		case !usage:
			return &dialect.Refusal{Cause: login + " may not use schema " + d.Quote(r.On.Schema), Next: "run GRANT USAGE ON SCHEMA " + d.Quote(r.On.Schema) + " TO " + login + ", then this again"}
		case !has:
			return &dialect.Refusal{Cause: "this user may not grant " + r.SQL(d), Next: "connect as the owner of rowfeed's tables"}
		}
	}
	return nil
}

// Revoke leaves out what is not there: a failed statement would end the transaction.
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

// role is the id of a role, 0 where there is none.
func (Dialect) role(ctx context.Context, q dialect.Querier, login string) (oid int64, err error) {
	err = dialect.QueryRow(ctx, q, "SELECT COALESCE(to_regrole($1)::oid::bigint, 0)", []any{login}, &oid)
	return oid, err
}

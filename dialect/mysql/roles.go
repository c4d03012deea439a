package mysql

import (
	"context"
	_ "embed" // for roles.sql
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed roles.sql
var rolesFile string

var roles = dialect.NewStatements(rolesFile)

// list is a list of values, for IN.
func list(values []string) dialect.Built {
	return func(b *dialect.Builder) string {
		args := make([]string, len(values))
		for i, v := range values {
			args[i] = b.Arg(v)
		}
		return strings.Join(args, ", ")
	}
}

// Login implements [dialect.Roles]. The name is u, u@host or, with quotes, 'u'@'host'. Without a host it means
// u@%, or MariaDB's role of that name.
func (d database) Login(name string) (string, error) {
	user, host, hosted := account(name)
	// An empty user means every user. On MariaDB, public and none have special meanings, with quotes or
	// without.
	if user == "" || hosted && host == "" ||
		!hosted && (strings.EqualFold(user, "public") || strings.EqualFold(user, "none")) ||
		strings.ContainsAny(name, "\x00\\") {
		return "", &dialect.Refusal{Cause: "it is not an account",
			Next: "write it like app, app@10.0.0.% or 'app'@'localhost'"}
	}
	if !hosted {
		return literal(user), nil
	}
	return literal(user) + "@" + literal(host), nil
}

// account splits a name into user and host. hosted tells whether it has a host.
func account(name string) (user, host string, hosted bool) {
	user = name
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		user, host, hosted = name[:i], name[i+1:], true
	}
	return unquoted(user), unquoted(host), hosted
}

// Account implements [dialect.Roles]. It returns u@host, with the host in lower case, because the servers
// ignore its case. For a role of MariaDB it returns u alone. A login that may not read the list of accounts
// finds only roles that were granted to it.
func (d database) Account(ctx context.Context, q dialect.Querier, name string) (string, error) {
	user, host, hosted := account(name)
	if !hosted {
		var role bool
		err := dialect.One(ctx, q, syntax, statement(roles, "is_role"), dialect.Args{"user": user}, &role)
		switch d.Classify(err) {
		case dialect.ClassUndefined:
			err = nil
		case dialect.ClassPermission:
			err = dialect.One(ctx, q, syntax, statement(roles, "is_own_role"), dialect.Args{"user": user}, &role)
		}
		if err != nil || role {
			return quotedAs(user), err
		}
		host = "%"
	}
	return quotedAs(user) + "@" + strings.ToLower(host), nil
}

// quotedAs returns a user's name so that account reads the same name back.
func quotedAs(user string) string {
	if unquoted(user) != user {
		return "`" + strings.ReplaceAll(user, "`", "``") + "`"
	}
	return user
}

// Owns implements [dialect.Roles]: tables and routines have no owners.
func (database) Owns(context.Context, dialect.Querier, string, dialect.Right) (bool, error) {
	return false, nil
}

// PartsVisible implements [dialect.Roles]. It returns false for a login that has only rights of a reader or writer: it
// is one of the granted accounts, or has one of them as a role, and may neither make tables in the database nor
// see triggers.
func (d database) PartsVisible(ctx context.Context, q dialect.Querier, granted []string) (bool, error) {
	if len(granted) == 0 {
		return true, nil
	}
	accounts, users := make([]string, len(granted)), make([]string, len(granted))
	for i, name := range granted {
		user, host, _ := account(name)
		accounts[i], users[i] = user+"@"+host, user
	}
	var among, makes bool
	err := dialect.One(ctx, q, syntax, statement(roles, "may_make"), dialect.Args{"accounts": list(accounts)},
		&among, &makes)
	if err != nil || makes || among {
		return makes, err
	}
	err = dialect.One(ctx, q, syntax, statement(roles, "has_roles"), dialect.Args{"roles": list(users)}, &among)
	if d.Classify(err) == dialect.ClassUndefined { // MySQL before 8.0.19
		err = nil
	}
	return !among, err
}

// unquoted removes quotes of any kind.
func unquoted(name string) string {
	if n := len(name); n >= 2 && strings.IndexByte("'\"`", name[0]) >= 0 && name[0] == name[n-1] {
		quote := name[:1]
		return strings.ReplaceAll(name[1:n-1], quote+quote, quote)
	}
	return name
}

// LockRights implements [dialect.Routines]. There is none on the table of shards: on MariaDB a login that may read
// a row can also lock it.
func (database) LockRights(f *dialect.Feed) []dialect.Right {
	return []dialect.Right{
		{Privilege: "EXECUTE", Kind: "PROCEDURE", On: f.LockRoutine()},
		{Privilege: "EXECUTE", Kind: "PROCEDURE", On: f.TakeRoutine()},
		{Privilege: "EXECUTE", Kind: "PROCEDURE", On: f.NonceRoutine()},
		{Privilege: "EXECUTE", Kind: "FUNCTION", On: f.ULIDRoutine()},
	}
}

// FlushRights implements [dialect.Flushing].
func (database) FlushRights(n dialect.Names) []dialect.Right {
	flushes := n.Table("flushes")
	return []dialect.Right{dialect.May("SELECT", flushes), dialect.May("INSERT", flushes),
		dialect.May("UPDATE", flushes)}
}

// GrantSQL implements [dialect.Roles].
func (d database) GrantSQL(login string, rights []dialect.Right) []dialect.Step {
	first := statement(roles, "make_no_account")
	return append([]dialect.Step{{Note: first.Note, SQL: first.String()}},
		d.eachRight("grant", "a right of "+login, login, rights)...)
}

// RevokeSQL implements [dialect.Roles].
func (d database) RevokeSQL(login string, rights []dialect.Right) []dialect.Step {
	return d.eachRight("revoke", "no right of "+login+" any more", login, rights)
}

func (d database) eachRight(name, note, login string, rights []dialect.Right) (steps []dialect.Step) {
	for _, r := range rights {
		steps = append(steps, dialect.Step{Note: note, SQL: dialect.NewScript(syntax).Fill(statement(roles, name),
			dialect.Args{"right": dialect.SQL(r.SQL(syntax)), "login": dialect.SQL(login)})})
	}
	return steps
}

// noLogin are the error numbers of a GRANT to an account that does not exist.
var noLogin = []int64{1133, 1410, 3523, 1959}

// Grant implements [dialect.Roles]. The caller holds the schema lock, whose release sets the session's sql_mode
// back.
func (d database) Grant(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	for _, s := range d.GrantSQL(login, rights) {
		if _, err := q.Exec(ctx, s.SQL); err != nil {
			if number, _ := dialect.CodeField(err, "Number"); slices.Contains(noLogin, number) {
				return &dialect.Refusal{Cause: "there is no account " + login, Next: "make it with CREATE USER " +
					login + " IDENTIFIED BY …, or give the name of an existing one"}
			}
			return err
		}
	}
	return nil
}

// nothingToRevoke are the error numbers of a REVOKE if the right, the account or the routine does not exist.
var nothingToRevoke = append([]int64{1141, 1147, 1403, 1305, 1146, 1054}, noLogin...)

// Revoke implements [dialect.Roles].
func (d database) Revoke(ctx context.Context, q dialect.Querier, login string, rights []dialect.Right) error {
	for _, s := range d.RevokeSQL(login, rights) {
		if _, err := q.Exec(ctx, s.SQL); err != nil {
			if number, _ := dialect.CodeField(err, "Number"); !slices.Contains(nothingToRevoke, number) {
				return err
			}
		}
	}
	return nil
}

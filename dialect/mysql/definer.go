package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// definer is what this login knows of an account with whose rights a trigger or a routine runs.
type definer struct {
	told  bool   // this login can see whether the account exists and has the rights
	fault string // why the account cannot be the definer; empty if no reason is known
	next  string
}

// definers looks up accounts, each of them once.
type definers struct {
	d     database
	q     dialect.Querier
	feed  string
	needs []dialect.Right // the rights that the feed's triggers, or its routines, need
	login string          // the account of q
	known map[string]definer
}

func (d database) definers(
	ctx context.Context, q dialect.Querier, feed string, needs []dialect.Right,
) (*definers, error) {
	all := &definers{d: d, q: q, feed: feed, needs: needs, known: map[string]definer{}}
	return all, dialect.One(ctx, q, syntax, statement(roles, "login"), nil, &all.login)
}

// triggerNeeds returns the rights that a trigger needs. Both servers check TRIGGER and SELECT whenever the
// trigger fires.
func triggerNeeds(f *dialect.Feed, t *dialect.Table) []dialect.Right {
	uses := dialect.May("INSERT", triggerTable(f))
	if f.Fenced() {
		uses.Privilege = "SELECT"
	}
	return []dialect.Right{uses, dialect.May("SELECT", t.Name),
		dialect.May("TRIGGER", t.Name)}
}

// routineNeeds returns the rights that the feed's routines need together.
func routineNeeds(f *dialect.Feed) []dialect.Right {
	shards := f.Names.Table("shards")
	return []dialect.Right{
		dialect.May("SELECT", shards), dialect.May("INSERT", shards), dialect.May("UPDATE", shards),
		dialect.May("SELECT", f.Names.Table("feeds")), dialect.May("SELECT", f.Source),
	}
}

// account returns what this login knows of an account. The catalogs write it as user@host, and a role of MariaDB as
// role@.
func (all *definers) account(ctx context.Context, name string) (definer, error) {
	if x, ok := all.known[name]; ok {
		return x, nil
	}
	x, err := all.look(ctx, name)
	if err == nil {
		all.known[name] = x
	}
	return x, err
}

// look finds accounts as the server does: by the user's name, and by a pattern that matches the host. A right
// that it cannot look up is assumed to be there.
func (all *definers) look(ctx context.Context, name string) (x definer, err error) {
	at := strings.LastIndexByte(name, '@')
	user, host := name[:at], name[at+1:]
	hosts, err := dialect.All(ctx, all.q, syntax, statement(roles, "account_hosts"),
		dialect.Args{"user": user, "host": host},
		func(rows dialect.Rows) (host string, err error) { return host, rows.Scan(&host) })
	// The code counts any error of the server: on MariaDB mysql.user is a view, which can fail for more reasons
	// than a missing right.
	_, refused := dialect.CodeField(err, "Number")
	switch {
	case refused && name == all.login:
		hosts = []string{host}
	case refused:
		return definer{}, nil
	case err != nil:
		return definer{}, err
	case len(hosts) == 0:
		return definer{told: true, fault: "which does not exist",
			next: "run `rowfeed feed upgrade " + all.feed + "` as an account that will not be dropped"}, nil
	}
	grantees := []string{"'PUBLIC'@''"} // all accounts, on MariaDB
	for _, h := range hosts {
		grantees = append(grantees, "'"+user+"'@'"+h+"'")
	}
	missing, told, err := all.lacks(ctx, grantees, host == "")
	if err != nil || !told || len(missing) == 0 {
		return definer{told: told}, err
	}
	if byRole, err := all.mayHaveByRole(ctx, user, host); err != nil || byRole {
		return definer{}, err
	}
	return definer{told: true, fault: "which lacks " + strings.Join(missing, ", "),
		next: "grant it that, or run `rowfeed feed upgrade " + all.feed + "` as an account that has it"}, nil
}

// lacks returns the rights that none of the grantees has. told is false if this login is not told of their rights.
func (all *definers) lacks(ctx context.Context, grantees []string, role bool) (missing []string, told bool, err error) {
	shown := statement(roles, "shown").With(dialect.Args{"grantees": list(grantees)})
	if at := strings.LastIndexByte(all.login, '@'); role {
		login := "'" + all.login[:at] + "'@'" + all.login[at+1:] + "'"
		shown = statement(roles, "shown_to_role").With(dialect.Args{"grantees": list([]string{login})})
	}
	columns := []dialect.Built{shown}
	for _, need := range all.needs {
		columns = append(columns, statement(roles, "has_right").With(dialect.Args{"grantees": list(grantees),
			"right": need.Privilege, "schema": need.On.Schema, "table": need.On.Name}))
	}
	found := make([]bool, len(columns))
	into := make([]any, len(columns))
	for i := range found {
		into[i] = &found[i]
	}
	err = dialect.One(ctx, all.q, syntax, statement(roles, "rights"),
		dialect.Args{"columns": dialect.Joined(",\n", columns)}, into...)
	if err != nil {
		return nil, false, err
	}
	for i, need := range all.needs {
		if !found[i+1] {
			missing = append(missing, need.Privilege+" on "+need.On.String())
		}
	}
	return missing, found[0], nil
}

// mayHaveByRole tells whether an account may have rights by roles.
func (all *definers) mayHaveByRole(ctx context.Context, user, host string) (may bool, err error) {
	name, args := "login_may_have_by_role", dialect.Args(nil)
	if user+"@"+host != all.login {
		name, args = "may_have_by_role", dialect.Args{"user": user, "host": host}
	}
	err = dialect.One(ctx, all.q, syntax, statement(roles, name), args, &may)
	switch all.d.Classify(err) {
	case dialect.ClassPermission, dialect.ClassUndefined: // MySQL has it since 8.0.19
		return true, nil
	}
	return may, err
}

// refusal says why this login must not make objects that would run with its rights. It is nil if it may.
func (all *definers) refusal(ctx context.Context) (*dialect.Refusal, error) {
	x, err := all.account(ctx, all.login)
	if err != nil || x.fault == "" {
		return nil, err
	}
	return &dialect.Refusal{Next: x.next,
		Cause: fmt.Sprintf("rowfeed's triggers would run with the rights of %s, %s", all.login, x.fault)}, nil
}

// problem says that what, such as a trigger, runs with the rights of an account that is not in order.
func (x definer) problem(what, account, consequence string) string {
	return fmt.Sprintf("%s runs with the rights of %s, %s: %s; %s", what, account, x.fault, consequence, x.next)
}

// Takeovers implements [dialect.Owners]. A login that lacks rights itself takes over nothing.
func (d database) Takeovers(
	ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table,
) (all []string, err error) {
	needs := routineNeeds(f)
	byTrigger := f.ULIDs == nil || f.Outbox
	if byTrigger {
		needs = triggerNeeds(f, t)
	}
	accounts, err := d.definers(ctx, q, f.Name, needs)
	if err != nil {
		return nil, err
	}
	if refused, err := accounts.refusal(ctx); err != nil || refused != nil {
		return nil, err
	}
	if byTrigger {
		s, err := d.inspect(ctx, q, f, t)
		if err != nil {
			return nil, err
		}
		for _, tr := range s.wanted {
			name, right := s.right(tr, t)
			i := slices.IndexFunc(s.ours, func(x found) bool { return x.name == name })
			if right && s.ours[i].remake != "" {
				all = append(all, s.ours[i].remake)
			}
		}
		return all, nil
	}
	for _, r := range routines(f) {
		account, _, err := d.routine(ctx, q, r)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (r.invoker || account == accounts.login) {
			continue
		}
		x := definer{}
		if err == nil {
			x, err = accounts.account(ctx, account)
		}
		if err != nil {
			return nil, err
		}
		if !x.told {
			all = append(all, untold(r.kind+" "+r.name.String(), account))
		}
	}
	return all, nil
}

// untold says why an upgrade makes an object again: this login cannot see whether the account with whose rights
// it ran is in order.
func untold(what, account string) string {
	return fmt.Sprintf("%s ran with the rights of %s, of which this login is not told whether it exists and may write",
		what, account)
}

// Strays implements [dialect.Copies]. If rowfeed's tables are in the database of the feed's table, triggers
// name no database, and those of a copy write into the copy's own tables. For such a feed, Strays returns
// triggers of the feed that do name their database.
func (d database) Strays(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	if f.Names.Schema == t.Name.Schema {
		return d.named(ctx, q, f, t)
	}
	wanted, err := d.triggers(f, t)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	var bodies []string
	for _, tr := range wanted {
		bodies = append(bodies, tr.body)
	}
	args := dialect.Args{"bodies": list(bodies), "schema": t.Name.Schema}
	return dialect.All(ctx, q, syntax, statement(capture, "strays"), args, func(rows dialect.Rows) (string, error) {
		v, err := dialect.ScanStrings(rows, 3)
		if err != nil {
			return "", err
		}
		drop := capture.Step(syntax, f, "drop_trigger", d.triggerName(v[0], v[1])).SQL
		return fmt.Sprintf("trigger %s.%s on table %s.%s writes into this feed's tables, "+
			"as those of a copy of database %s do: run `%s`", v[0], v[1], v[0], v[2], t.Name.Schema, drop), nil
	})
}

// named returns one sentence for each of the feed's triggers that names its database.
func (d database) named(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) (all []string, err error) {
	s, err := d.inspect(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	for _, x := range s.ours {
		if x.named {
			all = append(all, fmt.Sprintf("trigger %s on table %s names its database: a dump of that, "+
				"loaded into another "+
				"database of this server, would make its triggers here; run `rowfeed feed upgrade %s`", x.name,
				t.Name, f.Name))
		}
	}
	return all, nil
}

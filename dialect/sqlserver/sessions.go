package sqlserver

import (
	"context"
	_ "embed" // for sessions.sql
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed sessions.sql
var sessionsFile string

var sessions = dialect.NewStatements(sessionsFile)

// Blockers implements [dialect.Inspection]. Holders knows every lock on a shard, so for a feed with ULIDs there is
// nothing to add.
func (d database) Blockers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Blocker, *dialect.Unseen, error) {
	if f.ULIDs != nil {
		return nil, nil, nil
	}
	all, err := dialect.All(ctx, q, syntax, statement(sessions, "blockers"), dialect.Args{
		"written": dialect.Qualified(syntax, f.Written()), "positions": dialect.Qualified(syntax, f.Positions()),
		"source": dialect.Qualified(syntax, f.Source),
	}, func(rows dialect.Rows) (b dialect.Blocker, err error) {
		return b, rows.Scan(&b.Session, &b.User, &b.Host, &b.AgeMicros, &b.Statement, &b.Scope)
	})
	if d.Classify(err) != dialect.ClassPermission {
		return all, nil, err
	}
	var login string
	if err := dialect.One(ctx, q, syntax, statement(sessions, "login"), nil, &login); err != nil {
		return nil, nil, err
	}
	return nil, &dialect.Unseen{Cause: "the login " + login + " cannot see locks: it lacks the right VIEW SERVER STATE",
		Next: "run `GRANT VIEW SERVER STATE TO " + login + "` in the database master"}, nil
}

// Holders implements [dialect.Sessions]. The locks are listed by their names.
func (d database) Holders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (all []dialect.Holding, named dialect.NamedHolders, err error) {
	_, err = dialect.All(ctx, q, syntax, statement(sessions, "holders"), dialect.Args{"turn": lockName(f)},
		func(rows dialect.Rows) (none struct{}, err error) {
			var lock string
			var waits bool
			var s dialect.Session
			if err := rows.Scan(&lock, &waits, &s.Transaction, &s.ID, &s.User, &s.Host, &s.Age, &s.Statement,
				&s.Application, &s.State, &s.StateAge); err != nil {
				return none, err
			}
			_, name, _ := strings.Cut(lock, "["+lockName(f))
			name, _, _ = strings.Cut(name, "]")
			if shard, err := strconv.Atoi(name); err == nil { // and not the publisher's turn
				all = dialect.AddSession(all, shard, waits, s)
			}
			return none, nil
		})
	if err != nil {
		return nil, dialect.HoldersNone, lacking(d, "VIEW SERVER STATE", err)
	}
	return all, dialect.HoldersAll, nil
}

// lacking adds the name of the missing right to an error, if the error is about a missing right.
func lacking(d database, right string, err error) error {
	if d.Classify(err) == dialect.ClassPermission {
		return fmt.Errorf("the right %s is missing: %w", right, err)
	}
	return err
}

// EndHolder implements [dialect.Sessions]. KILL ends a session, not a transaction, so EndHolder reads the locks right
// before it. In between, the session could still end its transaction and begin another one.
func (d database) EndHolder(ctx context.Context, q dialect.Querier, f *dialect.Feed, h dialect.Holding) (bool, error) {
	all, _, err := d.Holders(ctx, q, f)
	if err != nil {
		return false, err
	}
	for _, now := range all {
		if now.Shard != h.Shard || now.Holder == nil || now.Holder.ID != h.Holder.ID ||
			now.Holder.Transaction != h.Holder.Transaction {
			continue
		}
		session, err := strconv.ParseUint(h.Holder.ID, 10, 16)
		if err != nil {
			return false, err
		}
		_, err = dialect.Exec(ctx, q, syntax, statement(sessions, "end_session"),
			dialect.Args{"session": dialect.SQL(strconv.FormatUint(session, 10))})
		if n, _ := number(err); n == errNoSession {
			return false, nil
		}
		return err == nil, lacking(d, "ALTER ANY CONNECTION", err)
	}
	return false, nil
}

// errNoSession is the number of a KILL of a session that does not exist any more.
const errNoSession = 6106

// Backlog implements [dialect.Inspection].
func (d database) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, age int64, err error) {
	name, args := "backlog", dialect.Args{"limit": limit}
	if f.Outbox {
		name, args["which"] = "backlog_of_outbox", sessions.For(syntax, f, "oldest_record").With(nil)
		if len(shard) > 0 {
			args["which"] = sessions.For(syntax, f, "oldest_record_of_shard").With(dialect.Args{"shard": shard[0]})
		}
	}
	err = dialect.One(ctx, q, syntax, sessions.For(syntax, f, name), args, &count, &age)
	return count, max(age, 0), err
}

// savepoint is [dialect.Dialect].Savepoint.
func savepoint(name string) dialect.Savepoint {
	text := func(of string, args dialect.Args) string {
		return dialect.NewBuilder(syntax).Fill(statement(sessions, of), args)
	}
	named := dialect.Args{"savepoint": dialect.SQL(name)}
	return dialect.Savepoint{Set: text("set_savepoint", named), Back: text("back_to_savepoint", named),
		Release: text("release_savepoint", nil)}
}

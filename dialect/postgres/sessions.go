package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for sessions.sql
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed sessions.sql
var sessionsFile string

var sessions = dialect.NewStatements(sessionsFile)

// Writers implements [dialect.Gaps]. A rollback does not reset an identity's sequence, and a crash never resets it
// below a number that was committed.
//
// It returns the transactions that hold a writer's lock on the table of
// changes or the outbox, and those that have a transaction id. told is false if the table's sequence caches values.
func (d database) Writers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, column := f.Waiting()
	_, err = dialect.All(ctx, q, syntax, sessions.For(syntax, f, "writers"), dialect.Args{
		"table": dialect.Qualified(syntax, table), "column": column,
	}, func(rows dialect.Rows) (w dialect.Writer, err error) {
		err = rows.Scan(&told, &w.Transaction, &w.Orphan)
		if w.Session = w.Transaction; w.Session != "" {
			open = append(open, w)
		}
		return w, err
	})
	return open, told, err
}

// Blockers implements [dialect.Inspection]. It returns the transactions that wrote to the feed's table and have not
// ended, prepared ones included, and the sessions that keep it locked. In blocking mode and for an outbox it returns
// the transactions that may have locked a shard, but are not among the Holders.
func (d database) Blockers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (found []dialect.Blocker, unseen *dialect.Unseen, err error) {
	name, args := "blockers", dialect.Args{"written": dialect.Qualified(syntax, f.Written()),
		"positions": dialect.Qualified(syntax, f.Positions()), "source": dialect.Qualified(syntax, f.Source)}
	if f.ULIDs != nil {
		name, args = "may_hold", d.shardsOf(f)
	}
	found, err = dialect.All(ctx, q, syntax, sessions.For(syntax, f, name), args,
		func(rows dialect.Rows) (b dialect.Blocker, err error) {
			var statement sql.NullString
			var started any
			err = rows.Scan(&b.Session, &b.User, &b.Host, &b.AgeMicros, &statement, &b.Scope, &started)
			b.Statement = statement.String
			return b, err
		})
	if err != nil || !slices.ContainsFunc(found, func(b dialect.Blocker) bool { return b.AgeMicros < 0 }) {
		return found, nil, err
	}
	var login string
	if err := dialect.One(ctx, q, syntax, sessions.For(syntax, f, "login"), nil, &login); err != nil {
		return nil, nil, err
	}
	return found, &dialect.Unseen{Cause: "the login " + login +
		" cannot see the start, the client and the statement of other roles' transactions: " +
		"it lacks the role pg_read_all_stats",
		Next: "run `GRANT pg_read_all_stats TO " + login + "`"}, nil
}

// shardsOf are the arguments of the statement held.
func (d database) shardsOf(f *dialect.Feed) dialect.Args {
	return dialect.Args{"feed": f.Name, "shards": dialect.Qualified(syntax, f.Names.Table("shards")),
		"feed_hash": shards.For(syntax, f, "feed_hash").With(nil)}
}

// Holders implements [dialect.Sessions]. Every login may see the locks. Only a member of pg_read_all_stats, or of
// the session's own role, sees what a session does.
func (d database) Holders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (all []dialect.Holding, named dialect.NamedHolders, err error) {
	_, err = dialect.All(ctx, q, syntax, sessions.For(syntax, f, "holders"), d.shardsOf(f),
		func(rows dialect.Rows) (s dialect.Session, err error) {
			var shard, waits int
			err = rows.Scan(&shard, &waits, &s.ID, &s.Transaction, &s.User, &s.Host, &s.Application, &s.Age, &s.State,
				&s.StateAge, &s.Statement)
			all = dialect.AddSession(all, shard, waits == 1, s)
			return s, err
		})
	return all, dialect.HoldersAll, err
}

// OpenChange implements [dialect.Replicas]. The name is the transaction's virtual id.
func (d database) OpenChange(ctx context.Context, db *sql.DB, f *dialect.Feed, shard int) (name string, err error) {
	args, of := dialect.Args{"feed": f.Name, "elsewhere": dialect.SQL("")}, "open_change"
	switch {
	case f.ULIDs != nil:
		args, of = d.shardsOf(f), "open_change_of_shard"
		args["shard"] = shard
	case f.Elsewhere != nil:
		args["elsewhere"] = sessions.For(syntax, f, "changed_elsewhere").With(dialect.Args{
			"sequence": dialect.SQL(dialect.Qualified(syntax, f.Elsewhere.Table)), "name": f.Elsewhere.Name})
	}
	err = dialect.One(ctx, dialect.On(db), syntax, sessions.For(syntax, f, of), args, &name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

// EndHolder implements [dialect.Sessions] by one statement.
func (d database) EndHolder(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	h dialect.Holding) (ended bool, err error) {
	err = dialect.One(ctx, q, syntax, sessions.For(syntax, f, "end_holder"),
		dialect.Args{"session": h.Holder.ID, "transaction": h.Holder.Transaction}, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case d.Classify(err) == dialect.ClassPermission:
		err = fmt.Errorf("membership in the role %q, or in pg_signal_backend, is missing: %w", h.Holder.User, err)
	}
	return ended, err
}

// Backlog implements [dialect.Inspection].
func (d database) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, age int64, err error) {
	name, args := "backlog", dialect.Args{"limit": dialect.SQL(strconv.Itoa(limit))}
	switch {
	case f.Outbox && len(shard) > 0:
		name, args["shard"] = "backlog_of_shard", shard[0]
	case f.Outbox:
		name = "backlog_of_outbox"
	}
	err = dialect.One(ctx, q, syntax, sessions.For(syntax, f, name), args, &count, &age)
	return count, age, err
}

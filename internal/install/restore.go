package install

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// SameAsBefore is the publisher's look at its database, when it starts and then at
// every house-keeping. Publishing looks by itself; this tells also while nothing is
// to be published, and writes the identity down where it is not known yet.
func (f *Feed) SameAsBefore(ctx context.Context) error {
	identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names)
	if err != nil {
		return f.Fail("ask which database it is in", err)
	}
	if r := f.Record.Load(); r.Identity == "" && identity != "" {
		if err := f.setIdentity(ctx, identity, true); err != nil {
			return err
		}
	}
	if err := history.SameDatabase(f.Record.Load(), identity); err != nil {
		return err
	}
	if f.DialectFeed().ULIDs != nil {
		return nil // pages look by themselves; without a shard there is nothing to look at
	}
	return f.Reader.NotSetBack(ctx)
}

func (f *Feed) setIdentity(ctx context.Context, identity string, onlyUnknown bool) error {
	err := f.Store.InTx(ctx, dialect.ForRecord, "note the database of "+f.Name, func(tx dialect.Querier) error {
		b := dialect.NewBuilder(f.Store.Dialect)
		query := "UPDATE " + f.Store.Table("feeds") + " SET database_identity = " + b.Arg(store.OrNull(identity)) +
			" WHERE name = " + b.Arg(f.Name)
		if onlyUnknown {
			query += " AND database_identity IS NULL"
		}
		_, err := tx.Exec(ctx, query, b.Args()...)
		return err
	})
	if err != nil {
		return f.Fail("note which database it is in", err)
	}
	return f.Reload(ctx)
}

// Bump gives the feed a new generation, and answers it: the database's time in
// seconds, or one more than before where that is higher. From then on cursors of the
// former generation are refused with code GenerationChanged; consumers start at the
// beginning, and remove what the new pass does not bring. It is for a database in
// which commits were lost: after restoring a backup, or a failover to a replica that
// lagged. A database of another identity is the feed's from now on.
func (f *Feed) Bump(ctx context.Context) (generation int64, err error) {
	err = f.Store.InTx(ctx, dialect.ForRecord, "bump "+f.Name, func(tx dialect.Querier) error {
		seq, err := f.Store.Dialect.LockSequence(ctx, tx, f.DialectFeed())
		if err != nil {
			return err
		}
		for _, s := range bumpSteps(f.Store.Dialect, f.Store.Names, f.Name, store.OrNull(seq.Identity)) {
			if _, err := tx.Exec(ctx, s.SQL); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, f.Fail("bump", err)
	}
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	f.Wake()
	return f.Generation(), nil
}

// AdoptDatabase takes the database for the feed's own, with positions and cursors as
// they are. It is for a database that has moved with all its commits: a planned
// failover, an upgrade, a new server id. It answers whether that was needed.
func (f *Feed) AdoptDatabase(ctx context.Context) (changed bool, err error) {
	if err := f.Reload(ctx); err != nil {
		return false, err
	}
	identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names)
	if err != nil {
		return false, f.Fail("ask which database it is in", err)
	}
	if f.Record.Load().Identity == identity {
		return false, nil
	}
	if err := f.setIdentity(ctx, identity, false); err != nil {
		return false, err
	}
	f.Wake()
	return true, nil
}

// printBump is the script of Bump, or of AdoptDatabase, for a database that is not at hand. See rowfeed.PrintBump.
func PrintBump(d dialect.Dialect, names dialect.Names, feed string, adopt bool) []dialect.Step {
	steps := bumpSteps(d, names, feed, nil)
	if adopt {
		b := dialect.NewScript(d)
		steps = []dialect.Step{{Note: "the next publisher notes which database it is in",
			SQL: "UPDATE " + dialect.Qualified(d, names.Table("feeds")) +
				" SET database_identity = NULL WHERE name = " + b.Arg(feed)}}
	}
	first, last := d.Frame()
	return append(append(first, steps...), last...)
}

// bumpSteps begin with the sequence's row, which a publisher holds to its commit.
func bumpSteps(d dialect.Dialect, names dialect.Names, feed string, identity any) []dialect.Step {
	seconds := "ROUND(" + d.Now() + " / 1000000)"
	b := dialect.NewScript(d)
	lock := "UPDATE " + dialect.Qualified(d, names.Table("sequences")) + " SET version = version + 1 WHERE name = " +
		b.Arg(feed)
	b = dialect.NewScript(d)
	return []dialect.Step{
		{Note: "wait for a publisher in the middle of a pass", SQL: lock},
		{Note: "from now on cursors of the generation before are refused",
			SQL: "UPDATE " + dialect.Qualified(d, names.Table("feeds")) +
				"\nSET generation = CASE WHEN " + seconds + " > generation + 1 THEN " + seconds +
				" ELSE generation + 1 END,\n  database_identity = " + b.Arg(identity) +
				"\nWHERE name = " + b.Arg(feed)},
	}
}

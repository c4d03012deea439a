package install

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Identity ties one feed to the database in which its positions were given.
type Identity struct {
	*catalog.Feed
	Recorder *publish.Recorder
}

// SameAsBefore refuses a database that was restored or replaced since it was last seen. A publisher calls it at its
// start and then every minute. Publishing makes the same check; this also finds it while there is nothing to publish.
// It saves the database's identity if the feed's record has none. In a sequence feed, terms tell what was lost, and
// nothing is refused.
func (f *Identity) SameAsBefore(ctx context.Context) error {
	if f.DialectFeed().ULIDs == nil {
		return nil
	}
	identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names)
	if err != nil {
		return f.Fail("read the identity of its database", err)
	}
	if r := f.Record.Load(); r.Identity == "" && identity != "" {
		if err := f.setIdentity(ctx, identity, true); err != nil {
			return err
		}
	}
	return history.SameDatabase(f.Record.Load(), identity) // each page also checks that its shard was not set back
}

func (f *Identity) setIdentity(ctx context.Context, identity string, onlyUnknown bool) error {
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
		return f.Fail("save the identity of its database", err)
	}
	return f.Reload(ctx)
}

// Bump gives the feed a new generation, and returns it: the database's time in seconds, or the former generation plus
// one if that is higher. Cursors of the former generation are then refused with the code GenerationChanged. Consumers
// start at the beginning, and remove what they do not receive again. Bump is for a database that has lost commits:
// after a backup was restored, or after a failover to a replica that lagged. It saves the identity of the database.
func (f *Identity) Bump(ctx context.Context) (generation int64, err error) {
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
	f.Recorder.Wake()
	return f.Generation(), nil
}

// AdoptDatabase saves the database's identity in the feed's record. Positions and cursors remain valid. It is for a
// database that has moved with all its commits: a planned failover, an upgrade, a new server id. It returns whether
// the identity was another one. A sequence feed needs nothing: its terms tell what was lost.
func (f *Identity) AdoptDatabase(ctx context.Context) (changed bool, err error) {
	if err := f.Reload(ctx); err != nil {
		return false, err
	}
	identity, err := f.Store.Dialect.Identity(ctx, f.Store.On(), f.Store.Names)
	if err != nil {
		return false, f.Fail("read the identity of its database", err)
	}
	if f.Record.Load().Identity == identity || f.DialectFeed().ULIDs == nil {
		return false, nil
	}
	if err := f.setIdentity(ctx, identity, false); err != nil {
		return false, err
	}
	f.Recorder.Wake()
	return true, nil
}

// PrintBump returns the script of Bump, or of AdoptDatabase, without a connection. See rowfeed.PrintBump.
func PrintBump(d dialect.Dialect, names dialect.Names, feed string, adopt bool) []dialect.Step {
	steps := bumpSteps(d, names, feed, nil)
	if adopt {
		b := dialect.NewScript(d)
		steps = []dialect.Step{{Note: "the next publisher saves the identity of its database",
			SQL: "UPDATE " + dialect.Qualified(d, names.Table("feeds")) +
				" SET database_identity = NULL WHERE name = " + b.Arg(feed)}}
	}
	first, last := d.Frame()
	return append(append(first, steps...), last...)
}

// bumpSteps lock the sequence's row first. A publisher holds this lock until its commit, so the bump waits for it.
func bumpSteps(d dialect.Dialect, names dialect.Names, feed string, identity any) []dialect.Step {
	seconds := "ROUND(" + d.Now() + " / 1000000)"
	b := dialect.NewScript(d)
	lock := "UPDATE " + dialect.Qualified(d, names.Table("sequences")) + " SET version = version + 1 WHERE name = " +
		b.Arg(feed)
	b = dialect.NewScript(d)
	return []dialect.Step{
		{Note: "wait for a publisher that is in a pass", SQL: lock},
		{Note: "from now on cursors of the former generation are refused",
			SQL: "UPDATE " + dialect.Qualified(d, names.Table("feeds")) +
				"\nSET generation = CASE WHEN " + seconds + " > generation + 1 THEN " + seconds +
				" ELSE generation + 1 END,\n  database_identity = " + b.Arg(identity) +
				"\nWHERE name = " + b.Arg(feed)},
	}
}

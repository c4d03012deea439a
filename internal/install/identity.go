package install

import (
	"context"
	"errors"

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
// It saves the database's identity if the feed's record has none. It refuses no sequence feed, because terms show which
// readers have seen lost positions.
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
		set := "set_identity"
		if onlyUnknown {
			set = "set_unknown_identity"
		}
		_, err := f.Store.Exec(ctx, tx, statements, set,
			dialect.Args{"identity": store.OrNull(identity), "feed": f.Name})
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
		if errors.Is(err, store.ErrNoRows) && f.Record.Load().PublishedElsewhere {
			err = nil // no pass of rowfeed can be under way
		}
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
// database that has moved with all its commits: a planned failover, an upgrade, a new server id. It returns whether the
// identity was another one. It changes nothing in a sequence feed, because terms show which readers have seen lost
// positions.
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
func PrintBump(d *dialect.Dialect, names dialect.Names, feed string, adopt bool) []dialect.Step {
	steps := bumpSteps(d, names, feed, nil)
	if adopt {
		steps = []dialect.Step{statements.Step(d.Syntax, &dialect.Feed{Name: feed, Names: names}, "forget_identity",
			nil)}
	}
	first, last := d.Frame()
	return append(append(first, steps...), last...)
}

// bumpSteps lock the sequence's row first.
func bumpSteps(d *dialect.Dialect, names dialect.Names, feed string, identity any) []dialect.Step {
	f := &dialect.Feed{Name: feed, Names: names}
	return []dialect.Step{statements.Step(d.Syntax, f, "bump_sequence", nil),
		statements.Step(d.Syntax, f, "bump", dialect.Args{"identity": identity})}
}

package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
)

// Feed answers the feed of that name, or an error with code UnknownFeed.
func (db *DB) Feed(ctx context.Context, name string) (*Feed, error) {
	if err := feedtype.ValidName(name); err != nil {
		return nil, err
	}
	db.mu.Lock()
	f := db.feeds[name]
	db.mu.Unlock()
	if f != nil && f.catalog.Record.Load().Unreadable == nil {
		return f, nil
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	if f == nil {
		f = db.newFeed(name)
	}
	if err := f.catalog.Reload(ctx); err != nil {
		return nil, err
	}
	return db.remember(f), nil
}

// remember answers the one Feed of its name that this DB has: f, or one that is known already.
func (db *DB) remember(f *Feed) *Feed {
	db.mu.Lock()
	defer db.mu.Unlock()
	if known := db.feeds[f.catalog.Name]; known != nil {
		return known
	}
	db.feeds[f.catalog.Name] = f
	return f
}

// Feeds answers all feeds, ordered by name. One whose record this version cannot read (it is
// of a mode that came later, or damaged) is among them, and refuses by itself what it is asked.
func (db *DB) Feeds(ctx context.Context) ([]*Feed, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	records, err := catalog.Load(ctx, db.store, db.store.On(), "")
	if err != nil {
		return nil, db.store.Fail("feeds", "list", err)
	}
	var all []*Feed
	for _, r := range records {
		if r.Gone() {
			continue
		}
		f := db.newFeed(r.Name)
		f.catalog.Record.Store(r)
		f = db.remember(f)
		f.catalog.Record.Store(r)
		all = append(all, f)
	}
	return all, nil
}

func (db *DB) forgetFeeds() {
	db.mu.Lock()
	defer db.mu.Unlock()
	clear(db.feeds)
}

// AddFeed makes a feed of a table, also of a live one with rows: triggers first,
// then the keys of the rows as changes, in batches that go on where they broke off
// when AddFeed is called again. With the same spec a second call changes nothing;
// with another one it fails with code Conflict and names the differences. progress
// may be nil; it is told the number of rows recorded so far by this call, or, where keys
// keep their positions and get data shards ([FeedSpec.Adopt], or a feed that is being
// divided anew), the number of keys looked at.
func (db *DB) AddFeed(ctx context.Context, spec FeedSpec, progress func(rows int64)) (*Feed, error) {
	if err := (&install.Database{Store: db.store}).Create(ctx, spec); err != nil {
		return nil, err
	}
	f, err := db.Feed(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	if err := f.catalog.Reload(ctx); err != nil {
		return nil, err
	}
	if err := f.installed.Complete(ctx, progress); err != nil {
		return nil, err
	}
	f.Wake()
	return f, nil
}

// DropFeed removes a feed's triggers and tables; the source table stays as it was
// before AddFeed. The feed's name and generation are kept, so that a feed of the
// same name refuses old cursors. Dropping it again does nothing.
func (db *DB) DropFeed(ctx context.Context, name string) error {
	err := (&install.Database{Store: db.store}).Drop(ctx, name)
	db.mu.Lock()
	delete(db.feeds, name)
	db.mu.Unlock()
	return err
}

// Migrate creates rowfeed's tables or brings them to the newest version, and
// answers the versions applied. Several callers at once are safe: they take turns.
func (db *DB) Migrate(ctx context.Context) (applied []int, err error) {
	return (&install.Schema{Store: db.store}).Migrate(ctx)
}

// MigrateDown removes rowfeed's own tables. It refuses while feeds exist.
func (db *DB) MigrateDown(ctx context.Context) error {
	defer db.forgetFeeds()
	return (&install.Schema{Store: db.store}).MigrateDown(ctx)
}

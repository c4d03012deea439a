package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
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

func (db *DB) newFeed(name string) *Feed {
	h := &catalog.Feed{Name: name, Store: db.store}
	h.Gone = func() {
		db.mu.Lock()
		delete(db.feeds, name)
		db.mu.Unlock()
	}
	return &Feed{db: db, name: name, catalog: h, wake: make(chan struct{}, 1), history: history.New(h, db.flushes, db.cfg.Replica, db.cfg.UnsafeDurability)}
}

// remember answers the one Feed of its name that this DB has: f, or one that is known already.
func (db *DB) remember(f *Feed) *Feed {
	db.mu.Lock()
	defer db.mu.Unlock()
	if known := db.feeds[f.name]; known != nil {
		return known
	}
	db.feeds[f.name] = f
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

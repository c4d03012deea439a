package rowfeed

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// DB is rowfeed on one database. It is safe for concurrent use.
type DB struct {
	store     *store.Store
	consumers *consume.Consumers
	cfg       Config
	watch     *watch.Watcher
	poller    *watch.Poller

	flushes *history.Flushes

	mu    sync.Mutex
	feeds map[string]*Feed
}

// Open prepares rowfeed on a pool that the caller has opened and will close. The pool needs at least two connections.
// cfg may be nil. Open creates nothing in the database: see Migrate.
func Open(ctx context.Context, db *sql.DB, d *dialect.Dialect, cfg *Config) (*DB, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	full := cfg.withDefaults()
	if err := full.validate(); err != nil {
		return nil, err
	}
	s := &store.Store{SQL: db, Dialect: d, Names: dialect.Names{Schema: full.Schema, Prefix: full.Prefix},
		Observer: full.Observer, Tracer: full.Tracer,
		Quotas:  store.NewQuotas(db.Stats().MaxOpenConnections, d),
		Replica: full.Replica, NoPublish: full.NoPublish, UnsafeDurability: full.UnsafeDurability}
	rf := &DB{store: s, flushes: &history.Flushes{Store: s}, cfg: full, feeds: make(map[string]*Feed),
		consumers: &consume.Consumers{Store: s, Tracer: full.Tracer}}
	rf.poller = &watch.Poller{Store: s, Feeds: waitingFeeds{rf}}
	rf.watch = watch.New(full.WatchPoll, full.IdlePoll, rf.poller.Poll, read.NewPages)
	if err := db.PingContext(ctx); err != nil {
		return nil, s.Fail("database", "cannot be reached", err)
	}
	var err error
	if s.Home, err = d.CurrentSchema(ctx, s.On()); err != nil && s.Names.Schema == "" {
		return nil, s.Fail("database", "find the current schema", err)
	}
	if s.Names.Schema == "" {
		s.Names.Schema = s.Home
	}
	return rf, nil
}

// Feed returns the feed of that name, or an error with the code UnknownFeed.
func (db *DB) Feed(ctx context.Context, name string) (*Feed, error) {
	if err := feedtype.ValidName(name); err != nil {
		return nil, err
	}
	f := db.known(name)
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

// Feeds returns all feeds, ordered by name. They include feeds whose record this version cannot read, because it was
// written by a later version or is damaged. Every request to such a feed is refused.
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
		f := db.known(r.Name)
		if f == nil {
			f = db.newFeed(r.Name)
			f.catalog.SetRecord(r)
			f = db.remember(f)
		}
		f.catalog.SetRecord(r)
		all = append(all, f)
	}
	return all, nil
}

// known returns the Feed of that name that this DB already has, or nil.
func (db *DB) known(name string) *Feed {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.feeds[name]
}

// allKnown returns the feeds that this DB has been asked for.
func (db *DB) allKnown() []*Feed {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Collect(maps.Values(db.feeds))
}

// remember returns the only Feed of its name of this DB: the one that it already has, or else f.
func (db *DB) remember(f *Feed) *Feed {
	db.mu.Lock()
	defer db.mu.Unlock()
	if known := db.feeds[f.Name()]; known != nil {
		return known
	}
	db.feeds[f.Name()] = f
	return f
}

func (db *DB) forget(name string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.feeds, name)
}

// AddFeed creates a feed of a table. The table may have rows, and may be written to meanwhile. AddFeed creates the
// triggers first. Then it records the keys of the rows as changes, in batches. If it is interrupted, a second call
// continues. A second call with the same spec changes nothing. With another spec it fails with the code Conflict and
// names the differences.
//
// progress may be nil. It is called with the number of rows that this call has recorded so far. If keys keep their
// positions and get data shards ([FeedSpec.Adopt], or a feed whose data shards are being changed), it is called with
// the number of keys processed.
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
	if err := f.installed.Filler.Complete(ctx, progress); err != nil {
		return nil, err
	}
	f.Wake()
	return f, nil
}

// PreviewAdd returns what AddFeed would do now, or the error with which it would refuse the spec. It changes nothing.
// It needs the rights of AddFeed: it does the first steps in a transaction that it rolls back.
func (db *DB) PreviewAdd(ctx context.Context, spec FeedSpec) (*AddPlan, error) {
	return (&install.Database{Store: db.store}).PreviewAdd(ctx, spec)
}

// DropFeed removes a feed's triggers and tables. The source table is then as it was before AddFeed. The feed's name
// and generation are kept, so that a later feed of the same name refuses old cursors. If the feed adopted the positions
// in its table's rows, they stay there, and a later feed that adopts them continues this one as far as PreviewDrop
// says. A second call does nothing.
func (db *DB) DropFeed(ctx context.Context, name string) error {
	_, err := (&install.Database{Store: db.store}).Drop(ctx, name, false)
	db.forget(name)
	return err
}

// HandBackFeed is DropFeed for a feed that was adopted, and returns what it has written. It writes the feed's highest
// position into the row of FeedSpec.AdoptSequence, and the positions of consumers into their rows of
// FeedSpec.AdoptCursors, so that the former publisher and readers go on. Rows that were republished or unpublished get
// NULL as their position. HandBackFeed can be repeated, also after DropFeed.
func (db *DB) HandBackFeed(ctx context.Context, name string) (*feedtype.DropPlan, error) {
	plan, err := (&install.Database{Store: db.store}).Drop(ctx, name, true)
	db.forget(name)
	return plan, err
}

// PreviewDrop returns what DropFeed, or with handBack HandBackFeed, would do now. It changes nothing.
func (db *DB) PreviewDrop(ctx context.Context, name string, handBack bool) (*feedtype.DropPlan, error) {
	return (&install.Database{Store: db.store}).PreviewDrop(ctx, name, handBack)
}

// Migrate creates rowfeed's tables or upgrades them to the newest version. It returns the versions that it applied.
// Several callers at the same time are safe: they take turns.
func (db *DB) Migrate(ctx context.Context) (applied []int, err error) {
	return (&install.Schema{Store: db.store}).Migrate(ctx)
}

// MigrateDown removes rowfeed's own tables. It is refused while feeds exist.
func (db *DB) MigrateDown(ctx context.Context) error {
	err := (&install.Schema{Store: db.store}).MigrateDown(ctx)
	db.mu.Lock()
	defer db.mu.Unlock()
	clear(db.feeds)
	return err
}

package admin

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Admin is what operators do with the feeds of one database. It is safe for concurrent use.
type Admin struct {
	store     *store.Store
	consumers *consume.Consumers
	feed      func(ctx context.Context, name string) (Source, error)
	feeds     func(context.Context) ([]Source, error)
	waiting   func() map[string]int
}

// Database is what an Admin works on. Applications get theirs from rowfeed.DB.Admin.
type Database struct {
	SQL      *sql.DB
	Dialect  dialect.Dialect
	Names    dialect.Names
	Observer *feedtype.Observer
	// Feed answers a feed by its name, or an error with code UnknownFeed; Feeds answers all of them.
	Feed  func(ctx context.Context, name string) (Source, error)
	Feeds func(context.Context) ([]Source, error)
	// Waiting counts those who wait for an entry in this process, by feed.
	Waiting func() map[string]int
}

// Source is what an Admin needs of a feed for consumers and tokens.
type Source interface {
	feedtype.Source
	// ShardsAreFeeds tells whether each shard is a feed by itself.
	ShardsAreFeeds() bool
	// Locate answers the cursor that a request for a place means now, and the feed's refusal where it would refuse
	// that place.
	Locate(ctx context.Context, to feedtype.Cursor, s feedtype.Shards) (feedtype.Cursor, error)
	// Lag completes Behind and BehindSeconds of cursors.
	Lag(ctx context.Context, cursors []*ConsumerStatus) error
}

// New makes an Admin; nothing is asked of the database yet.
func New(db Database) *Admin {
	s := &store.Store{SQL: db.SQL, Dialect: db.Dialect, Names: db.Names, Observer: db.Observer}
	return &Admin{store: s, consumers: &consume.Consumers{Store: s}, feed: db.Feed, feeds: db.Feeds, waiting: db.Waiting}
}

// Readers counts those who wait for an entry at this moment, in this process (Request.Wait), by the feed's name. Feeds for
// whose entries nobody waits are left out.
func (db *Admin) Readers() map[string]int { return db.waiting() }

// Migrations lists every version of rowfeed's own tables and whether the database has it.
func (db *Admin) Migrations(ctx context.Context) ([]feedtype.MigrationStatus, error) {
	return (&install.Schema{Store: db.store}).Migrations(ctx)
}

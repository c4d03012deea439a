package admin

import (
	"context"
	"database/sql"
	_ "embed"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed admin.sql
var file string

var statements = dialect.NewStatements(file)

// Admin has the operations on the feeds of one database. It is safe for concurrent use.
type Admin struct {
	store     *store.Store
	consumers *consume.Consumers
	feed      func(ctx context.Context, name string) (Source, error)
	feeds     func(context.Context) ([]Source, error)
	waiting   func() map[string]int
	quotas    func() []ConnectionQuota
}

// Database is what New needs. Applications do not need it: they call rowfeed.DB.Admin.
type Database struct {
	SQL      *sql.DB
	Dialect  *dialect.Dialect
	Names    dialect.Names
	Observer *feedtype.Observer
	// Feed returns a feed by its name, or an error with the code UnknownFeed. Feeds returns all feeds.
	Feed  func(ctx context.Context, name string) (Source, error)
	Feeds func(context.Context) ([]Source, error)
	// Waiting counts the requests of this process that wait for an entry, by feed.
	Waiting func() map[string]int
	// Quotas returns how many connections this process uses for each kind of work that has a quota.
	Quotas func() []ConnectionQuota
}

// Source is the part of a feed that consumers and tokens need.
type Source interface {
	feedtype.Source
	// ShardsAreFeeds tells whether each shard is a feed by itself, as with ULIDs.
	ShardsAreFeeds() bool
	// Locate resolves a cursor, which may be Now or At a time, to the cursor that a request with it would get now. The
	// error is the one with which the feed would refuse the request.
	Locate(ctx context.Context, to feedtype.Cursor, s feedtype.Shards) (feedtype.Cursor, error)
	// Lag sets Behind and BehindSeconds of cursors.
	Lag(ctx context.Context, cursors []*ConsumerStatus) error
}

// New makes an Admin. It sends nothing to the database.
func New(db Database) *Admin {
	s := &store.Store{SQL: db.SQL, Dialect: db.Dialect, Names: db.Names, Observer: db.Observer}
	return &Admin{
		store:     s,
		consumers: &consume.Consumers{Store: s},
		feed:      db.Feed,
		feeds:     db.Feeds,
		waiting:   db.Waiting,
		quotas:    db.Quotas,
	}
}

// Readers counts the requests of this process that wait for an entry now (Request.Wait), by the feed's name. Feeds
// without such requests are left out.
func (db *Admin) Readers() map[string]int { return db.waiting() }

// ConnectionQuota is the number of connections that one kind of work of this process may use.
type ConnectionQuota struct {
	Work         string // "pages" or "publishing"
	Limit, InUse int    // connections
	// Refused counts the calls that were refused, without a connection, because a table stayed locked.
	Refused int64
}

// Quotas returns how many connections this process uses now for reading pages and for publishing.
func (db *Admin) Quotas() []ConnectionQuota { return db.quotas() }

// Migrations lists every schema version of rowfeed's own tables, and whether the database has it.
func (db *Admin) Migrations(ctx context.Context) ([]feedtype.MigrationStatus, error) {
	return (&install.Schema{Store: db.store}).Migrations(ctx)
}

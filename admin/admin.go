package admin

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Admin is what operators do with the feeds of one database. It is safe for concurrent use.
type Admin struct {
	store   *store.Store
	source  func(ctx context.Context, name string) (feedtype.Source, error)
	sources func(context.Context) ([]feedtype.Source, error)
}

// Database is what an Admin works on. Applications get theirs from rowfeed.DB.Admin.
type Database struct {
	SQL      *sql.DB
	Dialect  dialect.Dialect
	Names    dialect.Names
	Observer *feedtype.Observer
	// Source answers a feed by its name, or an error with code UnknownFeed; Sources answers all of them.
	Source  func(ctx context.Context, name string) (feedtype.Source, error)
	Sources func(context.Context) ([]feedtype.Source, error)
}

// New makes an Admin; nothing is asked of the database yet.
func New(db Database) *Admin {
	s := &store.Store{SQL: db.SQL, Dialect: db.Dialect, Names: db.Names, Observer: db.Observer}
	return &Admin{store: s, source: db.Source, sources: db.Sources}
}

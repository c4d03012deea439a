package cli

import (
	"context"
	"log/slog"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
)

// Session is a command's open database, with its configuration file and log.
type Session struct {
	*rowfeed.DB
	File  *config.File
	Log   *slog.Logger
	Close func() error
}

// Connect opens the database. A SQLite file must exist.
func (a *App) Connect(ctx context.Context) (*Session, error) {
	return a.ConnectTo(ctx, open.Options{MustExist: true})
}

// ConnectTo opens the database with options, and begins the entry of the audit log.
func (a *App) ConnectTo(ctx context.Context, o open.Options) (*Session, error) {
	cfg, file, err := a.Settings()
	if err != nil {
		return nil, err
	}
	log := a.Logger(file, "info")
	cfg.Observer = a.Observer(log)
	pool, d, err := open.Open(ctx, a.URL, o)
	if err != nil {
		return nil, err
	}
	db, err := rowfeed.Open(ctx, pool, d, &cfg)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &Session{DB: db, File: file, Log: log, Close: pool.Close}
	a.beginAct(ctx, s)
	return s, nil
}

// WithFeed opens the database and calls fn with one of its feeds.
func (a *App) WithFeed(ctx context.Context, name string, fn func(*Session, *rowfeed.Feed) error) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := s.Feed(ctx, name)
	if err != nil {
		return err
	}
	return fn(s, f)
}

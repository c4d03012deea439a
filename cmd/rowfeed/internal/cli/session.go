package cli

import (
	"context"
	"log/slog"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
)

// session is rowfeed on an open database.
type Session struct {
	*rowfeed.DB
	File  *config.File
	Log   *slog.Logger
	Close func() error
}

// connect opens the database, which must be there already.
func (a *App) Connect(ctx context.Context) (*Session, error) {
	return a.ConnectTo(ctx, open.Options{MustExist: true})
}

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

// withFeed runs fn with a feed of the database.
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

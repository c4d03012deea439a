package main

import (
	"context"
	"log/slog"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
)

// session is rowfeed on an open database.
type session struct {
	*rowfeed.DB
	file *config.File
	log  *slog.Logger
	done func() error
}

// connect opens the database, which must be there already.
func (a *app) connect(ctx context.Context) (*session, error) {
	return a.connectTo(ctx, open.Options{MustExist: true})
}

func (a *app) connectTo(ctx context.Context, o open.Options) (*session, error) {
	cfg, file, err := a.settings()
	if err != nil {
		return nil, err
	}
	log := a.logger(file, "info")
	cfg.Observer = a.observer(log)
	pool, d, err := open.Open(ctx, a.url, o)
	if err != nil {
		return nil, err
	}
	db, err := rowfeed.Open(ctx, pool, d, &cfg)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &session{DB: db, file: file, log: log, done: pool.Close}
	a.beginAct(ctx, s)
	return s, nil
}

// withFeed runs fn with a feed of the database.
func (a *app) withFeed(ctx context.Context, name string, fn func(*session, *rowfeed.Feed) error) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	f, err := s.Feed(ctx, name)
	if err != nil {
		return err
	}
	return fn(s, f)
}

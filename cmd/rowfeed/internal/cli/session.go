package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/nearest"
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

// Feed is DB.Feed. The error for an unknown feed suggests a feed with a similar name.
func (s *Session) Feed(ctx context.Context, name string) (*rowfeed.Feed, error) {
	f, err := s.DB.Feed(ctx, name)
	if !errors.Is(err, rowfeed.UnknownFeed) {
		return f, err
	}
	var names []string
	all, _ := s.Feeds(ctx) // without names there is no suggestion
	for _, f := range all {
		names = append(names, f.Name())
	}
	return nil, suggest(err, name, names)
}

// KnownConsumer adds the name of a similar consumer to an error for an unknown consumer.
func (s *Session) KnownConsumer(ctx context.Context, err error, name string) error {
	if !errors.Is(err, rowfeed.UnknownConsumer) {
		return err
	}
	var names []string
	all, _ := s.Admin().Consumers(ctx, rowfeed.ConsumerID{}) // without names there is no suggestion
	for _, c := range all {
		names = append(names, c.Consumer)
	}
	return suggest(err, name, names)
}

// suggest puts the name that is most similar before the next step of an error.
func suggest(err error, wrong string, names []string) error {
	var e *rowfeed.Error
	near := nearest.Name(wrong, names)
	if near == "" || !errors.As(err, &e) {
		return err
	}
	told := *e
	told.Next = fmt.Sprintf("write %q if you mean that one; %s", near, e.Next)
	return &told
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

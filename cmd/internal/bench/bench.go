// Package bench is `rowfeed bench`: it measures, on a user's own database, what rowfeed
// does there. It needs nobody's tables: it makes a set of its own, rowfeed's and those
// that it writes to, under a prefix that nothing else in the database has, and removes the
// set whatever happens. Feeds, consumers and tables of the user's are not touched, nor does a
// `rowfeed serve` that runs on them see any of it.
package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/tap"
)

// The measures, in the order in which they run.
const (
	Writers = "writers"
	Drain   = "drain"
	Pages   = "pages"
	Consume = "consume"
	Latency = "latency"
	Idle    = "idle"
)

// Measures are all of them.
var Measures = []string{Writers, Drain, Pages, Consume, Latency, Idle}

// Config says what to measure, and with how much.
type Config struct {
	// URL is the database, which must be there.
	URL string
	// DB holds the library's settings. Its prefix is not looked at: a run has its own.
	DB rowfeed.Config
	// Measures to take; none for all.
	Measures []string
	// Rows of each table, Payload bytes in each.
	Rows, Payload int
	// Writers at work at the same time, for Window in each repetition.
	Writers     int
	Window      time.Duration
	Repetitions int
	// Rate of the commits whose latency is measured, per second.
	Rate float64
	// Keep leaves the tables for whoever wants to look at them.
	Keep bool
	// Planned, where it is set, is told what is about to be made, before anything is; its
	// error ends the run.
	Planned func(Plan) error
	// Doing, where it is set, is told what begins now, and how much of the run is behind it
	// (0 to 1, by the times of Plan).
	Doing func(what string, behind float64)

	tap *tap.Hooks // of the run's own pool; for tests
}

// run is one run on a database.
type run struct {
	Config
	*site
	db     *rowfeed.DB
	report *Report

	positions   atomic.Int64  // given so far
	filled      bool          // the table that drain, pages and consume share
	done, whole time.Duration // of the plan's time
}

// Run measures, and removes what it has made. An error of the removal is a *LeftError,
// joined with whatever ended the run.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s, err := openSite(ctx, cfg.URL, cfg.DB.Schema, cfg.tap)
	if err != nil {
		return nil, err
	}
	defer s.pool.Close()
	if err := s.refuse(ctx, cfg.DB.UnsafeDurability); err != nil {
		return nil, err
	}
	r := &run{Config: cfg, site: s, whole: cfg.duration()}
	if r.report, err = r.begin(ctx); err != nil {
		return nil, err
	}
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	if cfg.Planned != nil {
		if err := cfg.Planned(r.plan()); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := r.stay(ctx, r.measure); err != nil {
		return nil, err
	}
	r.report.Rows.Positions = int(r.positions.Load())
	r.report.TookSeconds = seconds(time.Since(began))
	return r.report, nil
}

// stay makes the set, runs work, and removes the set.
func (r *run) stay(ctx context.Context, work func(context.Context) error) (err error) {
	// What a canceled context has begun must be removed all the same.
	defer func() {
		if r.Keep {
			r.report.Kept = r.prefix
			return
		}
		r.doing("removing its tables", 0)
		err = errors.Join(err, r.remove(context.WithoutCancel(ctx)))
	}()
	if err := r.claim(ctx); err != nil {
		return err
	}
	silent := r.sayAlive(ctx)
	defer silent()
	return work(ctx)
}

// measure takes the measures, one after the other.
func (r *run) measure(ctx context.Context) (err error) {
	if r.db, err = r.library(ctx, r.pool, rowfeed.Config{}); err != nil {
		return err
	}
	r.doing("making rowfeed's tables", 0)
	if _, err := r.db.Migrate(ctx); err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		take func(context.Context) error
	}{{Writers, r.writers}, {Drain, r.drain}, {Pages, r.pages}, {Consume, r.consume}, {Latency, r.latency}, {Idle, r.idle}} {
		if !r.takes(m.name) {
			continue
		}
		if err := m.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

// library is rowfeed on the run's tables; of cfg those settings are taken that the measures
// set.
func (r *run) library(ctx context.Context, pool *sql.DB, cfg rowfeed.Config) (*rowfeed.DB, error) {
	cfg.Prefix, cfg.Schema, cfg.UnsafeDurability = r.prefix, r.schema, r.DB.UnsafeDurability
	var told func(rowfeed.PublishEvent)
	if cfg.Observer != nil {
		told = cfg.Observer.Published
	}
	cfg.Observer = &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) {
		r.positions.Add(int64(e.Keys))
		if told != nil {
			told(e)
		}
	}}
	return rowfeed.Open(ctx, pool, r.d, &cfg)
}

// follow makes a feed of one of the run's tables.
func (r *run) follow(
	ctx context.Context,
	db *rowfeed.DB,
	feed, table string,
	capture feedtype.Capture,
) (*rowfeed.Feed, error) {
	return db.AddFeed(ctx, rowfeed.FeedSpec{Name: feed, Table: r.given(table), Capture: capture}, nil)
}

// doing says what begins, and what it is thought to take.
func (r *run) doing(what string, cost time.Duration) {
	if r.Doing != nil {
		r.Doing(what, min(float64(r.done)/float64(max(r.whole, 1)), 1))
	}
	r.done += cost
}

// openSite opens the database.
func openSite(ctx context.Context, url, schema string, hooks *tap.Hooks) (*site, error) {
	pool, d, err := open.Open(ctx, url, open.Options{MustExist: true, Tap: hooks})
	if err != nil {
		return nil, err
	}
	s := &site{url: url, pool: pool, d: d, flavour: flavours[d.Name()], schema: schema}
	if s.schema == "" {
		if s.schema, err = d.CurrentSchema(ctx, dialect.On(pool)); err != nil {
			pool.Close()
			return nil, s.fail("find the current schema", err)
		}
	}
	return s, nil
}

// lost is the error of figures that do not add up.
func lost(format string, args ...any) error {
	return &rowfeed.Error{Code: rowfeed.Failed, Object: "bench", Cause: fmt.Sprintf(format, args...),
		Next: "look whether anybody else has written to the run's tables; if not, report this as a bug of rowfeed"}
}

// Package demo is `rowfeed demo`: rowfeed on an embedded database, with writers that change a table all the time. It
// needs no server and no configuration, and leaves nothing behind.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
)

// Feed is the name of the demo's feed, and of its table.
const Feed = "kv"

// Config says what to run.
type Config struct {
	// URL is the database. If empty, the demo uses a SQLite file in a temporary folder, which it removes at the end.
	URL string
	// DB holds rowfeed's own settings.
	DB rowfeed.Config
	// Rate is the number of writes per second.
	Rate float64
	// Duration ends the demo. 0 means that it runs until the context ends.
	Duration time.Duration
	// Out gets the messages.
	Out io.Writer
	// Serve publishes and serves the feeds of a DB until the context ends. It passes its address to ready.
	Serve func(ctx context.Context, db *rowfeed.DB, ready func(address string)) error
	// Wrote, if not nil, is called after each write with the number of writes.
	Wrote func(total int64)
}

// Run runs the demo until ctx or Duration ends, and then prints a summary.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.URL == "" {
		folder, err := os.MkdirTemp("", "rowfeed-demo-")
		if err != nil {
			return fmt.Errorf("demo: make a temporary folder: %w. Next: set TMPDIR, or name a database with --db", err)
		}
		defer os.RemoveAll(folder)
		cfg.URL = "sqlite:" + (&url.URL{Path: filepath.Join(folder, "demo.db")}).EscapedPath()
	}
	var published atomic.Int64
	cfg.DB.Observer = rowfeed.Observers(cfg.DB.Observer,
		&rowfeed.Observer{Published: func(e rowfeed.PublishEvent) { published.Add(int64(e.Keys)) }})
	pool, d, err := open.Open(ctx, cfg.URL, open.Options{})
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := rowfeed.Open(ctx, pool, d, &cfg.DB)
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	w := newWriters(pool, d, cfg)
	if err := w.prepare(ctx, cfg.URL); err != nil {
		return err
	}
	feed, err := db.AddFeed(ctx, rowfeed.FeedSpec{Name: Feed, Table: Feed}, nil)
	if err != nil {
		return err
	}
	return play(ctx, cfg, db, feed, w, &published)
}

// play serves while the writers write.
func play(
	ctx context.Context, cfg Config, db *rowfeed.DB, feed *rowfeed.Feed, w *writers, published *atomic.Int64,
) error {
	// The server ends after the writers, so that it shows their last writes.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	address, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- cfg.Serve(serving, db, func(a string) { address <- a }) }()
	select {
	case err := <-served:
		return orStopped(err)
	case a := <-address:
		if err := intro(cfg, a); err != nil {
			return err
		}
	}
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	if cfg.Duration > 0 {
		writing, stopWriting = context.WithTimeout(writing, cfg.Duration)
		defer stopWriting()
	}
	started := time.Now()
	wrote := make(chan error, 1)
	go func() { wrote <- w.run(writing) }()
	var err error
	select {
	case err = <-wrote:
	case err = <-served:
		stopWriting()
		<-wrote
		return orStopped(err)
	}
	if err == nil {
		err = finish(serving, cfg, feed, w, published, time.Since(started))
	}
	stopServing()
	return errors.Join(err, <-served)
}

func orStopped(err error) error {
	if err == nil {
		err = errors.New("demo: the server stopped by itself")
	}
	return err
}

func intro(cfg Config, address string) error {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	until := "Ctrl-C ends it"
	if cfg.Duration > 0 {
		until = fmt.Sprintf("it ends after %s, or with Ctrl-C", cfg.Duration)
	}
	_, err = fmt.Fprintf(cfg.Out, `rowfeed demo
  database  %[2]s
  table     kv(id, ns, k, v), followed by feed kv; its triggers record every write
  writers   %[3]d of them insert, update, delete, replace and change keys, %[4]g writes/s
  console   http://%[1]s/

Try:
  curl 'http://%[1]s/_feeds'
  curl 'http://%[1]s/_feeds/fetch/kv?after=&limit=5'
  curl -H 'Accept: application/x-ndjson' 'http://%[1]s/_feeds/fetch/kv?after=now&wait=10s'
  curl -N 'http://%[1]s/_feeds/stream/kv?after=now'
  rowfeed tail kv --after now --url http://%[1]s
  rowfeed status kv --db '%[2]s'

%[5]s.
`, address, open.Redact(cfg.URL), writerCount, cfg.Rate, strings.ToUpper(until[:1])+until[1:])
	return err
}

// finish publishes the last writes, and compares feed and table.
func finish(
	ctx context.Context, cfg Config, feed *rowfeed.Feed, w *writers, published *atomic.Int64, took time.Duration,
) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := feed.Publish(ctx); err != nil {
		return err
	}
	findings, err := feed.Admin().Check(ctx)
	if err != nil {
		return err
	}
	verdict := "feed and table agree"
	if len(findings) > 0 {
		verdict = fmt.Sprintf("rowfeed check finds %d problems; the first: %s", len(findings), findings[0].Problem)
	}
	fmt.Fprintf(cfg.Out, "\nIn %s: %s; %d positions published; %s.\n", took.Round(100*time.Millisecond), w.summary(),
		published.Load(), verdict)
	if len(findings) > 0 {
		return errors.New("demo: the feed is not in order. Next: report this as a bug of rowfeed")
	}
	return nil
}

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// lane is one way to write, measured in turns with the others.
type lane struct {
	name      string
	table     string
	capture   feedtype.Capture // empty: no feed
	publisher bool             // a publisher runs concurrently with the writers
	held      bool             // a transaction that has written to the table stays open the whole time
}

var lanes = []lane{
	{name: "no capture", table: "plain"},
	{name: "trigger", table: "by_trigger", capture: feedtype.CaptureTrigger},
	{name: "app", table: "by_app", capture: feedtype.CaptureApp},
	{name: "column", table: "by_column", capture: feedtype.CaptureColumn},
	{name: "trigger, publisher running", table: "by_trigger", capture: feedtype.CaptureTrigger, publisher: true},
	{name: "app, publisher running", table: "by_app", capture: feedtype.CaptureApp, publisher: true},
	{name: "column, publisher running", table: "by_column", capture: feedtype.CaptureColumn, publisher: true},
	{
		name:      "trigger, publisher, one transaction open",
		table:     "by_trigger",
		capture:   feedtype.CaptureTrigger,
		publisher: true,
		held:      true,
	},
	{
		name:      "column, publisher, one transaction open",
		table:     "by_column",
		capture:   feedtype.CaptureColumn,
		publisher: true,
		held:      true,
	},
}

// TestWriters counts the commits of 8 writers. Each transaction is BEGIN, one INSERT or UPDATE by key, and COMMIT. With
// capture "app" it also records its key. With capture "column" the UPDATE sets the row's position to NULL.
func TestWriters(t *testing.T) {
	out := table{
		Title: fmt.Sprintf("%d writers, commits/s", writerCount),
		Head: []string{"database", "write", "capture", "commits/s",
			"÷ no capture", "published/s", "longest write, ms", "longest pass, ms", "longest silence, ms", "errors"},
	}
	each(t, func(b *bed) {
		w := b.writers()
		results := figures[string]{}
		for rep := range *reps {
			for i := range lanes {
				for _, write := range []string{"INSERT", "UPDATE"} {
					l := lanes[(i+2*rep)%len(lanes)]
					if l.held && !b.HasServer() {
						continue // SQLite has one writer at a time: the holder stops all others
					}
					r := w.run(l, write)
					for name, v := range map[string]float64{
						"commits": r.commits, "published": r.published, "errors": float64(r.errors),
						"write": milliseconds(r.longestWrite), "pass": milliseconds(r.longestPass),
						"silence": milliseconds(r.longestSilence),
					} {
						results.Add(write+l.name+name, v)
					}
				}
			}
		}
		for _, write := range []string{"INSERT", "UPDATE"} {
			for _, l := range lanes {
				r := func(name string) figure { return results[write+l.name+name] }
				if len(r("commits")) == 0 {
					continue
				}
				cells := []string{b.Engine.Name, write, l.name, count(r("commits").Median()),
					r(
						"commits",
					).Over(results[write+"no capturecommits"]).
						Ratio(),
					"", count(r("write").Median()), "", "", count(r("errors").Max())}
				if l.publisher {
					cells[5], cells[7], cells[8] = count(
						r("published").Median(),
					), count(
						r("pass").Median(),
					), count(
						r("silence").Median(),
					)
				}
				out.Row(cells...)
			}
		}
		w.check()
	})
	out.Print()
}

type writers struct {
	*bed
	pool   *sql.DB
	rows   int64 // in each table at first, for updates
	next   atomic.Int64
	feeds  map[string]*rowfeed.Feed
	insert string

	update, updateColumn string // updateColumn is for capture "column"

	mu         sync.Mutex // of what the observer writes
	published  int
	pass       time.Duration
	lastPassAt time.Time
	silence    time.Duration
}

func (b *bed) writers() *writers {
	rows := scaled(100_000)
	w := &writers{bed: b, rows: int64(rows), feeds: map[string]*rowfeed.Feed{}}
	query := ""
	if b.Family == "mysql" {
		query = "?interpolateParams=true" // one round trip for a statement, as on other databases
	}
	w.pool, _ = b.Open(query)
	w.next.Store(int64(rows))
	db := b.Rowfeed(b.Pool, &rowfeed.Config{Observer: &rowfeed.Observer{
		Published: w.observe,
		Trouble:   func(e rowfeed.TroubleEvent) { b.Errorf("publisher: %v", e.Err) },
		Retried:   func(e rowfeed.RetryEvent) { b.Logf("retried: %+v", e) },
	}})
	for _, l := range lanes {
		if w.feeds[l.table] != nil || l.publisher {
			continue
		}
		b.fill(l.table, rows)
		if l.capture != "" {
			w.feeds[l.table] = b.Feed(db, rowfeed.FeedSpec{Name: l.table, Table: l.table, Capture: l.capture})
			_, err := w.feeds[l.table].Publish(b.Context())
			b.Must(err)
		}
	}
	w.insert = "INSERT INTO %s (id, payload) VALUES (" + b.Dialect.Placeholder(
		1,
	) + ", " + b.Dialect.Placeholder(
		2,
	) + ")"
	w.updateColumn = "UPDATE %s SET feed_sync_id = NULL, payload = " + b.Dialect.Placeholder(
		1,
	) + " WHERE id = " + b.Dialect.Placeholder(
		2,
	)
	w.update = "UPDATE %s SET payload = " + b.Dialect.Placeholder(1) + " WHERE id = " + b.Dialect.Placeholder(2)
	return w
}

func (w *writers) observe(e rowfeed.PublishEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.published += e.Keys
	w.pass = max(w.pass, e.Took)
	w.silence = max(w.silence, now.Sub(w.lastPassAt))
	w.lastPassAt = now
}

type writersResult struct {
	commits, published                        float64 // per second
	errors                                    int64
	longestWrite, longestPass, longestSilence time.Duration
}

// run lets the writers write for one window.
func (w *writers) run(l lane, write string) (r writersResult) {
	w.Helper()
	feed := w.feeds[l.table]
	var release func()
	if l.held {
		release = w.hold(l.table)
	}
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	var running sync.WaitGroup
	if l.publisher {
		running.Go(func() {
			if err := feed.RunPublisher(ctx); err != nil {
				w.Errorf("RunPublisher: %v", err)
			}
		})
	}
	w.mu.Lock()
	w.published, w.pass, w.silence, w.lastPassAt = 0, 0, 0, time.Now()
	w.mu.Unlock()
	var commits, failures atomic.Int64
	var longest [writerCount]time.Duration
	started := time.Now()
	for i := range writerCount {
		running.Go(func() {
			for time.Since(started) < *window {
				before := time.Now()
				if err := w.transaction(l, write); err != nil {
					w.Logf("%s: %v", l.name, err)
					failures.Add(1)
					continue
				}
				commits.Add(1)
				longest[i] = max(longest[i], time.Since(before))
			}
		})
	}
	time.Sleep(time.Until(started.Add(*window)))
	w.mu.Lock()
	r.published, r.longestPass, r.longestSilence = float64(
		w.published,
	)/window.Seconds(), w.pass, max(
		w.silence,
		time.Since(w.lastPassAt),
	)
	w.mu.Unlock()
	cancel()
	running.Wait()
	took := time.Since(started)
	if release != nil {
		release()
	}
	if feed != nil { // the next lane starts without a backlog
		_, err := feed.Publish(w.Context())
		w.Must(err)
	}
	r.commits, r.errors = float64(commits.Load())/min(took, *window+time.Second).Seconds(), failures.Load()
	for _, d := range longest {
		r.longestWrite = max(r.longestWrite, d)
	}
	return r
}

func (w *writers) transaction(l lane, write string) error {
	ctx := w.Context()
	tx, err := w.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	id := 2 + rand.Int64N(w.rows-1) // row 1 is the holder's
	if write == "INSERT" {
		id = w.next.Add(1)
		_, err = tx.ExecContext(ctx, fmt.Sprintf(w.insert, l.table), id, payload)
	} else {
		update := w.update
		if l.capture == feedtype.CaptureColumn {
			update = w.updateColumn
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf(update, l.table), payload[:100+rand.IntN(100)], id)
	}
	if err == nil && l.capture == feedtype.CaptureApp {
		err = w.feeds[l.table].Record(ctx, rowfeed.InTx(tx), rowfeed.Key{id})
	}
	return errors.Join(err, tx.Commit())
}

// hold opens a transaction that writes to the table and leaves it open.
func (w *writers) hold(table string) (release func()) {
	w.Helper()
	tx, err := w.pool.BeginTx(w.Context(), nil)
	w.Must(err)
	_, err = tx.ExecContext(w.Context(), fmt.Sprintf(w.insert, table), w.next.Add(1), payload)
	w.Must(err)
	update := w.update
	if f := w.feeds[table]; f != nil && f.Capture() == feedtype.CaptureColumn {
		update = w.updateColumn
	}
	_, err = tx.ExecContext(w.Context(), fmt.Sprintf(update, table), payload[:50+rand.IntN(50)], int64(1))
	w.Must(err)
	return func() { w.Must(tx.Commit()) }
}

// check fails if a feed and its table differ.
func (w *writers) check() {
	for name, f := range w.feeds {
		findings, err := f.Admin().Check(w.Context())
		w.Must(err)
		if len(findings) > 0 {
			w.Errorf("%s: %v", name, findings)
		}
	}
}

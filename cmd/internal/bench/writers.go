package bench

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// measureWriters counts commits with each kind of capture, in turns. Each transaction inserts a row, or updates a
// row by its key.
func measureWriters(ctx context.Context, w *workspace) ([]WriterFigure, error) {
	pool, err := w.tables.db.writerPool(ctx, w.cfg.Writers)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	all := make([]*writtenTable, len(captures))
	for i, c := range captures {
		if all[i], err = newWrittenTable(ctx, w, c.name, c.capture); err != nil {
			return nil, err
		}
	}
	commits, longest, retries := map[string][]float64{}, map[string]time.Duration{}, map[string]int64{}
	for rep := range w.cfg.Repetitions {
		for i := range all {
			for _, write := range writes {
				t := all[(i+rep)%len(all)] // each repetition begins with another table
				step := fmt.Sprintf("writers: capture %s, %s, %d of %d", t.name, write, rep+1, w.cfg.Repetitions)
				w.progress.begin(step, w.cfg.windowCost())
				outcome, err := t.writeFor(ctx, w.cfg, pool, write)
				if err != nil {
					return nil, err
				}
				name := write + t.name
				commits[name] = append(commits[name], perSecond(outcome.commits, w.cfg.Window))
				longest[name] = max(longest[name], outcome.longest)
				retries[name] += outcome.retries
			}
		}
	}
	figures := []WriterFigure{}
	for _, write := range writes {
		for _, t := range all {
			name := write + t.name
			ratios := Over(commits[name], commits[write+"none"])
			figures = append(figures, WriterFigure{
				Write: write, Capture: t.name, Commits: rounded(Median(commits[name]), 1),
				Ratio: rounded(Median(ratios), 3), RatioLow: rounded(slices.Min(ratios), 3),
				RatioHigh: rounded(slices.Max(ratios), 3),
				LongestMS: rounded(Milliseconds(longest[name]), 1), Retries: retries[name],
			})
		}
	}
	for _, t := range all {
		if t.feed == nil {
			continue
		}
		w.progress.begin("writers: reading what they wrote, capture "+t.name, w.cfg.bulk(1))
		if err := w.verify(ctx, t.feed, t.name); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// writtenTable is the table that writers write to with one kind of capture.
type writtenTable struct {
	tables         *tables
	name           string // of the table and of its feed
	capture        feedtype.Capture
	feed           *rowfeed.Feed // nil without capture
	insert, update string
	lastID         atomic.Int64 // the highest id given
}

// newWrittenTable makes and fills a table. If there is a feed of it, all rows have a position.
func newWrittenTable(
	ctx context.Context, w *workspace, name string, capture feedtype.Capture,
) (_ *writtenTable, err error) {
	t := &writtenTable{tables: w.tables, name: name, capture: capture}
	t.lastID.Store(int64(w.cfg.Rows))
	d := w.tables.db.dialect
	position := ""
	if capture == feedtype.CaptureColumn {
		position = d.Quote(dialect.PositionColumn) + " = NULL, "
	}
	t.insert = w.tables.insertStatement(name)
	t.update = "UPDATE " + w.tables.quoted(name) + " SET " + position + "payload = " + d.Placeholder(1) +
		" WHERE id = " + d.Placeholder(2)
	if err := w.fill(ctx, name, w.cfg.Rows); err != nil || capture == "" {
		return t, err
	}
	w.progress.begin("publishing the rows that are there, capture "+name, w.cfg.bulk(1))
	if t.feed, err = w.addFeed(ctx, w.library, name, name, capture); err != nil {
		return t, err
	}
	_, err = t.feed.Publish(ctx)
	return t, err
}

// writeFor lets the writers write for one window. Then it publishes what they wrote, so that the next table is
// measured without a backlog.
func (t *writtenTable) writeFor(ctx context.Context, cfg Config, pool *sql.DB, write string) (*outcome, error) {
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	o := &outcome{dialect: t.tables.db.dialect}
	began := time.Now()
	var running sync.WaitGroup
	for range cfg.Writers {
		running.Go(func() {
			for first := true; first || time.Since(began) < cfg.Window; first = false {
				before := time.Now()
				err := t.transaction(writing, cfg, pool, write)
				if now := time.Now(); !o.count(err, now.Sub(before), now.Sub(began) <= cfg.Window) {
					cancel()
					return
				}
			}
		})
	}
	running.Wait()
	if o.failed != nil {
		return nil, t.tables.db.explain("write to "+t.tables.name(t.name).String()+" with capture "+t.name, o.failed)
	}
	if t.feed != nil {
		if _, err := t.feed.Publish(ctx); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (t *writtenTable) transaction(ctx context.Context, cfg Config, pool *sql.DB, write string) error {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var id int64
	if payload := text(rand.IntN(26), cfg.Payload); write == "INSERT" {
		id = t.lastID.Add(1)
		_, err = tx.ExecContext(ctx, t.insert, id, payload)
	} else {
		id = 1 + rand.Int64N(int64(cfg.Rows))
		_, err = tx.ExecContext(ctx, t.update, payload, id)
	}
	if err == nil && t.capture == feedtype.CaptureApp {
		err = t.feed.Record(ctx, rowfeed.InTx(tx), rowfeed.Key{id})
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// outcome counts the transactions of all writers in one window.
type outcome struct {
	dialect *dialect.Dialect

	mu      sync.Mutex // of the fields below
	commits int
	retries int64
	longest time.Duration
	failed  error // that ended the writers
}

// count adds a transaction, and reports whether its writer is to continue. A transaction that ends after the
// window is not counted as a commit: at that time fewer writers write.
func (o *outcome) count(err error, took time.Duration, inside bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch class := o.dialect.Classify(err); {
	case err == nil:
		if inside {
			o.commits++
		}
		o.longest = max(o.longest, took)
	case class == dialect.ClassRetry || class == dialect.ClassLockTimeout:
		o.retries++
	default:
		if o.failed == nil {
			o.failed = err
		}
		return false
	}
	return true
}

package bench

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/rowfeed/rowfeed"
)

// Run takes the measures, and removes what it has made. If it cannot remove everything, the error contains a
// *LeftError.
func Run(ctx context.Context, cfg Config) (_ *Report, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	db, err := openDatabase(ctx, cfg.URL, cfg.DB.Schema, cfg.tap)
	if err != nil {
		return nil, err
	}
	defer db.pool.Close()
	durable, err := db.check(ctx, cfg.DB.UnsafeDurability)
	if err != nil {
		return nil, err
	}
	server, err := db.describe(ctx, durable)
	if err != nil {
		return nil, err
	}
	report := newReport(cfg, server)
	t, err := newTables(ctx, db)
	if err != nil {
		return nil, err
	}
	if cfg.Planned != nil {
		if err := cfg.Planned(newPlan(cfg, t, server)); err != nil {
			return nil, err
		}
	}
	w := &workspace{cfg: cfg, tables: t, progress: &progress{tell: cfg.Doing, total: cfg.duration()}}
	began := time.Now()
	if err := withTables(ctx, w, report); err != nil {
		return nil, err
	}
	report.Rows = w.tally
	report.Rows.Positions = int(w.positions.Load())
	report.TookSeconds = seconds(time.Since(began))
	return report, nil
}

// newReport returns a report without figures.
func newReport(cfg Config, server Server) *Report {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Report{Began: time.Now().UTC().Truncate(time.Second), Database: server,
		Machine: Machine{Host: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Go: runtime.Version()},
		Options: Options{Measures: cfg.selected(), Rows: cfg.Rows, Payload: cfg.Payload, Writers: cfg.Writers,
			Seconds: seconds(cfg.Window), Rate: cfg.Rate, Repetitions: cfg.Repetitions}}
}

// withTables measures between making the marker and removing everything.
func withTables(ctx context.Context, w *workspace, report *Report) (err error) {
	defer func() {
		if w.cfg.Keep {
			report.Kept = w.tables.prefix
			return
		}
		w.progress.begin("removing its tables", 0)
		// The tables are removed also if ctx has been canceled.
		err = errors.Join(err, w.tables.remove(context.WithoutCancel(ctx)))
	}()
	if err := w.tables.createMarker(ctx); err != nil {
		return err
	}
	stop := w.tables.startHeartbeat(ctx)
	defer stop()
	return measure(ctx, w, report)
}

// measure takes the measures, one after the other.
func measure(ctx context.Context, w *workspace, report *Report) (err error) {
	if w.library, err = w.openLibrary(ctx, w.tables.db.pool, rowfeed.Config{}); err != nil {
		return err
	}
	w.progress.begin("making rowfeed's tables", 0)
	if _, err := w.library.Migrate(ctx); err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		take func() error
	}{
		{Writers, func() (err error) { report.Writers, err = measureWriters(ctx, w); return err }},
		{Drain, func() (err error) { report.Drain, err = measureDrain(ctx, w); return err }},
		{Pages, func() (err error) { report.Pages, err = measurePages(ctx, w); return err }},
		{Consume, func() (err error) { report.Consume, err = measureConsume(ctx, w); return err }},
		{Latency, func() (err error) { report.Latency, err = measureLatency(ctx, w); return err }},
		{Idle, func() (err error) { report.Idle, err = measureIdle(ctx, w); return err }},
	} {
		if !w.cfg.takes(m.name) {
			continue
		}
		if err := m.take(); err != nil {
			return err
		}
	}
	return nil
}

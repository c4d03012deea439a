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
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/tap"
)

const quietTable = "quiet"

// measureIdle counts what the process sends to the driver. The server's own counters would need privileges.
func measureIdle(ctx context.Context, w *workspace) (*IdleFigures, error) {
	var sent atomic.Int64
	pool, _, err := open.Open(ctx, w.tables.db.url,
		open.Options{MustExist: true, Tap: &tap.Hooks{Before: func(context.Context, tap.Event) error {
			sent.Add(1)
			return nil
		}}})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	db, err := w.openLibrary(ctx, pool, rowfeed.Config{})
	if err != nil {
		return nil, err
	}
	if err := w.fill(ctx, quietTable, min(w.cfg.Rows, 10)); err != nil {
		return nil, err
	}
	f, err := w.addFeed(ctx, db, "idle", quietTable, feedtype.CaptureTrigger)
	if err != nil {
		return nil, err
	}
	if _, err := f.Publish(ctx); err != nil {
		return nil, err
	}
	figures := &IdleFigures{}
	nothing := func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }
	for _, process := range []struct {
		what   string
		handle handler
		figure *float64
	}{{"a publisher", nil, &figures.Publisher}, {"a publisher and a consumer", nothing, &figures.Consumer}} {
		w.progress.begin(fmt.Sprintf("idle: %s of a quiet feed", process.what), w.cfg.idleCost())
		b := startBackground(ctx, db, f, process.handle)
		if *process.figure, figures.Seconds, err = countSent(ctx, w.cfg, b, &sent); err != nil {
			return nil, err
		}
	}
	return figures, w.verify(ctx, f, quietTable)
}

// countSent counts what the process sends per second while no row changes. It first waits until the pauses
// between polls have reached their maximum.
func countSent(
	ctx context.Context, cfg Config, b *background, sent *atomic.Int64,
) (speed, length float64, err error) {
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.run(ctx, cfg.settling()); err != nil {
		return 0, 0, err
	}
	before, began := sent.Load(), time.Now()
	if err := b.run(ctx, cfg.Window*time.Duration(cfg.Repetitions)); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	return rounded(perSecond(int(sent.Load()-before), took), 1), seconds(took), nil
}

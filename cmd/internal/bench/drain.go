package bench

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

func measureDrain(ctx context.Context, w *workspace) ([]DrainFigure, error) {
	if err := w.fillShared(ctx); err != nil {
		return nil, err
	}
	all := make([]*Passes, len(batches))
	fresh, again := make([][]float64, len(batches)), make([][]float64, len(batches))
	for i, size := range batches {
		var err error
		all[i], err = NewPasses(func(cfg rowfeed.Config) (*rowfeed.DB, error) {
			cfg.BatchSize = size
			return w.openLibrary(ctx, w.tables.db.pool, cfg)
		})
		if err != nil {
			return nil, err
		}
	}
	for rep := range w.cfg.Repetitions {
		for i, size := range batches {
			w.progress.begin(fmt.Sprintf("drain: batches of %d, %d of %d", size, rep+1, w.cfg.Repetitions),
				w.cfg.drainCost())
			speeds, err := drainBacklogs(ctx, w, all[i], fmt.Sprint("drain", size))
			if err != nil {
				return nil, err
			}
			fresh[i], again[i] = append(fresh[i], speeds[0]), append(again[i], speeds[1])
		}
	}
	figures := []DrainFigure{}
	for i, size := range batches {
		figures = append(figures, DrainFigure{Batch: size, Keys: w.cfg.Rows,
			New: rounded(Median(fresh[i]), 0), Again: rounded(Median(again[i]), 0)})
	}
	return figures, nil
}

// drainBacklogs makes a feed of all rows, publishes them, and publishes them again. It returns the keys per second of
// both.
func drainBacklogs(ctx context.Context, w *workspace, p *Passes, feed string) (speeds [2]float64, err error) {
	f, err := w.addFeed(ctx, p.DB, feed, sharedTable, feedtype.CaptureTrigger)
	if err != nil {
		return speeds, err
	}
	for i := range speeds {
		if i > 0 {
			if _, err := f.Admin().RepublishWhere(ctx, "", fillBatch, nil); err != nil {
				return speeds, err
			}
		}
		keys, took, err := p.Drain(ctx, f)
		if err != nil {
			return speeds, err
		}
		if keys != w.cfg.Rows {
			return speeds, wrongFigures("a backlog of %d keys was recorded of %s, and %d published",
				w.cfg.Rows, w.tables.name(sharedTable), keys)
		}
		speeds[i] = perSecond(keys, took)
	}
	return speeds, p.DB.DropFeed(ctx, feed)
}

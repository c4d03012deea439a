package bench

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// measureConsume runs consumers from the beginning of a feed to its head, with rowfeed's defaults.
func measureConsume(ctx context.Context, w *workspace) (*ConsumeFigures, error) {
	f, err := w.publishedFeed(ctx, Consume)
	if err != nil {
		return nil, err
	}
	var speeds []float64
	for rep := range w.cfg.Repetitions {
		w.progress.begin(fmt.Sprintf("consume: reading, %d of %d", rep+1, w.cfg.Repetitions), w.cfg.bulk(1))
		handled := 0
		c := &rowfeed.Consumer{Name: fmt.Sprint("bench", rep), Source: f, DB: w.library,
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				handled += len(entries)
				return nil
			}}
		began := time.Now()
		if err := c.RunOnce(ctx); err != nil {
			return nil, err
		}
		speeds = append(speeds, perSecond(handled, time.Since(began)))
		// handled may be higher: a batch that was rolled back and delivered again is counted twice.
		if handled < w.cfg.Rows {
			return nil, wrongFigures("%d rows were written to %s, and %d entries read from its feed",
				w.cfg.Rows, w.tables.name(sharedTable), handled)
		}
	}
	return &ConsumeFigures{Entries: w.cfg.Rows, Speed: rounded(Median(speeds), 0)}, w.library.DropFeed(ctx, f.Name())
}

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// fetchesPerRepetition is how often the same page is fetched in each repetition.
const fetchesPerRepetition = 7

func measurePages(ctx context.Context, w *workspace) (*PageFigures, error) {
	f, err := w.publishedFeed(ctx, Pages)
	if err != nil {
		return nil, err
	}
	var speeds []float64
	times := make([][]float64, 3)
	for rep := range w.cfg.Repetitions {
		w.progress.begin(fmt.Sprintf("pages: reading, %d of %d", rep+1, w.cfg.Repetitions), w.cfg.bulk(1))
		all, _, err := w.tables.verify(ctx, f, sharedTable)
		if err != nil {
			return nil, err
		}
		speeds = append(speeds, perSecond(all.entries, all.took))
		last := len(all.starts) - 1
		for range fetchesPerRepetition {
			for i, start := range []rowfeed.Cursor{all.starts[0], all.starts[last/2], all.starts[last]} {
				began := time.Now()
				if _, err := f.Fetch(ctx, rowfeed.Request{After: start, Limit: pageSize}); err != nil {
					return nil, err
				}
				times[i] = append(times[i], Milliseconds(time.Since(began)))
			}
		}
	}
	if err := w.verify(ctx, f, sharedTable); err != nil {
		return nil, err
	}
	ms := func(i int) float64 { return rounded(Median(times[i]), 2) }
	return &PageFigures{Entries: w.cfg.Rows, Page: pageSize, Speed: rounded(Median(speeds), 0),
		StartMS: ms(0), MiddleMS: ms(1), EndMS: ms(2)}, w.library.DropFeed(ctx, f.Name())
}

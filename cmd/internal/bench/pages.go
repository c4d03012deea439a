package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
)

// PageFigures are what reading costs.
type PageFigures struct {
	Entries int `json:"entries"` // of the feed
	Page    int `json:"page"`    // entries asked for
	// Speed is that of one reader, page by page from the beginning to the head.
	Speed float64 `json:"entries_per_second"`
	// StartMS, MiddleMS and EndMS are what one page takes there: a feed that grows keeps them
	// level.
	StartMS  float64 `json:"start_ms"`
	MiddleMS float64 `json:"middle_ms"`
	EndMS    float64 `json:"end_ms"`
}

// looks is how often a page is fetched in each repetition.
const looks = 7

func (r *run) pages(ctx context.Context) error {
	f, err := r.published(ctx, Pages)
	if err != nil {
		return err
	}
	var speeds []float64
	times := make([][]float64, 3)
	for rep := range r.Repetitions {
		r.doing(fmt.Sprintf("pages: reading, %d of %d", rep+1, r.Repetitions), r.bulk(1))
		all, err := r.complete(ctx, f, rowsTable)
		if err != nil {
			return err
		}
		speeds = append(speeds, perSecond(all.entries, all.took))
		last := len(all.starts) - 1
		for range looks {
			for i, start := range []rowfeed.Cursor{all.starts[0], all.starts[last/2], all.starts[last]} {
				began := time.Now()
				if _, err := f.Fetch(ctx, rowfeed.Request{After: start, Limit: pageSize}); err != nil {
					return err
				}
				times[i] = append(times[i], Milliseconds(time.Since(began)))
			}
		}
	}
	if err := r.tally(ctx, f, rowsTable); err != nil {
		return err
	}
	ms := func(i int) float64 { return rounded(Median(times[i]), 2) }
	r.report.Pages = &PageFigures{Entries: r.Config.Rows, Page: pageSize, Speed: rounded(Median(speeds), 0),
		StartMS: ms(0), MiddleMS: ms(1), EndMS: ms(2)}
	return r.db.DropFeed(ctx, f.Name())
}

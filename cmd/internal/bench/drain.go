package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// DrainFigure is how fast a backlog is published in batches of one size, with nothing else
// going on. rowfeed adapts the size by itself.
type DrainFigure struct {
	Batch int `json:"batch"`
	Keys  int `json:"keys"` // of each backlog
	// New keys per second have no position yet; Again are those that had one, as rows have
	// that are updated. Medians of the repetitions.
	New   float64 `json:"new_keys_per_second"`
	Again float64 `json:"again_keys_per_second"`
}

// batches are the sizes of what one transaction of a publisher takes.
var batches = []int{100, 1000, 5000}

// rowsTable is followed by one feed after the other.
const rowsTable = "rows"

// rows fills the table that drain, pages and consume share, once.
func (r *run) rows(ctx context.Context) error {
	if r.filled {
		return nil
	}
	r.filled = true
	return r.fill(ctx, rowsTable, r.Rows)
}

// published is a feed of the shared table whose rows all have a position.
func (r *run) published(ctx context.Context, feed string) (*rowfeed.Feed, error) {
	if err := r.rows(ctx); err != nil {
		return nil, err
	}
	r.doing(feed+": publishing the rows", r.bulk(2))
	f, err := r.follow(ctx, r.db, feed, rowsTable, feedtype.CaptureTrigger)
	if err == nil {
		_, err = f.Publish(ctx)
	}
	return f, err
}

func (r *run) drain(ctx context.Context) error {
	if err := r.rows(ctx); err != nil {
		return err
	}
	all := make([]*Passes, len(batches))
	fresh, again := make([][]float64, len(batches)), make([][]float64, len(batches))
	for i, size := range batches {
		var err error
		if all[i], err = r.passes(ctx, size); err != nil {
			return err
		}
	}
	for rep := range r.Repetitions {
		for i, size := range batches {
			r.doing(fmt.Sprintf("drain: batches of %d, %d of %d", size, rep+1, r.Repetitions), r.drainCost())
			speeds, err := r.backlogs(ctx, all[i], fmt.Sprint("drain", size))
			if err != nil {
				return err
			}
			fresh[i], again[i] = append(fresh[i], speeds[0]), append(again[i], speeds[1])
		}
	}
	r.report.Drain = []DrainFigure{}
	for i, size := range batches {
		r.report.Drain = append(r.report.Drain, DrainFigure{Batch: size, Keys: r.Rows,
			New: rounded(Median(fresh[i]), 0), Again: rounded(Median(again[i]), 0)})
	}
	return nil
}

// backlogs makes a feed of all rows, publishes them, and publishes them again.
func (r *run) backlogs(ctx context.Context, p *Passes, feed string) (speeds [2]float64, err error) {
	f, err := r.follow(ctx, p.DB, feed, rowsTable, feedtype.CaptureTrigger)
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
		if keys != r.Rows {
			return speeds, lost("a backlog of %d keys was recorded of %s, and %d published",
				r.Rows, r.name(rowsTable), keys)
		}
		speeds[i] = perSecond(keys, took)
	}
	return speeds, p.DB.DropFeed(ctx, feed)
}

// passes publishes on the run's tables in batches of one size.
func (r *run) passes(ctx context.Context, size int) (*Passes, error) {
	return NewPasses(func(cfg rowfeed.Config) (*rowfeed.DB, error) {
		cfg.BatchSize = size
		return r.library(ctx, r.pool, cfg)
	})
}

// Passes publishes in batches of one size. rowfeed adapts the size, but only within one call
// of Publish: so every call is ended after its first batch.
type Passes struct {
	DB  *rowfeed.DB
	end context.CancelFunc
}

// NewPasses opens the library with settings to which the observer of batches is added.
func NewPasses(open func(rowfeed.Config) (*rowfeed.DB, error)) (p *Passes, err error) {
	p = &Passes{}
	p.DB, err = open(rowfeed.Config{Observer: &rowfeed.Observer{Published: func(rowfeed.PublishEvent) { p.end() }}})
	return p, err
}

// Pass publishes one batch, and answers 0 when nothing waits.
func (p *Passes) Pass(ctx context.Context, f *rowfeed.Feed) (keys int, err error) {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	p.end = cancel
	keys, err = f.Publish(one)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return keys, err
}

// Drain publishes everything that waits.
func (p *Passes) Drain(ctx context.Context, f *rowfeed.Feed) (keys int, took time.Duration, err error) {
	for began := time.Now(); ; {
		n, err := p.Pass(ctx, f)
		keys += n
		if err != nil || n == 0 {
			return keys, time.Since(began), err
		}
	}
}

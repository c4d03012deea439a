package bench

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed"
)

// Passes publishes in batches of one size. rowfeed adapts the size within one call of Publish. Therefore
// Passes ends every call after its first batch.
type Passes struct {
	DB  *rowfeed.DB
	end context.CancelFunc
}

// NewPasses opens the library with a config that has the observer of batches.
func NewPasses(open func(rowfeed.Config) (*rowfeed.DB, error)) (p *Passes, err error) {
	p = &Passes{}
	p.DB, err = open(rowfeed.Config{Observer: &rowfeed.Observer{Published: func(rowfeed.PublishEvent) { p.end() }}})
	return p, err
}

// Pass publishes one batch. It returns 0 if there was nothing to publish.
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

// Drain publishes all pending keys.
func (p *Passes) Drain(ctx context.Context, f *rowfeed.Feed) (keys int, took time.Duration, err error) {
	for began := time.Now(); ; {
		n, err := p.Pass(ctx, f)
		keys += n
		if err != nil || n == 0 {
			return keys, time.Since(began), err
		}
	}
}

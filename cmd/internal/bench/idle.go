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

// IdleFigures are what one process asks of a quiet database: statements, and the beginnings
// and ends of transactions, each a round trip.
type IdleFigures struct {
	// Publisher is of a process that publishes one feed, Consumer of one that has a consumer
	// of it at the head besides.
	Publisher float64 `json:"publisher_statements_per_second"`
	Consumer  float64 `json:"with_consumer_statements_per_second"`
	Seconds   float64 `json:"seconds"` // of each look
}

const quietTable = "quiet"

// idle counts what the process sends, at the seam to the driver: no server is asked, which
// would take rights.
func (r *run) idle(ctx context.Context) error {
	var sent atomic.Int64
	pool, _, err := open.Open(ctx, r.url,
		open.Options{MustExist: true, Tap: &tap.Hooks{Before: func(context.Context, tap.Event) error {
			sent.Add(1)
			return nil
		}}})
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := r.library(ctx, pool, rowfeed.Config{})
	if err != nil {
		return err
	}
	if err := r.fill(ctx, quietTable, min(r.Rows, 10)); err != nil {
		return err
	}
	f, err := r.follow(ctx, db, "idle", quietTable, feedtype.CaptureTrigger)
	if err != nil {
		return err
	}
	if _, err := f.Publish(ctx); err != nil {
		return err
	}
	figures := &IdleFigures{}
	nothing := func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }
	for _, look := range []struct {
		what   string
		handle func(context.Context, *sql.Tx, []rowfeed.Entry) error
		figure *float64
	}{{"a publisher", nil, &figures.Publisher}, {"a publisher and a consumer", nothing, &figures.Consumer}} {
		r.doing(fmt.Sprintf("idle: %s of a quiet feed", look.what), r.idleCost())
		if *look.figure, figures.Seconds, err = r.quiet(ctx, r.accompany(ctx, db, f, look.handle), &sent); err != nil {
			return err
		}
	}
	r.report.Idle = figures
	return r.tally(ctx, f, quietTable)
}

// quiet counts what is sent while nothing happens, from when the pauses between looks have
// grown.
func (r *run) quiet(ctx context.Context, c *company, sent *atomic.Int64) (speed, length float64, err error) {
	defer func() { err = errors.Join(err, c.leave()) }()
	if err := c.rest(ctx, r.settle()); err != nil {
		return 0, 0, err
	}
	before, began := sent.Load(), time.Now()
	if err := c.rest(ctx, r.Window*time.Duration(r.Repetitions)); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	return rounded(perSecond(int(sent.Load()-before), took), 1), seconds(took), nil
}

// rest lets some time pass while they are at work.
func (c *company) rest(ctx context.Context, d time.Duration) error {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-over.Done():
		return ctx.Err()
	case err := <-c.ended:
		return c.deserted(ctx, err)
	}
}

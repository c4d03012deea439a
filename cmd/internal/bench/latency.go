package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

const latencyTable = "late"

func measureLatency(ctx context.Context, w *workspace) (*LatencyFigure, error) {
	db, cfg := w.tables.db, w.cfg
	if err := db.exec(ctx, "create the table "+w.tables.name(latencyTable).String(),
		w.tables.createStatement(latencyTable, cfg.Payload)); err != nil {
		return nil, err
	}
	f, err := w.addFeed(ctx, w.library, "latency", latencyTable, feedtype.CaptureTrigger)
	if err != nil {
		return nil, err
	}
	pool, err := db.writerPool(ctx, cfg.Writers)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	commits := max(int(cfg.Rate*cfg.Window.Seconds()*float64(cfg.Repetitions)), 1)
	w.progress.begin(fmt.Sprintf("latency: %d commits, %g a second", commits, cfg.Rate),
		cfg.Window*time.Duration(cfg.Repetitions))
	// The row with id 0 warms up the publisher and the consumer.
	l := &latencyRun{cfg: cfg, tables: w.tables, pool: pool, warm: newDeliveries(1), all: newDeliveries(commits + 1)}
	b := startBackground(ctx, w.library, f, l.handle)
	figure, err := l.measure(ctx, b)
	if err := errors.Join(err, b.stop()); err != nil {
		return nil, err
	}
	return figure, w.verify(ctx, f, latencyTable)
}

// latencyRun commits rows at a rate, and records when the handler gets them.
type latencyRun struct {
	cfg       Config
	tables    *tables
	pool      *sql.DB
	warm, all *deliveries
}

func (l *latencyRun) handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	if err := l.all.handle(ctx, tx, entries); err != nil {
		return err
	}
	select {
	case <-l.warm.all:
		return nil
	default: // only the row with id 0 has been written
		return l.warm.handle(ctx, tx, entries)
	}
}

// measure commits at the rate, and waits until the handler has got all rows.
func (l *latencyRun) measure(ctx context.Context, b *background) (*LatencyFigure, error) {
	insert := l.tables.insertStatement(latencyTable)
	write := func(ctx context.Context, id, start int) error {
		if _, err := l.pool.ExecContext(ctx, insert, id, text(start, l.cfg.Payload)); err != nil {
			return l.tables.db.explain("write to the table "+l.tables.name(latencyTable).String(), err)
		}
		return nil
	}
	if err := write(ctx, 0, 0); err != nil {
		return nil, err
	}
	if err := b.await(ctx, l.warm); err != nil {
		return nil, err
	}
	committed := make([]time.Time, len(l.all.at))
	took, err := l.pace(ctx, len(committed)-1, func(ctx context.Context, i int) error {
		if err := write(ctx, i+1, i); err != nil {
			return err
		}
		committed[i+1] = time.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.await(ctx, l.all); err != nil {
		return nil, err
	}
	waits := make([]float64, len(committed)-1)
	for i := range waits { // a row may arrive before the response to its COMMIT
		waits[i] = Milliseconds(max(l.all.at[i+1].Sub(committed[i+1]), 0))
	}
	return &LatencyFigure{Rate: l.cfg.Rate, Reached: rounded(perSecond(len(waits), took), 1), Commits: len(waits),
		P50MS: rounded(Median(waits), 2), P99MS: rounded(Quantile(waits, 0.99), 2),
		MaxMS: rounded(Quantile(waits, 1), 2)}, nil
}

// pace calls do for 0 to n-1, each at its time by the rate. Calls overlap if they take long, as many as there are
// writers.
func (l *latencyRun) pace(ctx context.Context, n int, do func(context.Context, int) error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var running sync.WaitGroup
	failed := make(chan error, l.cfg.Writers)
	began := time.Now()
	for range min(l.cfg.Writers, n) {
		running.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				at := began.Add(time.Duration(float64(i) / l.cfg.Rate * float64(time.Second)))
				err := pause(ctx, time.Until(at))
				if err == nil {
					err = do(ctx, i)
				}
				if err != nil {
					failed <- err
					cancel()
					return
				}
			}
		})
	}
	running.Wait()
	select {
	case err := <-failed:
		return 0, err
	default: // the last call also gets its full share of the time
		return time.Since(began) + time.Duration(float64(time.Second)/l.cfg.Rate), nil
	}
}

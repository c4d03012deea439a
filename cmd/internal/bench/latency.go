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

// LatencyFigure is the time from a writer's commit to a consumer's handler, with the
// publisher and the consumer in this process and rowfeed's own settings.
type LatencyFigure struct {
	Rate    float64 `json:"rate"`               // commits per second that were asked for
	Reached float64 `json:"reached_per_second"` // and that the database took
	Commits int     `json:"commits"`
	P50MS   float64 `json:"p50_ms"`
	P99MS   float64 `json:"p99_ms"`
	MaxMS   float64 `json:"max_ms"`
}

const (
	lateTable = "late"
	// undelivered is how long nothing may come while rows are missing: then they are taken for lost.
	undelivered = time.Minute
)

// deliveries are what the handler has had, by the rows' ids from 1; id 0 is the warming up.
type deliveries struct {
	mu      sync.Mutex
	at      []time.Time
	missing int
	all     chan struct{} // closed when all ids have come
}

func newDeliveries(commits int) *deliveries {
	return &deliveries{at: make([]time.Time, commits), missing: commits, all: make(chan struct{})}
}

func (d *deliveries) handle(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		value, _ := e.Key.Get("id")
		id, ok := value.(int64)
		if !ok || id < 0 || id >= int64(len(d.at)) {
			return lost("the handler got the key %v, which nobody wrote", value)
		}
		if !d.at[id].IsZero() {
			continue // its transaction was rolled back: it was there all the same
		}
		d.at[id] = now
		if d.missing--; d.missing == 0 {
			close(d.all)
		}
	}
	return nil
}

// company are a publisher and a consumer at work.
type company struct {
	stop  context.CancelFunc
	ended chan error
	many  int
}

// accompany starts a feed's publisher and, with a handler, a consumer of it.
func (r *run) accompany(
	ctx context.Context, db *rowfeed.DB, f *rowfeed.Feed, handle func(context.Context, *sql.Tx, []rowfeed.Entry) error,
) *company {
	ctx, stop := context.WithCancel(ctx)
	c := &company{stop: stop, ended: make(chan error, 2), many: 1}
	go func() { c.ended <- f.RunPublisher(ctx) }()
	if handle != nil {
		c.many++
		consumer := &rowfeed.Consumer{Name: "bench", Source: f, DB: db, Handle: handle}
		go func() { c.ended <- consumer.Run(ctx) }()
	}
	return c
}

// leave ends them, and answers what one of them ended with by itself.
func (c *company) leave() (err error) {
	c.stop()
	for range c.many {
		err = errors.Join(err, <-c.ended)
	}
	c.many = 0
	return err
}

// deserted is the error of one that has ended before it was to; when it was to, that of ctx.
func (c *company) deserted(ctx context.Context, err error) error {
	c.many--
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = errors.New("bench: the publisher or the consumer has stopped by itself")
	}
	return err
}

func (r *run) latency(ctx context.Context) error {
	if err := r.exec(ctx, "create the table "+r.name(lateTable).String(), fmt.Sprintf(
		"CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, payload varchar(%d) NOT NULL)",
		r.quoted(lateTable), r.flavour.key, r.Payload)); err != nil {
		return err
	}
	f, err := r.follow(ctx, r.db, "latency", lateTable, feedtype.CaptureTrigger)
	if err != nil {
		return err
	}
	pool, err := r.writersPool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	commits := max(int(r.Rate*r.Window.Seconds()*float64(r.Repetitions)), 1)
	r.doing(fmt.Sprintf("latency: %d commits, %g a second", commits, r.Rate), r.Window*time.Duration(r.Repetitions))
	warm, d := newDeliveries(1), newDeliveries(commits+1)
	c := r.accompany(ctx, r.db, f, func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
		if err := d.handle(ctx, tx, entries); err != nil {
			return err
		}
		select {
		case <-warm.all:
			return nil
		default: // nothing but the first row is there yet
			return warm.handle(ctx, tx, entries)
		}
	})
	figure, err := r.late(ctx, pool, c, warm, d)
	if err := errors.Join(err, c.leave()); err != nil {
		return err
	}
	r.report.Latency = figure
	return r.tally(ctx, f, lateTable)
}

// late commits at the rate, and waits until the handler has had it all.
func (r *run) late(ctx context.Context, pool *sql.DB, c *company, warm, d *deliveries) (*LatencyFigure, error) {
	insert := "INSERT INTO " + r.quoted(lateTable) + " (id, payload) VALUES (" + r.d.Placeholder(1) + ", " +
		r.d.Placeholder(2) + ")"
	if _, err := pool.ExecContext(ctx, insert, 0, text(0, r.Payload)); err != nil {
		return nil, r.fail("write to the table "+r.name(lateTable).String(), err)
	}
	if err := c.await(ctx, warm); err != nil {
		return nil, err
	}
	committed := make([]time.Time, len(d.at))
	took, err := r.pace(ctx, len(committed)-1, func(ctx context.Context, i int) error {
		if _, err := pool.ExecContext(ctx, insert, i+1, text(i, r.Payload)); err != nil {
			return r.fail("write to the table "+r.name(lateTable).String(), err)
		}
		committed[i+1] = time.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx, d); err != nil {
		return nil, err
	}
	waits := make([]float64, len(committed)-1)
	for i := range waits { // a row may come before the answer to its COMMIT
		waits[i] = Milliseconds(max(d.at[i+1].Sub(committed[i+1]), 0))
	}
	return &LatencyFigure{Rate: r.Rate, Reached: rounded(perSecond(len(waits), took), 1), Commits: len(waits),
		P50MS: rounded(Median(waits), 2), P99MS: rounded(Quantile(waits, 0.99), 2), MaxMS: rounded(Quantile(waits, 1),
			2)}, nil
}

// pace calls do for 0 to n-1, each at its time, whether or not those before have ended: as
// many at once as there are writers.
func (r *run) pace(ctx context.Context, n int, do func(context.Context, int) error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	var running sync.WaitGroup
	failed := make(chan error, r.Writers)
	began := time.Now()
	for range min(r.Writers, n) {
		running.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				at := began.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))
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
	default: // as if the last one had its whole share of the time
		return time.Since(began) + time.Duration(float64(time.Second)/r.Rate), nil
	}
}

// await waits until all has come, for as long as anything does.
func (c *company) await(ctx context.Context, d *deliveries) error {
	t := time.NewTicker(undelivered)
	defer t.Stop()
	for before := -1; ; {
		select {
		case <-d.all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.ended:
			return c.deserted(ctx, err)
		case <-t.C:
		}
		d.mu.Lock()
		missing := d.missing
		d.mu.Unlock()
		if missing == before {
			return lost("%d of %d rows have not come to the handler, and none has for %s",
				missing, len(d.at), undelivered)
		}
		before = missing
	}
}

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// WriterFigure is what writers reached with one kind of statement.
type WriterFigure struct {
	Write   string `json:"write"`   // INSERT or UPDATE
	Capture string `json:"capture"` // none, trigger, app or column
	// Commits per second of all writers together, the median of the repetitions.
	Commits float64 `json:"commits_per_second"`
	// Ratio to the commits without capture of the same repetition: the median, the lowest and
	// the highest.
	Ratio     float64 `json:"ratio"`
	RatioLow  float64 `json:"ratio_low"`
	RatioHigh float64 `json:"ratio_high"`
	// LongestMS is the longest transaction.
	LongestMS float64 `json:"longest_ms"`
	// Retries are transactions that the database refused: deadlocks and the like.
	Retries int64 `json:"retries"`
}

// lane is one way to write, measured in turns with the others.
type lane struct {
	name    string // of its table and feed
	capture feedtype.Capture
	feed    *rowfeed.Feed // nil: none
	next    atomic.Int64  // the highest id given
}

var lanes = []struct {
	name    string
	capture feedtype.Capture
}{{"none", ""}, {"trigger", feedtype.CaptureTrigger}, {"app", feedtype.CaptureApp}, {"column", feedtype.CaptureColumn}}

// writes are the statements of the writers' transactions.
var writes = []string{"INSERT", "UPDATE"}

// crew are the writers on one table.
type crew struct {
	*run
	*lane
	pool           *sql.DB
	insert, update string

	mu      sync.Mutex // of what follows
	commits int
	retries int64
	longest time.Duration
	failed  error // what ended them
}

// writers counts commits: each transaction inserts a row, or updates one by its key.
func (r *run) writers(ctx context.Context) error {
	pool, err := r.writersPool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	all := make([]*lane, len(lanes))
	for i, l := range lanes {
		all[i] = &lane{name: l.name, capture: l.capture}
		all[i].next.Store(int64(r.Rows))
		if err := r.prepare(ctx, all[i]); err != nil {
			return err
		}
	}
	commits, longest, retries := map[string][]float64{}, map[string]time.Duration{}, map[string]int64{}
	for rep := range r.Repetitions {
		for i := range all {
			for _, write := range writes {
				l := all[(i+rep)%len(all)] // each comes first once
				r.doing(
					fmt.Sprintf("writers: capture %s, %s, %d of %d", l.name, write, rep+1, r.Repetitions),
					r.laneCost(),
				)
				c := r.crew(l, pool)
				speed, err := c.work(ctx, write)
				if err != nil {
					return err
				}
				name := write + l.name
				commits[name] = append(commits[name], speed)
				longest[name] = max(longest[name], c.longest)
				retries[name] += c.retries
			}
		}
	}
	r.report.Writers = []WriterFigure{}
	for _, write := range writes {
		for _, l := range all {
			name := write + l.name
			ratios := Over(commits[name], commits[write+"none"])
			r.report.Writers = append(
				r.report.Writers,
				WriterFigure{Write: write, Capture: l.name, Commits: rounded(Median(commits[name]), 1),
					Ratio: rounded(
						Median(ratios),
						3,
					), RatioLow: rounded(slices.Min(ratios), 3), RatioHigh: rounded(slices.Max(ratios), 3),
					LongestMS: rounded(Milliseconds(longest[name]), 1), Retries: retries[name]},
			)
		}
	}
	for _, l := range all {
		if l.feed == nil {
			continue
		}
		r.doing("writers: reading what they wrote, capture "+l.name, r.bulk(1))
		if err := r.tally(ctx, l.feed, l.name); err != nil {
			return err
		}
	}
	return nil
}

// writersPool has a connection for each writer, as an application would have it.
func (r *run) writersPool(ctx context.Context) (*sql.DB, error) {
	url := r.url
	if p := r.flavour.parameter; p != "" {
		name, _, _ := strings.Cut(p, "=")
		switch {
		case strings.Contains(url, name+"="): // the user has said it
		case strings.Contains(url, "?"):
			url += "&" + p
		default:
			url += "?" + p
		}
	}
	pool, _, err := open.Open(ctx, url, open.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(r.Writers)
	pool.SetMaxIdleConns(r.Writers)
	return pool, nil
}

// prepare makes a lane's table and feed, with nothing left to publish.
func (r *run) prepare(ctx context.Context, l *lane) (err error) {
	if err := r.fill(ctx, l.name, r.Rows); err != nil || l.capture == "" {
		return err
	}
	r.doing("publishing the rows that are there, capture "+l.name, r.bulk(1))
	if l.feed, err = r.follow(ctx, r.db, l.name, l.name, l.capture); err != nil {
		return err
	}
	_, err = l.feed.Publish(ctx)
	return err
}

func (r *run) crew(l *lane, pool *sql.DB) *crew {
	t, mark := r.quoted(l.name), r.d.Placeholder
	c := &crew{run: r, lane: l, pool: pool,
		insert: "INSERT INTO " + t + " (id, payload) VALUES (" + mark(1) + ", " + mark(2) + ")",
		update: "UPDATE " + t + " SET payload = " + mark(1) + " WHERE id = " + mark(2)}
	if l.capture == feedtype.CaptureColumn {
		c.update = "UPDATE " + t + " SET " + r.d.Quote(
			dialect.PositionColumn,
		) + " = NULL, payload = " + mark(
			1,
		) + " WHERE id = " + mark(
			2,
		)
	}
	return c
}

// work lets the writers write for one window, and answers their commits per second. What
// they wrote is then published, so that the next lane begins without a backlog.
func (c *crew) work(ctx context.Context, write string) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var running sync.WaitGroup
	for range c.Writers {
		running.Go(func() {
			for first := true; first || time.Since(began) < c.Window; first = false {
				before := time.Now()
				err := c.transaction(ctx, write)
				if now := time.Now(); !c.count(err, now.Sub(before), now.Sub(began) <= c.Window) {
					cancel()
					return
				}
			}
		})
	}
	running.Wait()
	if c.failed != nil {
		return 0, c.fail("write to "+c.run.name(c.lane.name).String()+" with capture "+c.lane.name, c.failed)
	}
	if c.feed != nil {
		if _, err := c.feed.Publish(ctx); err != nil {
			return 0, err
		}
	}
	return perSecond(c.commits, c.Window), nil
}

// count notes the end of a transaction, and tells whether to go on. Those that end behind the
// window are not counted: they waited for others beside whom nobody writes any more.
func (c *crew) count(err error, took time.Duration, inside bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch class := c.d.Classify(err); {
	case err == nil:
		if inside {
			c.commits++
		}
		c.longest = max(c.longest, took)
	case class == dialect.ClassRetry || class == dialect.ClassLockTimeout:
		c.retries++
	default:
		if c.failed == nil {
			c.failed = err
		}
		return false
	}
	return true
}

func (c *crew) transaction(ctx context.Context, write string) error {
	tx, err := c.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var id int64
	if payload := text(rand.IntN(26), c.Payload); write == "INSERT" {
		id = c.next.Add(1)
		_, err = tx.ExecContext(ctx, c.insert, id, payload)
	} else {
		id = 1 + rand.Int64N(int64(c.Rows))
		_, err = tx.ExecContext(ctx, c.update, payload, id)
	}
	if err == nil && c.capture == feedtype.CaptureApp {
		err = c.feed.Record(ctx, rowfeed.InTx(tx), rowfeed.Key{id})
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

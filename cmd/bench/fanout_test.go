package bench

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// ahead is how many entries a writer commits before the slowest consumer has the first.
const ahead = 100

// The ways in which a consumer of TestFanOut learns of rows.
const (
	byPolling = "SQL pollers"
	inProcess = "in process"
	byStream  = "stream"
	byWaiting = "wait=60s"
)

// TestFanOut measures how long every committed row takes to many consumers that are at the head. The consumers are in
// the process of publisher and writer, or clients of one `rowfeed serve`. For comparison, as many pollers read the
// table itself every 50 ms, as often as rowfeed polls. Such pollers would miss rows. The writer commits one row after
// the other, or as fast as the slowest consumer allows.
func TestFanOut(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "rowfeed")
	build := exec.Command("go", "build", "-o", bin, "./cmd/rowfeed")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n := scaled(1000)
	out := table{Title: "Every row to " + count(float64(n)) +
		" consumers", Head: []string{"database", "consumers", "one row: to the last, ms", "entries/s", "÷ pollers",
		fmt.Sprintf("at most %d rows ahead: rows/s", ahead), "entries/s", "÷ pollers"}}
	each(t, func(b *bed) {
		db := b.Rowfeed(b.Pool, nil)
		b.fill("items", 1)
		f := b.Feed(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		hows := []string{byPolling, inProcess, byStream, byWaiting}
		last, one, rate, flow := figures[string]{}, figures[string]{}, figures[string]{}, figures[string]{}
		id := 1
		woken := func() {}
		commit := func() {
			id++
			b.SQL(fmt.Sprintf("INSERT INTO items VALUES (%d, '%s')", id, payload))
			woken()
		}
		for range *reps {
			for _, how := range hows {
				_, err := f.Publish(b.Context())
				b.Must(err) // wait until no earlier row is still on its way
				address, stop := "", func() {}
				switch woken = func() {}; how {
				case byPolling: // no publisher runs
				case inProcess:
					woken, stop = f.Wake, b.publishing(f)
				default:
					served := b.serve(bin)
					address, stop = served.address, served.stop
				}
				c := newConsumers(b, f, address, how, n, id)
				var rounds figure
				for range 10 {
					began := time.Now()
					commit()
					c.all(id, 0)
					rounds = append(rounds, milliseconds(time.Since(began)))
				}
				last.Add(how, rounds.Median())
				one.Add(how, float64(n)/rounds.Median()*1000)
				began, first := time.Now(), id
				for time.Since(began) < *window {
					commit()
					c.all(id, ahead)
				}
				c.all(id, 0)
				rate.Add(how, float64(id-first)/time.Since(began).Seconds())
				flow.Add(how, float64(id-first)*float64(n)/time.Since(began).Seconds())
				c.close()
				stop()
			}
		}
		for _, how := range hows {
			out.Row(b.Engine.Name, how, fmt.Sprintf("%.0f", last[how].Median()), count(one[how].Median()),
				one[how].Over(one[hows[0]]).Ratio(),
				count(rate[how].Median()), count(flow[how].Median()), flow[how].Over(flow[hows[0]]).Ratio())
		}
	})
	out.Print()
}

// consumers counts the rows that each consumer has got.
type consumers struct {
	*bed
	ctx     context.Context
	end     context.CancelFunc
	got     []atomic.Int64 // the last row, for each consumer
	news    chan struct{}
	running sync.WaitGroup
}

// newConsumers returns when all consumers have everything up to the row.
func newConsumers(b *bed, f *rowfeed.Feed, address, how string, n, row int) *consumers {
	b.Helper()
	c := &consumers{bed: b, got: make([]atomic.Int64, n), news: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancel(b.Context())
	b.Cleanup(c.end)
	switch how {
	case byPolling:
		pool, _ := b.Open("")
		pool.SetMaxOpenConns(16)
		pool.SetMaxIdleConns(16)
		for i := range c.got {
			c.running.Go(func() { c.poll(pool, &c.got[i], row) })
		}
	case inProcess:
		for i := range c.got {
			c.running.Go(func() { c.fetch(f, &c.got[i], row) })
		}
	default:
		dialing := make(chan struct{}, 64)
		for i := range c.got {
			dialing <- struct{}{}
			conn, err := net.Dial("tcp", address)
			<-dialing
			b.Must(err)
			context.AfterFunc(c.ctx, func() { _ = conn.Close() })
			c.running.Go(func() { c.read(conn, how, &c.got[i], row) })
		}
	}
	c.all(row, 0)
	return c
}

// arrive stores the last row that a consumer has.
func (c *consumers) arrive(got *atomic.Int64, row int) {
	got.Store(int64(row))
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// all waits until no consumer is further behind the row than that.
func (c *consumers) all(row, behind int) {
	c.Helper()
	late := time.After(time.Minute)
	for i := 0; i < len(c.got); {
		if int(c.got[i].Load()) >= row-behind {
			i++
			continue
		}
		select {
		case <-c.news:
		case <-late:
			c.Fatalf("consumer %d has row %d of %d", i, c.got[i].Load(), row)
		}
	}
}

func (c *consumers) close() {
	c.end()
	c.running.Wait()
}

// poll reads new rows again and again. It pauses after a page that is not full.
func (c *consumers) poll(pool *sql.DB, got *atomic.Int64, row int) {
	const interval = 50 * time.Millisecond
	query := fmt.Sprintf("SELECT id, payload FROM items WHERE id > %s ORDER BY id LIMIT %d",
		c.Dialect.Placeholder(1), feedtype.DefaultLimit)
	rest := rand.N(interval)
	for {
		select {
		case <-time.After(rest):
		case <-c.ctx.Done():
			return
		}
		rows, err := pool.QueryContext(c.ctx, query, row)
		if err != nil {
			return
		}
		n := 0
		for rows.Next() {
			var text string
			if err := rows.Scan(&row, &text); err != nil {
				c.Error(err)
			}
			n++
		}
		_ = rows.Close()
		if c.arrive(got, row); n < feedtype.DefaultLimit {
			rest = interval
		} else {
			rest = 0
		}
	}
}

// publishing is a publisher in this process, and the function that ends it.
func (b *bed) publishing(f *rowfeed.Feed) (stop func()) {
	ctx, end := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.RunPublisher(ctx) }()
	return func() {
		end()
		b.Must(<-ended)
	}
}

// fetch follows the feed from its head. Each row of the table has exactly one entry.
func (c *consumers) fetch(f *rowfeed.Feed, got *atomic.Int64, row int) {
	for ask := (rowfeed.Request{After: rowfeed.Now}); ; ask.Wait = time.Minute {
		page, err := f.Fetch(c.ctx, ask)
		switch {
		case c.ctx.Err() != nil:
			return
		case err != nil:
			c.Error(err)
			return
		}
		ask.After = page.Cursor
		row += len(page.Entries)
		c.arrive(got, row)
	}
}

// read follows the feed over HTTP.
func (c *consumers) read(conn net.Conn, how string, got *atomic.Int64, row int) {
	lines := bufio.NewReaderSize(conn, 64<<10)
	// next returns the number of entries of the next line, and its cursor.
	next := func(entry, cursor string) (entries int, after string, err error) {
		line, err := lines.ReadSlice('\n')
		entries = bytes.Count(line, []byte(entry))
		if _, rest, ok := bytes.Cut(line, []byte(cursor)); ok && cursor != "" {
			rest, _, _ = bytes.Cut(rest, []byte(`"`))
			after = string(rest)
		}
		return entries, after, err
	}
	if how == byStream {
		ask(conn, "/_feeds/stream/items?after=now")
		for begun := false; ; {
			entries, _, err := next("data: {", "")
			switch {
			case err != nil:
				return
			case !begun: // the first line has arrived, so the server knows the cursor
				begun = true
				c.arrive(got, row)
			case entries > 0:
				row += entries
				c.arrive(got, row)
			}
		}
	}
	for path := "/_feeds/fetch/items?after=now"; ; {
		ask(conn, path)
		entries, after := 0, ""
		for after == "" {
			var err error
			if entries, after, err = next(`{"position"`, `"cursor":"`); err != nil {
				return
			}
		}
		row += entries
		c.arrive(got, row)
		path = "/_feeds/fetch/items?" + how + "&after=" + after
	}
}

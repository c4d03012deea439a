package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestIdle counts what a publisher asks of a quiet database, and times the first
// change after the quiet: from the writer's commit to the positions' commit.
func TestIdle(t *testing.T) {
	const poll = 50 * time.Millisecond // Config.IdlePoll's default
	out := table{title: "A quiet feed (polled every 50 ms)", head: []string{"database", "statements/s", "statements ÷ polls",
		"first change, p50 ms", "p99 ms", "p50 ÷ poll", "p99 ÷ poll", "with Wake, p50 ms"}}
	each(t, func(b *bed) {
		var statements atomic.Int64
		pool := b.OpenTapped(b.T, testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
			statements.Add(1)
			return nil
		}})
		published := make(chan time.Time, 1000)
		db := b.rowfeed(pool, &rowfeed.Config{Observer: &rowfeed.Observer{
			Published: func(rowfeed.PublishEvent) { published <- time.Now() },
		}})
		b.fill("items", scaled(10_000))
		f := b.add(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		_, err := f.Publish(b.Context())
		b.must(err)
		for len(published) > 0 {
			<-published
		}
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := f.RunPublisher(ctx); err != nil {
				b.Errorf("RunPublisher: %v", err)
			}
		})
		time.Sleep(time.Second) // its start, and the pause growing to its full length
		before := statements.Load()
		time.Sleep(*window)
		rate := float64(statements.Load()-before) / window.Seconds()

		id := scaled(10_000)
		first := func(wake bool) float64 {
			time.Sleep(300*time.Millisecond + rand.N(poll)) // the pause grows again
			id++
			b.sql(fmt.Sprintf("INSERT INTO items VALUES (%d, 'x')", id))
			committed := time.Now()
			if wake {
				f.Wake()
			}
			return milliseconds((<-published).Sub(committed))
		}
		var polled, woken figure
		for range scaled(*reps * 20) {
			polled = append(polled, first(false))
			woken = append(woken, first(true))
		}
		cancel()
		running.Wait()
		inPolls := func(ms float64) string { return fmt.Sprintf("%.2f", ms/milliseconds(poll)) }
		out.row(b.Engine.Name, fmt.Sprintf("%.1f", rate), fmt.Sprintf("%.2f", rate*poll.Seconds()),
			fmt.Sprintf("%.1f", polled.median()), fmt.Sprintf("%.1f", polled.quantile(0.99)), inPolls(polled.median()), inPolls(polled.quantile(0.99)),
			fmt.Sprintf("%.1f", woken.median()))
	})
	out.print()
}

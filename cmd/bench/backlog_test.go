package bench

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

var backlogRows = flag.Int("backlog", 1_000_000, "rows of TestBacklog, 100000 at least; ten million take 10 GB of disk")

// TestBacklog publishes a table from its first row on, and then has a consumer read all of it, in
// pages of 1000: what a key costs in each part of the way, and how much memory this process has
// meanwhile. Then, at that size, what new rows and updates all over the table cost.
func TestBacklog(t *testing.T) {
	const parts = 10
	rows := scaled(*backlogRows)
	out := table{Title: fmt.Sprintf("A backlog of %s rows, tenth by tenth", count(float64(rows))),
		Head: []string{"database", "measure", "1st", "2nd", "5th", "9th", "10th", "last ÷ 2nd"}}
	more := table{Title: fmt.Sprintf("At %s rows", count(float64(rows))), Head: []string{"database",
		"new rows, µs per key", "updates all over it, µs per key", "page at the start, ms", "in the middle",
		"at the end"}}
	each(t, func(b *bed) {
		b.fill("items", rows)
		p := b.passes(b.Pool, 5000)
		f := b.Feed(p.db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		line := func(measure string, format string, of [parts]float64) {
			cells := []string{b.Engine.Name, measure}
			for _, part := range []int{0, 1, 4, parts - 2, parts - 1} {
				cells = append(cells, fmt.Sprintf(format, of[part]))
			}
			out.Row(append(cells, fmt.Sprintf("%.2f", of[parts-1]/of[1]))...)
		}

		var took, memory, heap [parts]float64
		done, started := 0, time.Now()
		for keys := p.pass(f); keys > 0; keys = p.pass(f) {
			part := min(done*parts/rows, parts-1)
			took[part] += time.Since(started).Seconds() * 1e6 / float64(rows/parts)
			memory[part] = max(memory[part], resident(b.T))
			done, started = done+keys, time.Now()
		}
		line("publishing, µs per key", "%.1f", took)
		line("memory while publishing, MiB", "%.0f", memory)

		took, memory = [parts]float64{}, [parts]float64{}
		done, started = 0, time.Now()
		c := &rowfeed.Consumer{Name: "c", Source: f, DB: p.db, Options: rowfeed.ConsumerOptions{Limit: 1000},
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				part := min(done*parts/rows, parts-1)
				took[part] += time.Since(started).Seconds() * 1e6 / float64(rows/parts)
				if done%(rows/parts/10) < len(entries) {
					memory[part] = max(memory[part], resident(b.T))
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					heap[part] = max(heap[part], float64(m.HeapInuse)/(1<<20))
				}
				done, started = done+len(entries), time.Now()
				return nil
			}}
		b.Must(c.RunOnce(b.Context()))
		if done != rows {
			b.Fatalf("%d entries of %d", done, rows)
		}
		line("consuming, µs per entry", "%.1f", took)
		line("memory while consuming, MiB", "%.0f", memory)
		line("of it the heap, MiB", "%.0f", heap)

		var fresh, spread figure
		pages := map[int]figure{}
		for rep := range 3 {
			publish := func(to *figure) {
				keys, took := p.drain(f)
				*to = append(*to, took.Seconds()*1e6/float64(keys))
			}
			n := min(5000, rows)
			b.SQL(fmt.Sprintf("INSERT INTO items SELECT id + %d, payload FROM items WHERE id <= %d", rows+rep*n, n))
			publish(&fresh)
			every := max(rows/n, 1)
			b.SQL(fmt.Sprintf("UPDATE items SET payload = '%s' WHERE id %% %d = %d AND id <= %d",
				payload[:150], every, rep%every, rows))
			publish(&spread)
			for i, after := range []int{0, rows / 2, rows - 1000} {
				started := time.Now()
				_, err := f.Fetch(b.Context(), rowfeed.Request{After: cursor(max(after, 0)), Limit: 1000})
				b.Must(err)
				pages[i] = append(pages[i], milliseconds(time.Since(started)))
			}
		}
		more.Row(b.Engine.Name, fmt.Sprintf("%.1f", fresh.Median()), fmt.Sprintf("%.1f", spread.Median()),
			fmt.Sprintf("%.1f", pages[0].Median()), fmt.Sprintf("%.1f", pages[1].Median()), fmt.Sprintf("%.1f",
				pages[2].Median()))
	})
	out.Print()
	more.Print()
}

// resident is this process's memory in MiB, where the system tells.
func resident(t *testing.T) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return float64(n) / 1024
		}
	}
	return 0
}

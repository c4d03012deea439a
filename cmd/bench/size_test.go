package bench

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestSize measures what a published key and a page cost in tables of growing size.
func TestSize(t *testing.T) {
	head := []string{"database", "measure"}
	sizes := []int{10_000, 100_000, 1_000_000}
	for _, size := range sizes {
		head = append(head, count(float64(size))+" rows")
	}
	out := table{Title: "Cost against the size of the table (batches of 1000)", Head: append(head, "1 M ÷ 10 k")}
	pages := table{Title: "Pages of 1000 entries, ms",
		Head: []string{"database", "rows", "start", "middle", "end", "end ÷ start"}}
	each(t, func(b *bed) {
		results := figures[string]{}
		p := b.passes(b.Pool, 1000)
		feeds := map[int]*rowfeed.Feed{}
		next := map[int]int{}
		for _, size := range sizes {
			name := fmt.Sprint("rows", size)
			rows := scaled(size)
			b.fill(name, rows)
			feeds[size] = b.Feed(p.db, rowfeed.FeedSpec{Name: name, Table: name})
			p.drain(feeds[size])
			next[size] = rows
		}
		for range *reps * 7 {
			for _, size := range sizes {
				spare := max(scaled(size)-1000, 0)
				for where, after := range map[string]int{"start": 0, "middle": spare / 2, "end": spare} {
					started := time.Now()
					page, err := feeds[size].Fetch(b.Context(), rowfeed.Request{After: cursor(after), Limit: 1000})
					b.Must(err)
					results.Add(fmt.Sprint(where, size), milliseconds(time.Since(started)))
					if want := min(scaled(size), 1000); len(page.Entries) != want {
						b.Fatalf("%d entries of %d", len(page.Entries), want)
					}
				}
			}
		}
		const batch = 5000
		for range *reps {
			for _, size := range sizes {
				publish := func(measure string) {
					keys, took := p.drain(feeds[size])
					results.Add(fmt.Sprint(measure, size), took.Seconds()*1e6/float64(keys))
				}
				n := scaled(batch)
				b.SQL(fmt.Sprintf("INSERT INTO rows%d SELECT id + %d, payload FROM rows%d WHERE id <= %d",
					size, next[size], size, n))
				next[size] += n
				publish("new rows")
				// Keys all over the table: every n-th, each time from another start.
				every := max(scaled(size)/n, 1)
				b.SQL(fmt.Sprintf("UPDATE rows%d SET payload = '%s' WHERE id %% %d = %d",
					size, payload[:150], every, len(results[fmt.Sprint("spread", size)])%every))
				publish("spread")
			}
		}
		for _, m := range []struct{ name, title string }{
			{"new rows", "publishing new rows, µs per key"},
			{"spread", "publishing updates all over the table, µs per key"},
			{"end", "last page of 1000, ms"}} {
			cells := []string{b.Engine.Name, m.title}
			for _, size := range sizes {
				cells = append(cells, strconv.FormatFloat(results[fmt.Sprint(m.name, size)].Median(), 'f', 1, 64))
			}
			smallest, largest := results[fmt.Sprint(m.name, sizes[0])], results[fmt.Sprint(m.name, sizes[len(sizes)-1])]
			out.Row(append(cells, fmt.Sprintf("%.2f", largest.Median()/smallest.Median()))...)
		}
		for _, size := range sizes {
			cells := []string{b.Engine.Name, count(float64(size))}
			for _, where := range []string{"start", "middle", "end"} {
				cells = append(cells, strconv.FormatFloat(results[fmt.Sprint(where, size)].Median(), 'f', 2, 64))
			}
			pages.Row(append(cells, fmt.Sprintf("%.2f",
				results[fmt.Sprint("end", size)].Median()/results[fmt.Sprint("start", size)].Median()))...)
		}
	})
	out.Print()
	pages.Print()
}

// cursor is the cursor of a consumer of generation 1 at a position.
func cursor(position int) rowfeed.Cursor {
	if position == 0 {
		return ""
	}
	return rowfeed.Cursor(strconv.Itoa(position))
}

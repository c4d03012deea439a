package bench

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOldSnapshot publishes the same keys again and again while another connection has an old snapshot, compared with a
// server without one, pass by pass in turns. While the snapshot is open, deleted changes and former positions stay in
// their tables.
func TestOldSnapshot(t *testing.T) {
	const rounds = 6
	head := []string{"database", "measure"}
	for round := range rounds {
		head = append(head, fmt.Sprint("round ", round))
	}
	rows := scaled(100_000)
	out := table{Title: fmt.Sprintf("Publishing %s keys again and again with an old snapshot (batches of 1000)",
		count(float64(rows))), Head: head}
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			return // SQLite: nothing deleted stays in its table
		}
		ratios, beside, looks, pages := map[int]figure{}, map[int]figure{}, map[int]figure{}, map[int]figure{}
		for range *reps {
			var feeds []*rowfeed.Feed
			var publishers []*passes
			for held := range 2 {
				b := newBed(t, e)
				b.fill("items", rows)
				b.SQL("CREATE TABLE other (id bigint)")
				p := b.passes(b.Pool, 1000)
				f := b.Feed(p.db, rowfeed.FeedSpec{Name: "items", Table: "items"})
				if held == 1 {
					old, err := b.Pool.BeginTx(b.Context(),
						&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
					b.Must(err)
					defer old.Rollback()
					_, err = old.ExecContext(b.Context(), "SELECT count(*) FROM other")
					b.Must(err)
				}
				feeds, publishers = append(feeds, f), append(publishers, p)
			}
			for round := range rounds {
				if round > 0 {
					for i, f := range feeds {
						_, err := f.Admin().RepublishWhere(publishers[i].Context(), "", 10_000, nil)
						publishers[i].Must(err)
					}
				}
				took, keys := turns(func() int { return publishers[0].pass(feeds[0]) },
					func() int { return publishers[1].pass(feeds[1]) })
				if keys[0] != rows || keys[1] != rows {
					t.Fatalf("%v keys of %d", keys, rows)
				}
				ratios[round] = append(ratios[round], took[1].Seconds()/took[0].Seconds())
				beside[round] = append(beside[round], took[1].Seconds()*1e6/float64(rows))
				started := time.Now()
				publishers[1].pass(feeds[1])
				looks[round] = append(looks[round], milliseconds(time.Since(started)))
				started = time.Now()
				_, err := feeds[1].Fetch(t.Context(), rowfeed.Request{After: rowfeed.Now})
				publishers[1].Must(err)
				pages[round] = append(pages[round], milliseconds(time.Since(started)))
			}
		}
		for _, m := range []struct {
			name string
			of   map[int]figure
		}{
			{"µs per key with the snapshot", beside},
			{"÷ without it", ratios},
			{"a poll that finds nothing, ms", looks},
			{"a page at the head, ms", pages},
		} {
			cells := []string{e.Name, m.name}
			for round := range rounds {
				cells = append(cells, fmt.Sprintf("%.2f", m.of[round].Median()))
			}
			out.Row(cells...)
		}
	})
	out.Print()
}

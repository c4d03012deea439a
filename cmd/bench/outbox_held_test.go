package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TestHeld commits 200 rows per second while another transaction has inserted a row into the same table and stays open.
// It measures how long the rows of the other writers wait for the handler, compared with the same writers without an
// open transaction, and how long the held row takes after its own commit. In an outbox, the held row's record has a
// lower number than later ones.
func TestHeld(t *testing.T) {
	const perSecond = 200
	out := table{
		Title: fmt.Sprintf(
			"From commit to handler at %d commits/s with a writer that does not commit, ms",
			perSecond,
		),
		Head: []string{
			"database",
			"feed",
			"p50 without it",
			"p99",
			"longest",
			"p50 with it",
			"p99",
			"longest",
			"held for",
			"its own row",
		},
	}
	each(t, func(b *bed) {
		if !b.HasServer() {
			return // SQLite has one writer at a time: the open transaction stops all others, with or without rowfeed
		}
		db := b.Rowfeed(b.Pool, nil)
		commits := max(int(5*window.Seconds()*perSecond/3), 10)
		for _, mode := range []string{rowfeed.ModeSequence, rowfeed.ModeOutbox} {
			b.SQL("CREATE TABLE " + mode + "s (id BIGINT NOT NULL PRIMARY KEY, payload VARCHAR(200) NOT NULL)")
			l := b.latencies(
				db,
				b.Feed(
					db,
					rowfeed.FeedSpec{Name: mode, Table: mode + "s", Mode: mode, Capture: feedtype.CaptureTrigger},
				),
				mode+"s",
			)
			waits, id := map[bool]figure{}, 1
			var held, own figure
			for range *reps {
				waits[false] = append(waits[false], l.commit(id, commits, perSecond)...)
				id += commits
				stuck, err := b.Pool.BeginTx(b.Context(), nil)
				b.Must(err)
				_, err = stuck.ExecContext(b.Context(), l.insert(-id))
				b.Must(err)
				since := time.Now()
				waits[true] = append(waits[true], l.commit(id, commits, perSecond)...)
				held = append(held, milliseconds(time.Since(since)))
				b.Must(stuck.Commit())
				own = append(own, l.since(-id, time.Now()))
				id += commits
			}
			l.end()
			cells := []string{b.Engine.Name, mode}
			for _, beside := range []bool{false, true} {
				for _, q := range []float64{0.5, 0.99, 1} {
					cells = append(cells, fmt.Sprintf("%.1f", waits[beside].Quantile(q)))
				}
			}
			out.Row(append(cells, count(held.Median()), fmt.Sprintf("%.1f", own.Median()))...)
		}
	})
	out.Print()
}

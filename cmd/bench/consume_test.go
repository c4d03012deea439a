package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// TestConsume has a consumer read a feed from its beginning, by SQL and over HTTP, in
// pages of several sizes. Its handler writes one row for a page, so that what is
// measured is rowfeed's part: fetching, the transaction, the cursor.
func TestConsume(t *testing.T) {
	out := table{title: "Consuming, entries/s", head: []string{"database", "page", "from SQL", "over HTTP"}}
	each(t, func(b *bed) {
		rows := scaled(100_000)
		b.fill("items", rows)
		db := b.rowfeed(b.pool, nil)
		f := b.add(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		_, err := f.Publish(b.Context())
		b.must(err)
		b.sql("CREATE TABLE pages (entries INTEGER NOT NULL)")
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(db), nil))
		defer server.Close()
		sources := []rowfeed.Source{f, &feedhttp.Client{URL: server.URL, Feed: "items"}}
		for _, limit := range []int{100, 1000, 5000} {
			speed := figures[int]{}
			for range *reps {
				for i, source := range sources {
					handled := 0
					c := &rowfeed.Consumer{Name: fmt.Sprint("c", i), Source: source, DB: db, Limit: limit,
						Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
							handled += len(entries)
							_, err := tx.ExecContext(ctx, "INSERT INTO pages VALUES ("+strconv.Itoa(len(entries))+")")
							return err
						}}
					started := time.Now()
					b.must(c.RunOnce(b.Context()))
					took := time.Since(started)
					if handled != rows {
						b.Fatalf("%d entries of %d", handled, rows)
					}
					speed.add(i, float64(rows)/took.Seconds())
					_, err := db.DropConsumer(b.Context(), rowfeed.ConsumerID{Consumer: c.Name})
					b.must(err)
				}
			}
			out.row(b.Engine.Name, fmt.Sprint(limit), count(speed[0].median()), count(speed[1].median()))
		}
	})
	out.print()
}

// TestLatency commits 200 rows a second, one by one, and measures for each how long
// after its commit the handler has it, with publisher and consumer in one process.
func TestLatency(t *testing.T) {
	const perSecond = 200
	out := table{title: fmt.Sprintf("From commit to handler at %d commits/s, ms", perSecond), head: []string{"database", "p50", "p99", "commits"}}
	each(t, func(b *bed) {
		b.sql("CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, payload VARCHAR(200) NOT NULL)")
		db := b.rowfeed(b.pool, nil)
		f := b.add(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		l := b.latencies(db, f, "items")
		commits := max(int(float64(perSecond)*window.Seconds())*(*reps), 10)
		waits := l.commit(1, commits, perSecond)
		l.end()
		out.row(b.Engine.Name, fmt.Sprintf("%.1f", waits.quantile(0.5)), fmt.Sprintf("%.1f", waits.quantile(0.99)), fmt.Sprint(commits))
	})
	out.print()
}

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
	out := table{Title: "Consuming, entries/s", Head: []string{"database", "page", "from SQL", "over HTTP"}}
	each(t, func(b *bed) {
		rows := scaled(100_000)
		b.fill("items", rows)
		db := b.Rowfeed(b.Pool, nil)
		f := b.Feed(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		_, err := f.Publish(b.Context())
		b.Must(err)
		b.SQL("CREATE TABLE pages (entries INTEGER NOT NULL)")
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(db), nil))
		defer server.Close()
		sources := []rowfeed.Source{f, &feedhttp.Client{URL: server.URL, Feed: "items"}}
		for _, limit := range []int{100, 1000, 5000} {
			speed := figures[int]{}
			for range *reps {
				for i, source := range sources {
					handled := 0
					c := &rowfeed.Consumer{Name: fmt.Sprint("c", i), Source: source, DB: db,
						Options: rowfeed.ConsumerOptions{Limit: limit},
						Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
							handled += len(entries)
							_, err := tx.ExecContext(ctx, "INSERT INTO pages VALUES ("+strconv.Itoa(len(entries))+")")
							return err
						}}
					started := time.Now()
					b.Must(c.RunOnce(b.Context()))
					took := time.Since(started)
					if handled != rows {
						b.Fatalf("%d entries of %d", handled, rows)
					}
					speed.Add(i, float64(rows)/took.Seconds())
					_, err := db.Admin().DropConsumer(b.Context(), rowfeed.ConsumerID{Consumer: c.Name})
					b.Must(err)
				}
			}
			out.Row(b.Engine.Name, fmt.Sprint(limit), count(speed[0].Median()), count(speed[1].Median()))
		}
	})
	out.Print()
}

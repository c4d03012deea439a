// Pgx is an application on pgx: it writes in transactions of pgx's own, records there
// what it wrote, and consumes the feed with its effects in one transaction.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/pgxtx"
)

func main() {
	log.Println(shop(context.Background(), os.Getenv("DATABASE_URL")))
}

func shop(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	feeds, err := rowfeed.Open(ctx, stdlib.OpenDBFromPool(pool), postgres.New(), nil)
	if err != nil {
		return err
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		return err
	}
	orders, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders", Capture: "app"}, nil)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES (7, 'lamp')"); err != nil {
			return err
		}
		return orders.Record(ctx, pgxtx.In(tx), rowfeed.Key{7}) // both, or neither
	})
	if err != nil {
		return err
	}
	if _, err := orders.Publish(ctx); err != nil { // or `go orders.RunPublisher(ctx)`
		return err
	}
	bill := &rowfeed.Consumer{Name: "bill", Source: orders, DB: feeds, Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
		_, err := tx.ExecContext(ctx, "UPDATE bills SET orders = orders + $1", len(entries))
		return err
	}}
	return bill.RunOnce(ctx) // or Run
}

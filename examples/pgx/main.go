// Pgx is an application on pgx: it writes and records in pgx's transactions, and consumes the feed with its effects in
// one transaction.
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
	log.Println(shop(context.Background(), os.Getenv("DATABASE_URL"), 7, "INSERT INTO orders VALUES ($1, 'lamp')"))
}

type order struct {
	ID   int64
	Item string
}

// shop writes an order, and updates the bill.
func shop(ctx context.Context, url string, id int64, write string) error {
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
		if _, err := tx.Exec(ctx, write, id); err != nil {
			return err
		}
		return orders.Record(ctx, pgxtx.In(tx), rowfeed.Key{id}) // both, or neither
	})
	if err != nil {
		return err
	}
	if _, err := orders.Publish(ctx); err != nil { // or `go orders.RunPublisher(ctx)`
		return err
	}
	// A changed order arrives again: its row of the bill has its key.
	bill := &rowfeed.Consumer{Name: "bill", Source: orders, DB: feeds,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
			if e.Op == rowfeed.Delete {
				_, err := tx.ExecContext(ctx, "DELETE FROM bill WHERE id = $1", o.ID)
				return err
			}
			_, err := tx.ExecContext(ctx,
				"INSERT INTO bill VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET item = excluded.item", o.ID, o.Item)
			return err
		})}
	return bill.RunOnce(ctx) // or Run
}

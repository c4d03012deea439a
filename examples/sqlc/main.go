// Sqlc is an application with generated SQL: its Queries accept the consumer's transaction like any other.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

func main() {
	db, err := sql.Open("sqlite",
		"file:totals.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(total(context.Background(), db, "lamp"))
}

type order struct {
	ID   int64
	Item string
}

// total orders an item and returns the number of orders for it. A changed order arrives again, but counts
// once, because its id is the primary key of the table counted.
func total(ctx context.Context, db *sql.DB, item string) (int64, error) {
	for _, table := range []string{
		"orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)", "counted (id INTEGER PRIMARY KEY, item TEXT NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table); err != nil {
			return 0, err
		}
	}
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return 0, err
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		return 0, err
	}
	orders, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders"}, nil)
	if err != nil {
		return 0, err
	}
	if err := New(db).CreateOrder(ctx, item); err != nil {
		return 0, err
	}
	if _, err := orders.Publish(ctx); err != nil {
		return 0, err
	}
	totals := &rowfeed.Consumer{Name: "totals", Source: orders, DB: feeds,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
			if e.Op == rowfeed.Delete {
				return New(tx).UncountOrder(ctx, o.ID)
			}
			return New(tx).CountOrder(ctx, o.ID, o.Item)
		})}
	if err := totals.RunOnce(ctx); err != nil {
		return 0, err
	}
	return New(db).Total(ctx, item)
}

// Consume follows a feed over HTTP and keeps the stock of a warehouse: what an order
// takes from the stock and the cursor behind it are committed together, so that every
// order is counted once, whatever crashes.
package main

import (
	"context"
	"database/sql"
	"log"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:stock.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := stock(ctx, db, &feedhttp.Client{URL: "http://127.0.0.1:8080", Feed: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(consumer.Run(ctx))
}

type order struct {
	ID   int64
	Item string
}

func stock(ctx context.Context, db *sql.DB, orders rowfeed.Source) (*rowfeed.Consumer, error) {
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS taken (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL)"); err != nil {
		return nil, err
	}
	warehouse, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := warehouse.Migrate(ctx); err != nil { // the table of cursors is one of them
		return nil, err
	}
	return &rowfeed.Consumer{
		Name: "stock", Source: orders, DB: warehouse, OnFailure: rowfeed.SetAside,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
			if e.Op == rowfeed.Delete {
				return nil // orders are not taken back here
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO taken VALUES (?, 1) ON CONFLICT (item) DO UPDATE SET pieces = pieces + 1", o.Item)
			return err
		}),
	}, nil
}

// Consume follows a feed over HTTP, and keeps what orders use of a warehouse's stock. The effect of an entry and the
// cursor are committed together, so nothing is done twice or left out after a crash. An order arrives again when it is
// changed or republished: its row in the warehouse has its key, so it counts once.
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
	db, err := sql.Open("sqlite",
		"file:stock.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
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
	if _, err := db.ExecContext(ctx,
		"CREATE TABLE IF NOT EXISTS taken (id INTEGER PRIMARY KEY, item TEXT NOT NULL)"); err != nil {
		return nil, err
	}
	warehouse, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := warehouse.Migrate(ctx); err != nil { // makes the table of cursors, too
		return nil, err
	}
	return &rowfeed.Consumer{
		Name: "stock", Source: orders, DB: warehouse, OnFailure: rowfeed.SetAside,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
			if e.Op == rowfeed.Delete {
				_, err := tx.ExecContext(ctx, "DELETE FROM taken WHERE id = ?", o.ID)
				return err
			}
			_, err := tx.ExecContext(ctx,
				"INSERT INTO taken VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET item = excluded.item", o.ID, o.Item)
			return err
		}),
	}, nil
}

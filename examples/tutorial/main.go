// Tutorial is the consumer of docs/TUTORIAL.md: it keeps how much of each item is ordered, in the database of the
// orders. The effect of an entry and the cursor are one transaction.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

type order struct {
	ID   int64
	Item string
	N    int64
}

func main() {
	db, err := sql.Open("sqlite",
		"file:rowfeed.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	if err := tally(context.Background(), db, os.Getenv("DIE_AT")); err != nil {
		log.Fatal(err)
	}
}

// tally processes all current entries, and ends. dieAt is the item at which the process dies, to try a crash.
func tally(ctx context.Context, db *sql.DB, dieAt string) error {
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return err
	}
	orders, err := feeds.Feed(ctx, "orders")
	if err != nil {
		return err
	}
	consumer := &rowfeed.Consumer{Name: "tally", Source: orders, DB: feeds,
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
			// The order as of its previous entry, if there was one.
			if _, err := tx.ExecContext(ctx,
				"UPDATE totals SET n = n - (SELECT n FROM counted WHERE id = ?) WHERE item = (SELECT item FROM "+
					"counted WHERE id = ?)",
				o.ID, o.ID); err != nil {
				return err
			}
			if e.Op == rowfeed.Delete {
				_, err := tx.ExecContext(ctx, "DELETE FROM counted WHERE id = ?", o.ID)
				return err
			}
			if _, err := tx.ExecContext(ctx,
				"INSERT INTO counted VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET item = excluded.item, "+
					"n = excluded.n",
				o.ID, o.Item, o.N); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx,
				"INSERT INTO totals VALUES (?, ?) ON CONFLICT (item) DO UPDATE SET n = n + excluded.n", o.Item,
				o.N); err != nil {
				return err
			}
			if o.Item == dieAt {
				fmt.Println("dying at", o.Item)
				os.Exit(3)
			}
			return nil
		})}
	return consumer.RunOnce(ctx)
}

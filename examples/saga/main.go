// Saga is a step of a saga: an order is to be paid. The step reads orders, and writes commands for the bank into a
// table that is a feed itself. Then it reads the results. The effects and the cursor of a step are one transaction, so
// that no command is lost, and none is given twice.
package main

import (
	"context"
	"database/sql"
	"log"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:saga.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	feeds, steps, err := saga(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range steps {
		go func() { log.Fatal(step.Run(ctx)) }()
	}
	log.Fatal(publish(ctx, feeds))
}

type order struct {
	ID, Amount int64
	State      string
}

type payment struct {
	OrderID int64
	State   string // asked, paid, refused: the bank changes it
}

func saga(ctx context.Context, db *sql.DB) ([]*rowfeed.Feed, []*rowfeed.Consumer, error) {
	for _, table := range []string{
		"orders (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'new')",
		"payments (order_id INTEGER PRIMARY KEY, amount INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'asked')",
	} {
		if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table); err != nil {
			return nil, nil, err
		}
	}
	own, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, nil, err
	}
	if _, err := own.Migrate(ctx); err != nil {
		return nil, nil, err
	}
	var feeds []*rowfeed.Feed
	for _, table := range []string{"orders", "payments"} {
		feed, err := own.AddFeed(ctx, rowfeed.FeedSpec{Name: table, Table: table}, nil)
		if err != nil {
			return nil, nil, err
		}
		feeds = append(feeds, feed)
	}
	ask := rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, o order) error {
		if e.Op == rowfeed.Delete || o.State != "new" {
			return nil // the order arrives again when its state changes
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO payments (order_id, amount) VALUES (?, ?) ON CONFLICT DO NOTHING",
			o.ID, o.Amount)
		return err
	})
	settle := rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, p payment) error {
		state := map[string]string{"paid": "ship", "refused": "cancelled"}[p.State]
		if e.Op == rowfeed.Delete || state == "" {
			return nil // the bank has not answered yet
		}
		_, err := tx.ExecContext(ctx, "UPDATE orders SET state = ? WHERE id = ? AND state = 'new'", state, p.OrderID)
		return err
	})
	return feeds, []*rowfeed.Consumer{{Name: "ask", Source: feeds[0], DB: own, Handle: ask},
		{Name: "settle", Source: feeds[1], DB: own, Handle: settle}}, nil
}

func publish(ctx context.Context, feeds []*rowfeed.Feed) error {
	ended := make(chan error, len(feeds))
	for _, feed := range feeds {
		go func() { ended <- feed.RunPublisher(ctx) }()
	}
	return <-ended // returns an error only if continuing makes no sense
}

package rowfeed_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/rowfeed/rowfeed"
)

// A writer of a feed in mode blocking reserves the positions of its rows in the transaction that inserts them.
func ExampleFeed_Lock() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	feeds, _ := exampleFeed(ctx, db)
	must(
		db.Exec(
			"CREATE TABLE events (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, ulid BLOB NOT NULL, what TEXT, " +
				"UNIQUE (customer, ulid))",
		),
	)
	events, err := feeds.AddFeed(
		ctx,
		rowfeed.FeedSpec{
			Name:           "events",
			Table:          "events",
			Mode:           rowfeed.ModeBlocking,
			PositionColumn: "ulid",
			ShardColumn:    "customer",
		},
		nil,
	)
	if err != nil {
		log.Fatal(err)
	}

	const customer = 7
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	ulids, err := events.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{customer}})
	if err != nil {
		log.Fatal(err)
	}
	for i, what := range []string{"ordered", "paid"} {
		at, err := ulids.At(customer, int64(i))
		if err != nil {
			log.Fatal(err)
		}
		must(tx.ExecContext(ctx, "INSERT INTO events (customer, ulid, what) VALUES (?, ?, ?)", customer, at, what))
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

	page, err := events.Fetch(ctx, rowfeed.Request{Shards: rowfeed.One(customer)})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Entries {
		what, _ := e.Row.Get("what")
		fmt.Println("customer", e.Shard, what)
	}
	// Prints:
	// customer 7 ordered
	// customer 7 paid
}

// A writer of a feed in mode outbox appends a record of the row that it inserts, and does not wait for other writers.
// The first reader, or a publisher, gives the row a position.
func ExampleFeed_AppendOutbox() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	feeds, _ := exampleFeed(ctx, db)
	must(db.Exec("CREATE TABLE events (id INTEGER PRIMARY KEY, what TEXT)"))
	events, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}, nil)
	if err != nil {
		log.Fatal(err)
	}

	const customer = 7
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	must(tx.ExecContext(ctx, "INSERT INTO events VALUES (1, 'ordered')"))
	happened := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	record := rowfeed.OutboxRecord{Shard: customer, Hint: happened, Key: rowfeed.Key{1}}
	if err := events.AppendOutbox(ctx, rowfeed.InTx(tx), record); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

	page, err := events.Fetch(ctx, rowfeed.Request{After: rowfeed.At(happened), Shards: rowfeed.One(customer)})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Entries {
		what, _ := e.Row.Get("what")
		fmt.Println("customer", e.Shard, what, e.Position[:10]) // the first 10 characters are the time
	}
	// Prints:
	// customer 7 ordered 01KG9YS7G0
}

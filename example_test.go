package rowfeed_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// openExample makes a database with the table kv in a temporary folder.
func openExample() (db *sql.DB, remove func()) {
	folder, err := os.MkdirTemp("", "rowfeed-example-")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open(
		"sqlite",
		"file:"+filepath.Join(folder, "app.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)",
	)
	if err != nil {
		log.Fatal(err)
	}
	must(db.Exec("CREATE TABLE kv (id INTEGER PRIMARY KEY, k TEXT NOT NULL, v TEXT)"))
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

func must(_ sql.Result, err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A feed of a table, from a plain *sql.DB to the first page.
func Example() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()

	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	kv, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		log.Fatal(err)
	}

	must(db.Exec("INSERT INTO kv VALUES (1, 'fred', 'jim'), (2, 'ann', 'bob')"))
	must(db.Exec("DELETE FROM kv WHERE id = 2"))
	must(db.Exec("UPDATE kv SET v = 'joe' WHERE id = 1"))
	if _, err := kv.Publish(ctx); err != nil { // or run it in the background: go kv.RunPublisher(ctx)
		log.Fatal(err)
	}
	page, err := kv.Fetch(ctx, rowfeed.Request{After: rowfeed.Beginning})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Entries {
		var row struct{ K, V string }
		if err := e.Decode(&row); err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Position, e.Op, row.K, row.V)
	}
	fmt.Println("store page.Cursor and send it next time; more:", page.More)
	// Prints:
	// 2 upsert fred joe
	// store page.Cursor and send it next time; more: false
}

// A consumer's loop: fetch above the cursor, handle, store the cursor.
func ExampleFeed_Fetch() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	_, kv := exampleFeed(ctx, db)
	for i := 1; i <= 5; i++ {
		must(db.Exec("INSERT INTO kv VALUES (?, 'key', 'value')", i))
	}
	if _, err := kv.Publish(ctx); err != nil {
		log.Fatal(err)
	}
	cursor := rowfeed.Beginning
	for {
		page, err := kv.Fetch(ctx, rowfeed.Request{After: cursor, Limit: 2})
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range page.Entries {
			fmt.Print(e.Position, " ")
		}
		cursor = page.Cursor // in one transaction with what the entries did
		fmt.Println("more:", page.More)
		if !page.More {
			break // the page reached the head: wait a little, then continue
		}
	}
	// Prints:
	// 1 2 more: true
	// 3 4 more: true
	// 5 more: false
}

// A feed without triggers: the application records what it writes, in the same transaction.
func ExampleFeed_Record() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	kv, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: "app"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	must(tx.ExecContext(ctx, "INSERT INTO kv VALUES (7, 'fred', 'jim')"))
	if err := kv.Record(ctx, rowfeed.InTx(tx), rowfeed.Key{7}); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	kv.Wake() // a publisher of this process polls at once
	n, err := kv.Publish(ctx)
	fmt.Println(n, err)
	// Prints: 1 <nil>
}

// Feeds served over HTTP, and read through a client like feeds of this process.
func Example_http() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	feeds, kv := exampleFeed(ctx, db)
	must(db.Exec("INSERT INTO kv VALUES (1, 'fred', 'jim')"))
	if _, err := kv.Publish(ctx); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(feeds), nil))
	defer server.Close()

	var source rowfeed.Source = &feedhttp.Client{URL: server.URL, Feed: "kv"}
	page, err := source.Fetch(ctx, rowfeed.Request{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Entries {
		fmt.Println(e.Position, e.Op, string(e.Key.AppendJSON(nil)))
	}
	// Prints:
	// 1 upsert {"id":1}
}

// One process at a time does a job. What it writes in the same database is fenced.
func ExampleLease_Hold() {
	ctx := context.Background()
	db, remove := openExample()
	defer remove()
	feeds, _ := exampleFeed(ctx, db)

	err := feeds.Lease("nightly", 10*time.Second).Hold(ctx, func(ctx context.Context, claim *rowfeed.Claim) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO kv VALUES (1, 'epoch', ?)", claim.Epoch()); err != nil {
			return err
		}
		if err := claim.Assert(ctx, rowfeed.InTx(tx)); err != nil { // last, right before the COMMIT
			return err
		}
		return tx.Commit()
	})
	leases, _ := feeds.Admin().Leases(ctx)
	fmt.Println(err, leases[0].Name, leases[0].State, leases[0].Epoch)
	// Prints:
	// <nil> nightly free 1
}

func exampleFeed(ctx context.Context, db *sql.DB) (*rowfeed.DB, *rowfeed.Feed) {
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	kv, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return feeds, kv
}

// Serve is an application that publishes a table of its own database, and serves the feed next to its own pages.
package main

import (
	"context"
	"database/sql"
	"log"
	"net"
	"net/http"
	"time"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func main() {
	db, err := sql.Open("sqlite", "file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(serve(context.Background(), db, listener))
}

func serve(ctx context.Context, db *sql.DB, listener net.Listener) error {
	if _, err := db.ExecContext(ctx,
		"CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)"); err != nil {
		return err
	}
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return err
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		return err
	}
	orders, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders"}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- orders.RunPublisher(ctx) }() // several processes may do so

	mux := http.NewServeMux()
	mux.Handle("/_feeds/", feedhttp.NewHandler(feedhttp.Of(feeds), nil))
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if _, err := db.ExecContext(r.Context(), "INSERT INTO orders (item) VALUES (?)",
			r.FormValue("item")); err != nil {
			http.Error(w, "the order could not be stored", http.StatusInternalServerError)
			return
		}
		orders.Wake() // the publisher polls at once
	})
	pages := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer pages.Close()
	go func() { ended <- pages.Serve(listener) }()
	return <-ended
}

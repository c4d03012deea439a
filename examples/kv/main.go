// Kv keeps a copy of a table in another database, exactly as it was last: what an entry
// does and the cursor behind it are committed together. When the feed begins anew (after a
// restore, say) the copy stays readable, and loses in the end what is not there any more.
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
		"file:replica.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	copying, err := replica(ctx, db, &feedhttp.Client{URL: "http://127.0.0.1:8080", Feed: "kv"})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(copying.Run(ctx))
}

type row struct {
	ID int64
	V  *string
}

func replica(ctx context.Context, db *sql.DB, source rowfeed.Source) (*rowfeed.Consumer, error) {
	if _, err := db.ExecContext(
		ctx, "CREATE TABLE IF NOT EXISTS kv (id INTEGER PRIMARY KEY, v TEXT, stale INTEGER NOT NULL DEFAULT 0)",
	); err != nil {
		return nil, err
	}
	to, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := to.Migrate(ctx); err != nil { // the table of cursors is one of them
		return nil, err
	}
	run := func(statement string) func(context.Context, *sql.Tx) error {
		return func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, statement)
			return err
		}
	}
	return &rowfeed.Consumer{
		Name: "replica", Source: source, DB: to,
		Options: rowfeed.ConsumerOptions{
			OnRefused:  func(context.Context, *sql.Tx, error) error { return nil }, // begin again
			OnBegin:    run("UPDATE kv SET stale = 1"),
			OnComplete: run("DELETE FROM kv WHERE stale = 1"),
		},
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, r row) error {
			if e.Op == rowfeed.Delete {
				_, err := tx.ExecContext(ctx, "DELETE FROM kv WHERE id = ?", r.ID)
				return err
			}
			_, err := tx.ExecContext(ctx,
				"INSERT INTO kv (id, v) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v, stale = 0", r.ID,
				r.V)
			return err
		}),
	}, nil
}

// Search keeps a full-text index (SQLite's FTS5) of a table that is elsewhere. The index and
// the cursor are one database and one transaction: what is found is the table as it was at
// the cursor, and after a crash the index goes on where it was.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("sqlite",
		"file:index.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	indexer, err := index(ctx, db, &feedhttp.Client{URL: "http://127.0.0.1:8080", Feed: "articles"})
	if err != nil {
		log.Fatal(err)
	}
	if err := indexer.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(search(ctx, db, "feed"))
}

type article struct {
	ID          int64
	Title, Body string
}

func index(ctx context.Context, db *sql.DB, articles rowfeed.Source) (*rowfeed.Consumer, error) {
	if _, err := db.ExecContext(ctx,
		"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (title, body, tokenize = 'porter')"); err != nil {
		return nil, err
	}
	own, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := own.Migrate(ctx); err != nil { // the table of cursors is one of them
		return nil, err
	}
	return &rowfeed.Consumer{
		Name: "index", Source: articles, DB: own, OnFailure: rowfeed.SetAside,
		// An index is made anew quickly: whatever the feed refuses, begin with an empty one.
		Options: rowfeed.ConsumerOptions{
			OnRefused: func(context.Context, *sql.Tx, error) error { return nil },
			OnBegin: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "DELETE FROM words")
				return err
			},
		},
		Handle: rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, a article) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM words WHERE rowid = ?", a.ID)
			if err == nil && e.Op == rowfeed.Upsert {
				_, err = tx.ExecContext(ctx, "INSERT INTO words (rowid, title, body) VALUES (?, ?, ?)", a.ID, a.Title,
					a.Body)
			}
			return err
		}),
	}, nil
}

// search answers the ids of articles with the words, the best first.
func search(ctx context.Context, db *sql.DB, words string) (ids []int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank", words)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

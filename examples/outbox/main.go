// Outbox sends e-mails for what is committed, and for nothing else: a mail is a row, written
// in the transaction of what it is about, with a record in the feed's outbox. Sending is no
// part of any transaction. So a mail is noted as sent where that is known, and has an id by which the
// mail server knows one that comes again after a crash in between.
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
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:shop.db?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	feeds, mails, err := open(ctx, db)
	if err != nil {
		log.Fatal(err)
	}
	if err := order(ctx, db, mails, 1, "ann@example.org"); err != nil {
		log.Fatal(err)
	}
	log.Fatal(sender(feeds, mails, func(_ context.Context, id string, m mail) error {
		_, err := fmt.Println(id, m.Receiver, m.Body) // your mail server's client
		return err
	}).Run(ctx))
}

type mail struct {
	ID             int64
	Receiver, Body string
}

func open(ctx context.Context, db *sql.DB) (*rowfeed.DB, *rowfeed.Feed, error) {
	for _, table := range []string{
		"orders (id INTEGER PRIMARY KEY)", "mails (id INTEGER PRIMARY KEY, receiver TEXT NOT NULL, body TEXT NOT NULL)",
	} {
		if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table); err != nil {
			return nil, nil, err
		}
	}
	feeds, err := rowfeed.Open(ctx, db, sqlite.New(), nil)
	if err != nil {
		return nil, nil, err
	}
	if _, err := feeds.Migrate(ctx); err != nil {
		return nil, nil, err
	}
	mails, err := feeds.AddFeed(ctx, rowfeed.FeedSpec{Name: "mails", Table: "mails", Mode: rowfeed.ModeOutbox}, nil)
	return feeds, mails, err
}

// order takes an order and leaves a mail about it, both or neither.
func order(ctx context.Context, db *sql.DB, mails *rowfeed.Feed, id int64, receiver string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO mails VALUES (?, ?, 'Thank you')", id, receiver); err != nil {
		return err
	}
	if err := mails.AppendOutbox(ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{id}}); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", id); err != nil {
		return err
	}
	return tx.Commit()
}

// sender sends each mail, in the order in which they were written. A mail's transaction is
// open while it is sent: bound how long send may take, on SQLite all writers wait for it.
func sender(
	feeds *rowfeed.DB, mails rowfeed.Source, send func(ctx context.Context, id string, m mail) error,
) *rowfeed.Consumer {
	handle := rowfeed.Each(func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry, m mail) error {
		first, err := feeds.MarkProcessed(ctx, rowfeed.InTx(tx), "mailer", "mails", e)
		if err != nil || !first {
			return err
		}
		return send(ctx, fmt.Sprintf("<%d.%d.%s@shop>", e.Generation, e.Shard, e.Position), m)
	})
	// a mail, a transaction
	return &rowfeed.Consumer{Name: "mailer", Source: mails, DB: feeds, OnFailure: rowfeed.SetAside, Handle: handle,
		Options: rowfeed.ConsumerOptions{Limit: 1}}
}

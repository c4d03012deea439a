// Outbox sends e-mails only for committed orders. A mail is a row, written in the transaction of its order, with a
// record in the feed's outbox. Sending is not part of a transaction. So the sender stores that a mail was sent, and
// each mail has an id by which the mail server recognizes a mail that is sent again after a crash.
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

// order inserts an order and a mail about it, in one transaction.
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

// sender sends the mails in the order in which they were written. The transaction of a mail is open while it is sent,
// so send needs a timeout: on SQLite all writers wait for it.
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
	// one mail per transaction
	return &rowfeed.Consumer{Name: "mailer", Source: mails, DB: feeds, OnFailure: rowfeed.SetAside, Handle: handle,
		Options: rowfeed.ConsumerOptions{Limit: 1}}
}

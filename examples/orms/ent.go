package main

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/examples/orms/ent"
)

// inTx is a driver in a transaction: when ent begins a transaction for a statement, it gets this one.
type inTx struct{ dialect.Driver }

func (d inTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d.Driver), nil }

func withEnt(ctx context.Context, db *sql.DB, feed *rowfeed.Feed) error {
	client := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, db)))
	chair, err := client.Product.Create().SetName("chair").SetPrice(90).Save(ctx)
	if err != nil {
		return err
	}
	// A transaction for both: ent's own does not expose the inner one.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	within := ent.NewClient(ent.Driver(inTx{entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})}))
	if err := within.Product.UpdateOneID(chair.ID).SetPrice(80).Exec(ctx); err != nil {
		return err
	}
	if err := feed.Republish(ctx, rowfeed.InTx(tx), rowfeed.Key{chair.ID}); err != nil {
		return err
	}
	return tx.Commit()
}

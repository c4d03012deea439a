package rowfeed

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Tx is the caller's open transaction, for calls that take part in it. InTx makes one
// of a *sql.Tx, pgxtx.In one of a pgx.Tx. Nothing that runs each statement by itself
// is one, be it a pool or an adapter of a pool, so that a call cannot leave the
// caller's transaction unnoticed.
type Tx interface {
	// Exec answers the number of rows affected.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (dialect.Rows, error)
	// Transaction does nothing. Who implements it promises that Exec and Query run in
	// one transaction, which the caller will end, and answer an error that wraps sql.ErrTxDone
	// from then on: in a later transaction of the connection ULIDs would pass for its own.
	Transaction()
}

// InTx adapts a *sql.Tx.
func InTx(tx *sql.Tx) Tx {
	if tx == nil {
		return NoTx("InTx was given a nil *sql.Tx")
	}
	return ownTx{dialect.On(tx)}
}

// ownTx is a querier that is known to run in one transaction.
type ownTx struct{ dialect.Querier }

func (ownTx) Transaction() {}

// NoTx is what adapters make of something that is no transaction: every call of it
// answers an error with code InvalidRequest and this text.
type NoTx string

// Exec answers the error.
func (n NoTx) Exec(context.Context, string, ...any) (int64, error) { return 0, n.err() }

// Query answers the error.
func (n NoTx) Query(context.Context, string, ...any) (dialect.Rows, error) { return nil, n.err() }

// Transaction does nothing.
func (NoTx) Transaction() {}

func (n NoTx) err() error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: "transaction", Cause: string(n), Param: "tx",
		Next: "begin a transaction, hand it in, and commit it yourself"}
}

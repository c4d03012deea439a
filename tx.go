package rowfeed

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Tx is the caller's open transaction, for methods that take part in it. InTx makes a Tx of a *sql.Tx, and pgxtx.In
// of a pgx.Tx. A pool does not implement Tx: so a statement cannot run outside the caller's transaction unnoticed.
type Tx interface {
	// Exec returns the number of rows affected.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (dialect.Rows, error)
	// Transaction does nothing. A type that has it promises that Exec and Query run in one transaction, which the
	// caller ends, and that they return an error that wraps sql.ErrTxDone afterwards. Otherwise the ULIDs of a
	// transaction could be used in a later transaction of the same connection.
	Transaction()
}

// InTx makes a Tx of a *sql.Tx.
func InTx(tx *sql.Tx) Tx {
	if tx == nil {
		return NoTx("InTx was given a nil *sql.Tx")
	}
	return ownTx{dialect.On(tx)}
}

// orNoTx returns the transaction, or a Tx that returns errors if there is none.
func orNoTx(tx Tx) Tx {
	if tx == nil {
		return NoTx("the Tx is nil")
	}
	return tx
}

// ownTx is a querier that is known to run in one transaction.
type ownTx struct{ dialect.Querier }

func (ownTx) Transaction() {}

// NoTx is a Tx without a transaction, for adapters that were given none. Each method returns an error with the code
// InvalidRequest and this text.
type NoTx string

// Exec returns the error.
func (n NoTx) Exec(context.Context, string, ...any) (int64, error) { return 0, n.err() }

// Query returns the error.
func (n NoTx) Query(context.Context, string, ...any) (dialect.Rows, error) { return nil, n.err() }

// Transaction does nothing.
func (NoTx) Transaction() {}

func (n NoTx) err() error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: "transaction", Cause: string(n), Param: "tx",
		Next: "begin a transaction, hand it in, and commit it yourself"}
}

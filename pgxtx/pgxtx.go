// Package pgxtx lets calls of rowfeed take part in a pgx transaction, for applications that do not use database/sql.
package pgxtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// In adapts an open transaction: feed.Record(ctx, pgxtx.In(tx), key). The compiler refuses a pool or a connection,
// which have no Commit. Every call refuses a value that is not in a transaction, and a transaction that has ended.
func In(tx pgx.Tx) rowfeed.Tx {
	switch {
	case tx == nil:
		return rowfeed.NoTx("pgxtx.In was given a nil pgx.Tx")
	case tx.Conn() == nil:
		return rowfeed.NoTx("pgxtx.In was given a pgx.Tx without a connection")
	}
	return adapter{tx}
}

type adapter struct{ tx pgx.Tx }

// Transaction marks it as a transaction; see [rowfeed.Tx].
func (adapter) Transaction() {}

// open returns an error unless the connection is in a transaction block. Otherwise every statement would be a
// transaction of its own.
func (a adapter) open() rowfeed.Tx {
	const idle = 'I'
	if a.tx.Conn().PgConn().TxStatus() == idle {
		return rowfeed.NoTx(
			"the connection of the pgx.Tx has no open transaction: it was committed or rolled back, or never begun",
		)
	}
	return nil
}

// Exec returns the number of affected rows.
func (a adapter) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if refused := a.open(); refused != nil {
		return refused.Exec(ctx, query)
	}
	tag, err := a.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), ended(err)
}

// Query implements [rowfeed.Tx].
func (a adapter) Query(ctx context.Context, query string, args ...any) (dialect.Rows, error) {
	if refused := a.open(); refused != nil {
		return refused.Query(ctx, query)
	}
	found, err := a.tx.Query(ctx, query, args...)
	if err != nil {
		return nil, ended(err)
	}
	return rows{found}, nil
}

// ended returns the error of database/sql for a transaction that has ended. A nested transaction may have ended while
// the connection is in the outer one.
func ended(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	return err
}

// rows has a Close that returns the error, as database/sql's.
type rows struct{ pgx.Rows }

func (r rows) Close() error {
	r.Rows.Close()
	return r.Rows.Err()
}

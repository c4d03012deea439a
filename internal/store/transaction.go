package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// Once runs fn in a transaction, without retries. The two arguments of fn are the same transaction.
func (s *Store) Once(ctx context.Context, p dialect.Purpose, fn func(*sql.Tx, dialect.Querier) error) error {
	begin, beginning := s.SQL.BeginTx, s.Dialect.Begin(p, s.Names)
	if beginning.After != "" {
		conn, err := s.SQL.Conn(ctx)
		if err != nil {
			return err
		}
		defer restoreSession(ctx, conn, beginning.After)
		begin = conn.BeginTx
	}
	tx, err := begin(ctx, beginning.Options)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	for _, setting := range beginning.First {
		if _, err := q.Exec(ctx, setting); err != nil {
			return err
		}
	}
	if err := fn(tx, q); err != nil {
		return err
	}
	return tx.Commit()
}

// restoreTimeout limits how long a connection that is returned to the pool waits until it is restored.
const restoreTimeout = 5 * time.Second

// restoreSession returns a connection to the pool as it was before the transaction, and closes it if that fails.
func restoreSession(ctx context.Context, conn *sql.Conn, restore string) {
	bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer stop()
	if _, err := conn.ExecContext(bounded, restore); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = conn.Close()
}

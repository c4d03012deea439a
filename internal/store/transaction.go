package store

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// Once runs fn in a transaction, without retries. The two arguments of fn are the same transaction.
func (s *Store) Once(ctx context.Context, p dialect.Purpose, fn func(*sql.Tx, dialect.Querier) error) error {
	tx, err := s.SQL.BeginTx(ctx, s.Dialect.TxOptions(p))
	if err != nil {
		return err
	}
	defer tx.Rollback()
	q := dialect.On(tx)
	for _, setting := range s.Dialect.Settings(p, s.Names) {
		if _, err := q.Exec(ctx, setting); err != nil {
			return err
		}
	}
	if err := fn(tx, q); err != nil {
		return err
	}
	return tx.Commit()
}

package dialect

import (
	"context"
	"database/sql"
)

// Querier runs statements: in a transaction, on one connection or on a pool.
type Querier interface {
	// Exec returns the number of rows affected.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
}

// Rows are the methods of *sql.Rows that rowfeed uses.
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// SQLQuerier has the methods that *sql.DB, *sql.Conn and *sql.Tx have in common.
type SQLQuerier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// On adapts a *sql.DB, *sql.Conn or *sql.Tx.
func On(q SQLQuerier) Querier { return sqlQuerier{q} }

type sqlQuerier struct{ q SQLQuerier }

func (s sqlQuerier) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := s.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (s sqlQuerier) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	rows, err := s.q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// QueryRow runs a query for at most one row, and scans the row. The error is sql.ErrNoRows if there is none.
func QueryRow(ctx context.Context, q Querier, query string, args []any, dest ...any) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	return rows.Close()
}

// QueryAll runs a query, and scans every row with scan.
func QueryAll[T any](ctx context.Context, q Querier, query string, args []any,
	scan func(Rows) (T, error)) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// ScanStrings scans n columns as text. NULL becomes "".
func ScanStrings(rows Rows, n int) ([]string, error) {
	values := make([]sql.NullString, n)
	dest := make([]any, n)
	for i := range values {
		dest[i] = &values[i]
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, v := range values {
		out[i] = v.String
	}
	return out, nil
}

package main

import (
	"context"
	"database/sql"
)

// DBTX, New and Queries are as sqlc generates them.
type DBTX interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func New(db DBTX) *Queries { return &Queries{db: db} }

type Queries struct{ db DBTX }

func (q *Queries) CreateOrder(ctx context.Context, item string) error {
	_, err := q.db.ExecContext(ctx, "INSERT INTO orders (item) VALUES (?)", item)
	return err
}

func (q *Queries) CountOrder(ctx context.Context, id int64, item string) error {
	_, err := q.db.ExecContext(ctx,
		"INSERT INTO counted VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET item = excluded.item", id, item)
	return err
}

func (q *Queries) UncountOrder(ctx context.Context, id int64) error {
	_, err := q.db.ExecContext(ctx, "DELETE FROM counted WHERE id = ?", id)
	return err
}

func (q *Queries) Total(ctx context.Context, item string) (n int64, err error) {
	return n, q.db.QueryRowContext(ctx, "SELECT count(*) FROM counted WHERE item = ?", item).Scan(&n)
}

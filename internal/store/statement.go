package store

import (
	"context"
	_ "embed" // for store.sql
	"sync"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed store.sql
var file string

var own = dialect.NewStatements(file)

// statements caches rendered statements.
type statements struct{ rendered sync.Map }

type statementKey struct {
	file *dialect.Statements
	name string
}

// Statement returns a statement of a package's file, for this database. It panics if there is none of this name.
func (s *Store) Statement(file *dialect.Statements, name string) dialect.Statement {
	key := statementKey{file, name}
	if st, ok := s.statements.rendered.Load(key); ok {
		return st.(dialect.Statement)
	}
	st, err := file.Render(s.Dialect.Syntax, s.Names, name)
	if err != nil {
		panic(err)
	}
	s.statements.rendered.Store(key, st)
	return st
}

// Exec runs a statement of a package's file, and returns the number of rows affected.
func (s *Store) Exec(ctx context.Context, q dialect.Querier, file *dialect.Statements, name string,
	args dialect.Args) (int64, error) {
	return dialect.Exec(ctx, q, s.Dialect.Syntax, s.Statement(file, name), args)
}

// One runs a query of a package's file for at most one row, and scans the row. The error is ErrNoRows if there is none.
func (s *Store) One(ctx context.Context, q dialect.Querier, file *dialect.Statements, name string, args dialect.Args,
	dest ...any) error {
	return dialect.One(ctx, q, s.Dialect.Syntax, s.Statement(file, name), args, dest...)
}

// All runs a query of a package's file, and scans every row with scan.
func All[T any](ctx context.Context, s *Store, q dialect.Querier, file *dialect.Statements, name string,
	args dialect.Args, scan func(dialect.Rows) (T, error)) ([]T, error) {
	return dialect.All(ctx, q, s.Dialect.Syntax, s.Statement(file, name), args, scan)
}

// Clock returns the database's time in microseconds since the Unix epoch.
func (s *Store) Clock(ctx context.Context, q dialect.Querier) (now int64, err error) {
	return now, s.One(ctx, q, own, "clock", nil, &now)
}

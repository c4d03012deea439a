package store

import (
	"sync"

	"github.com/rowfeed/rowfeed/dialect"
)

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
	st, err := file.Render(s.Dialect, s.Names, name)
	if err != nil {
		panic(err)
	}
	s.statements.rendered.Store(key, st)
	return st
}

// Filled returns the text and the parameters of a statement.
func (s *Store) Filled(file *dialect.Statements, name string, args dialect.Args) (text string, params []any) {
	b := dialect.NewBuilder(s.Dialect)
	text = b.Fill(s.Statement(file, name), args)
	return text, b.Args()
}

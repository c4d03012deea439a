package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // for pages.sql

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed pages.sql
var pagesFile string

var pages = dialect.NewStatements(pagesFile)

// ReadPage implements [dialect.Pages] by one statement.
func (d database) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	return dialect.ReadInOrder(ctx, dialect.On(db), syntax, f, q, nil)
}

// scan is [dialect.Syntax].Scan by one scan, of all numbers: in a table that is empty, the seqs start again. SQLite
// does not read deleted changes, so no range has to be left out.
func scan(s *dialect.Syntax, f *dialect.Feed, of string, _ dialect.Seqs, args dialect.Args) []dialect.Built {
	return []dialect.Built{s.Statement(f, "all_"+of).With(args)}
}

// HasChanges implements [dialect.Publishing]. It acquires no write lock.
func (d database) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed, _ dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, syntax, f, dialect.Seqs{})
}

// HasRecords implements [dialect.Moving]. It acquires no write lock.
func (d database) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	return dialect.HasRecords(ctx, q, syntax, f, among, shards)
}

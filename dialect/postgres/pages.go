package postgres

import (
	"context"
	"database/sql"
	_ "embed" // for pages.sql

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed pages.sql
var pagesFile string

var pages = dialect.NewStatements(pagesFile)

// ReadPage implements [dialect.Pages] by one statement, which has one snapshot. Its transaction only carries the
// settings.
func (d database) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	begin := d.Begin(dialect.ForRead, f.Names)
	tx, err := db.BeginTx(ctx, begin.Options)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	on := dialect.On(tx)
	for _, s := range begin.First {
		if _, err := on.Exec(ctx, s); err != nil {
			return nil, err
		}
	}
	own := dialect.Args{"columns": dialect.SQL(signature(literal(dialect.Qualified(syntax, f.Source)) + "::regclass"))}
	if f.ULIDs != nil {
		own["identity"] = publishing.For(syntax, f, "identity").With(nil)
	}
	page, err := dialect.ReadInOrder(ctx, on, syntax, f, q, own)
	if err != nil {
		return nil, err
	}
	page.EndAtCut(f, q)
	return page, tx.Commit()
}

// HasChanges implements [dialect.Publishing] by the statement ask_first. The number of rows "affected" is the number of
// rows found.
func (d database) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	among dialect.Seqs) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstChange(syntax, f, among))
	return n > 0, err
}

// HasRecords implements [dialect.Moving] by the statement ask_first.
func (d database) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	n, err := q.Exec(ctx, askFirst+dialect.FirstRecords(syntax, f, among, shards...))
	return n > 0, err
}

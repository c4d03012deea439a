package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for pages.sql

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed pages.sql
var pagesFile string

var pages = dialect.NewStatements(pagesFile)

// ReadPage implements [dialect.Pages] by one statement, which has one snapshot. Its transaction only carries
// the settings.
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
	q.Sorted = true // FORCE ORDER says nothing of the order of the rows
	page, err := dialect.ReadInOrder(ctx, on, syntax, f, q, dialect.Args{"identity": dialect.SQL(identity(f.Names))})
	if err != nil {
		return nil, err
	}
	page.EndAtCut(f, q)
	return page, tx.Commit()
}

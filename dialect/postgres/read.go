package postgres

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// ReadPage is one statement, and so one snapshot, in a transaction that only
// carries its settings.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery) (*dialect.PageRows, error) {
	parts := dialect.PageParts{
		ByShard: d.ByShard,
		// A union of the buckets in order is merged only where the planner does not take them
		// for short: then it reads each of them whole, and sorts.
		Series: func(first, last string) string {
			return "generate_series(CAST(" + first + " AS integer), CAST(" + last + " AS integer))"
		},
		Signature: signature(d.Literal(dialect.Qualified(d, f.Source)) + "::regclass"),
		// With the statistics of an emptier table the planner reads that whole, once.
		Lateral: true,
	}
	if f.ULIDs == nil {
		parts.Head = dialect.SequenceHead(d, f)
	} else {
		// From the catalog's own index: whatever the session's plans, one lookup.
		parts.Indexed = "EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indexrelid = CAST(" + d.Literal(f.ULIDs.IndexMade) + " AS oid) AND i.indisvalid)"
		parts.Identity = d.IdentitySQL(f.Names)
	}
	tx, err := db.BeginTx(ctx, d.TxOptions(dialect.ForRead))
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	on := dialect.On(tx)
	for _, s := range d.Settings(dialect.ForRead, f.Names) {
		if _, err := on.Exec(ctx, s); err != nil {
			return nil, err
		}
	}
	page, err := dialect.ReadInOrder(ctx, on, d, f, q, parts)
	if err != nil {
		return nil, err
	}
	page.EndAtCut(f, q)
	return page, tx.Commit()
}

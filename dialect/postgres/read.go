package postgres

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// ReadPage implements [dialect.Read] by one statement, which has one snapshot. Its transaction only carries the
// settings.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	parts := dialect.PageParts{
		ByShard: d.ByShard,
		// The planner merges a UNION of the buckets in order only if its statistics say that the buckets are
		// large. Otherwise it reads each bucket as a whole, and sorts.
		Series: func(first, last string) string {
			return "generate_series(CAST(" + first + " AS integer), CAST(" + last + " AS integer))"
		},
		Signature: signature(d.Literal(dialect.Qualified(d, f.Source)) + "::regclass"),
		// With the statistics of a table that was almost empty, the planner would read the whole source table
		// once.
		Lateral: true,
	}
	if f.ULIDs == nil {
		parts.Head = dialect.SequenceHead(d, f)
	} else {
		// The catalog's own index makes this one lookup, whatever plans the session's settings allow.
		parts.Indexed = "EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indexrelid = CAST(" +
			d.Literal(f.ULIDs.IndexMade) + " AS oid) AND i.indisvalid)"
		parts.Identity = publishing.For(d, f, "identity").String()
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

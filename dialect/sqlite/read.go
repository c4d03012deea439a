package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// ReadPage is one statement, and so one snapshot. The table's definition, as SQLite
// keeps it, is its signature.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery) (*dialect.PageRows, error) {
	parts := dialect.PageParts{
		ByShard: d.ByShard,
		// The index of positions would do as well, and read every other part, too.
		BucketHint: " INDEXED BY " + d.Quote(f.Object("bucket")),
		Signature:  "COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = " + d.Literal(f.Source.Name) + "), '')",
	}
	if f.ULIDs == nil {
		parts.Head = dialect.SequenceHead(d, f)
	}
	if f.ULIDs != nil {
		parts.Indexed = indexMade(d.Literal(f.ULIDs.Index)) + " = " + d.Literal(f.ULIDs.IndexMade)
	}
	return dialect.ReadInOrder(ctx, dialect.On(db), d, f, q, parts)
}

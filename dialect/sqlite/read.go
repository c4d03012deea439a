package sqlite

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// ReadPage implements [dialect.Read] by one statement, which has one snapshot. The signature is the text of the
// table's definition, which SQLite keeps.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	parts := dialect.PageParts{
		ByShard: d.ByShard,
		// With the index on positions, SQLite would also read the entries of all other parts.
		BucketHint: " INDEXED BY " + d.Quote(f.Object("bucket")),
		Signature: "COALESCE((SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = " +
			d.Literal(f.Source.Name) + "), '')",
	}
	if f.ULIDs == nil {
		parts.Head = dialect.SequenceHead(d, f)
	}
	if f.ULIDs != nil {
		parts.Indexed = indexMade(d.Literal(f.ULIDs.Index)) + " = " + d.Literal(f.ULIDs.IndexMade)
	}
	return dialect.ReadInOrder(ctx, dialect.On(db), d, f, q, parts)
}

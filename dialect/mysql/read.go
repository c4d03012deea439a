package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// errMoved is a feed that was dropped and added again, bumped or set back between
// a page's two statements.
var errMoved = errors.New("the feed's generation or sequence changed while a page was read")

// ReadPage implements [dialect.Read] with two statements, head first. A read view of
// MariaDB is not atomic: with several publishers it can show position n+1 and not n.
// What the first statement saw was committed before it ended, with everything below
// it, so the second sees all of that.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery) (*dialect.PageRows, error) {
	const tries = 3
	for try := 1; ; try++ {
		page, err := d.readPage(ctx, db, f, q)
		if !errors.Is(err, errMoved) || try == tries {
			return page, err
		}
	}
}

func (d Dialect) readPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery) (*dialect.PageRows, error) {
	// A transaction of its own, since the session's default may be READ UNCOMMITTED,
	// which shows positions before their commit.
	tx, err := db.BeginTx(ctx, d.TxOptions(dialect.ForRead))
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // after Commit it does nothing
	on := dialect.On(tx)
	var head, generation int64
	var log logSettings
	err = dialect.QueryRow(ctx, on, "SELECT s.value, f.generation, "+logVariables+" FROM "+dialect.Qualified(d, f.Names.Table("sequences"))+" s JOIN "+
		dialect.Qualified(d, f.Names.Table("feeds"))+" f ON f.name = s.name WHERE s.name = "+d.Literal(f.Name), nil, append([]any{&head, &generation}, log.dest()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("feed %s: %w", f.Name, dialect.ErrNoTable)
	}
	if err != nil {
		return nil, err
	}
	query, args := dialect.PageSQL(d, f, q, dialect.PageParts{
		CutBranches: true, BucketHint: " FORCE INDEX (bucket)",
		Head: func(b *dialect.Builder) string { return b.Arg(head) },
		// The statement holds the source's metadata lock while it reads the catalog.
		Signature: d.signature(f.Source),
		Hint:      byKey(f),
	})
	page, err := dialect.ScanPage(ctx, on, f, q.MaxBytes, query, args)
	if err != nil {
		return nil, err
	}
	if page.Generation == 0 {
		return nil, fmt.Errorf("feed %s: %w", f.Name, dialect.ErrNoTable)
	}
	if page.Generation != generation || page.Head < head {
		return nil, errMoved
	}
	page.Head = head
	page.EndAtCut(f, q)
	page.Unflushed, page.Forgetful = !log.binary, log.forgetful()
	return page, tx.Commit()
}

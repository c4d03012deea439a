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
	at, err := d.head(ctx, on, f, q)
	if err != nil {
		return nil, err
	}
	page, err := dialect.ReadInOrder(ctx, on, d, f, q, dialect.PageParts{
		CutBranches: true, BucketHint: " FORCE INDEX (bucket)", RecordsHint: d.ByShard(),
		Head: at.expression(d, f),
		// The statement holds the source's metadata lock while it reads the catalog.
		Signature: d.signature(f.Source),
		Identity:  identityHere,
		Hint:      byKey(f),
	})
	if err != nil {
		return nil, err
	}
	if page.Generation == 0 {
		return nil, fmt.Errorf("feed %s: %w", f.Name, dialect.ErrNoTable)
	}
	if page.Generation != at.generation || at.given.Above(page.Given) {
		return nil, errMoved
	}
	page.Head, page.Given = at.position, at.given
	page.Waiting = at.waiting
	at.live.Set(page) // rows may have been placed between the two
	page.EndAtCut(f, q)
	page.Unflushed, page.Forgetful = !at.log.binary, at.log.forgetful()
	return page, tx.Commit()
}

// pageHead is what is read before a page.
type pageHead struct {
	generation      int64
	position, given dialect.Position
	waiting         bool // records of an outbox
	live            dialect.ScanLive
	log             logSettings
}

// expression is the head as a parameter of the page's statement.
func (h *pageHead) expression(d Dialect, f *dialect.Feed) func(*dialect.Builder) string {
	return func(b *dialect.Builder) string {
		if f.ULIDs == nil {
			return b.Arg(h.position.Number())
		}
		return f.ULIDs.Arg(d, b, h.position)
	}
}

// head reads it. A shard's state comes first, too: who waits for another state must not
// have been told of one that the page lacks.
func (d Dialect) head(ctx context.Context, on dialect.Querier, f *dialect.Feed, q dialect.PageQuery) (h pageHead, err error) {
	live := dialect.Qualified(d, f.Names.Table("sequences")) + " s JOIN " + dialect.Qualified(d, f.Names.Table("feeds")) + " f ON f.name = s.name"
	if f.ULIDs != nil {
		var state dialect.ULIDState
		var greatest dialect.ScanULID
		var waiting int
		b := dialect.NewBuilder(d)
		query := "SELECT f.generation, " + logVariables + ", COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), (" + dialect.GreatestULID(d, b, f, q.Shard) + "), " + dialect.RecordWaits(d, b, f, q.Shard, d.ByShard()) + ", " +
			dialect.LiveFrom(d, f, q) + " FROM " + live + " LEFT JOIN " + dialect.Qualified(d, f.Names.Table("shards")) + " h ON h.feed = f.name AND h.shard = " + b.Arg(q.Shard) + " WHERE f.name = " + b.Arg(f.Name)
		dest := append(append([]any{&h.generation}, h.log.dest()...), &state.High, &state.Low, &greatest, &waiting)
		err = dialect.QueryRow(ctx, on, query, b.Args(), append(dest, h.live.Dest()...)...)
		h.position, h.given, h.waiting = greatest.Position, state.Given(), waiting != 0
	} else {
		var value int64
		err = dialect.QueryRow(ctx, on, "SELECT s.value, f.generation, "+logVariables+" FROM "+live+" WHERE s.name = "+d.Literal(f.Name), nil, append([]any{&value, &h.generation}, h.log.dest()...)...)
		h.position, h.given = dialect.Numbered(value), dialect.Numbered(value)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("feed %s: %w", f.Name, dialect.ErrNoTable)
	}
	return h, err
}

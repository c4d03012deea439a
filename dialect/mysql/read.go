package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// errMoved means that the feed was dropped and added again, bumped or set back, or got another publisher, between a
// page's two statements.
var errMoved = errors.New("the feed's generation, term or sequence changed while a page was read")

// ReadPage implements [dialect.Read] by two statements, the head first. A read view of MariaDB is not atomic:
// with several publishers it can show position n+1 without n. All that the first statement saw was committed
// before that statement ended, with every lower position. So the second statement sees all of it.
func (d Dialect) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	const tries = 10
	for try := 1; ; try++ {
		// A pool may lead to several servers, but a transaction is on one of them.
		page, err := d.readPage(ctx, db, f, q, try == 1 && d.plain != nil && d.plain.Load())
		if !errors.Is(err, errMoved) || try == tries {
			return page, err
		}
	}
}

// readPage reads a page by its two statements without a transaction, if that was possible for the page before.
// Each statement is then a transaction of its own, which saves three of five round trips. The first statement
// tells whether this session allows it.
func (d Dialect) readPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery,
	plain bool) (*dialect.PageRows, error) {
	if !plain {
		return d.readWithin(ctx, db, f, q)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	on := dialect.On(conn)
	at, err := d.head(ctx, on, f, q)
	switch {
	case errors.Is(err, driver.ErrBadConn): // the connection was already broken, and BeginTx uses another one
		conn.Close()
		return d.readWithin(ctx, db, f, q)
	case err != nil:
		return nil, err
	case !at.session.plain || at.session.within:
		return d.readWithin(ctx, conn, f, q) // this fails if a transaction was left open in the session
	}
	return d.pageBelow(ctx, on, f, q, at)
}

// beginner is a *sql.DB or a *sql.Conn.
type beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// readWithin reads a page in a transaction of its own. The session's default isolation level may be READ
// UNCOMMITTED, which shows positions before their commit.
func (d Dialect) readWithin(ctx context.Context, db beginner, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	tx, err := db.BeginTx(ctx, d.TxOptions(dialect.ForRead))
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() // does nothing after Commit
	on := dialect.On(tx)
	at, err := d.head(ctx, on, f, q)
	if err != nil {
		return nil, err
	}
	if d.plain != nil {
		d.plain.Store(at.session.plain)
	}
	page, err := d.pageBelow(ctx, on, f, q, at)
	if err != nil {
		return nil, err
	}
	return page, tx.Commit()
}

// pageBelow runs the page's statement, up to the head that was read before.
func (d Dialect) pageBelow(ctx context.Context, on dialect.Querier, f *dialect.Feed, q dialect.PageQuery,
	at pageHead) (*dialect.PageRows, error) {
	page, err := dialect.ReadInOrder(ctx, on, d, f, q, dialect.PageParts{
		CutBranches: true, BucketHint: " FORCE INDEX (bucket)", ByShard: d.ByShard,
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
	if page.Generation != at.generation || page.Term != at.term || at.given.Above(page.Given) {
		return nil, errMoved
	}
	page.Head, page.Given = at.position, at.given
	page.Waiting = at.waiting
	at.live.Set(page) // rows may have been placed between the two statements
	page.EndAtCut(f, q)
	page.Unflushed, page.Forgetful = !at.log.binary, at.log.forgetful()
	return page, nil
}

// sessionVariables tell how a session runs single statements, after [unfit]. The first value tells whether each
// statement is a transaction of its own, in an isolation level that shows only what is committed. The second
// tells whether a transaction was left open in the session, whose snapshot may be old. MySQL cannot tell the
// second, so the first is always 0 there, and each page has a transaction.
const sessionVariables = unfit + ", /*M! @@SESSION.autocommit = 1 AND @@SESSION.tx_isolation IN ('READ-COMMITTED', " +
	"'REPEATABLE-READ') OR */ 0, /*M! @@SESSION.in_transaction + */ 0"

type session struct {
	unfit         sql.NullString
	plain, within bool
}

func (s *session) dest() []any { return []any{&s.unfit, &s.plain, &s.within} }

// unfit is an expression that names a mode in the session's sql_mode under which keys would be read as other
// keys. It is NULL if there is none. In MariaDB's ORACLE and EMPTY_STRING_IS_NULL an empty text is NULL. On
// MySQL, PAD_CHAR_TO_FULL_LENGTH adds blanks to a CHAR, which under the default collations then equals no
// parameter. Other modes change nothing (TestSessionSettingsChangeNothing).
const unfit = "CASE WHEN FIND_IN_SET('EMPTY_STRING_IS_NULL', @@SESSION.sql_mode) > 0 THEN 'EMPTY_STRING_IS_NULL' " +
	"WHEN FIND_IN_SET('ORACLE', @@SESSION.sql_mode) > 0 THEN 'ORACLE' " +
	"/*!80000 WHEN FIND_IN_SET('PAD_CHAR_TO_FULL_LENGTH', @@SESSION.sql_mode) > 0 THEN 'PAD_CHAR_TO_FULL_LENGTH' */ END"

// refuseMode returns an error if [unfit] has named a mode.
func refuseMode(mode sql.NullString) error {
	if !mode.Valid {
		return nil
	}
	return fmt.Errorf("the sql_mode of this session has %s, under which keys would be read as other keys: "+
		"open rowfeed's pool with another one, such as sql_mode='%s' in its DSN", mode.String, keyMode)
}

// pageHead is what is read before a page.
type pageHead struct {
	generation      int64
	position, given feedtype.Position
	term            feedtype.Term
	waiting         bool // records wait in the outbox
	live            dialect.ScanLive
	log             logSettings
	session         session
}

// expression returns the head as a parameter of the page's statement.
func (h *pageHead) expression(d Dialect, f *dialect.Feed) func(*dialect.Builder) string {
	return func(b *dialect.Builder) string {
		if f.ULIDs == nil {
			return b.Arg(h.position.Number())
		}
		return f.ULIDs.Arg(d, b, h.position)
	}
}

// head reads the head. For a feed with ULIDs it also reads the shard's state, before the page. A reader that
// waits until the state changes must not have seen a state of which the page lacks entries.
func (d Dialect) head(ctx context.Context, on dialect.Querier, f *dialect.Feed,
	q dialect.PageQuery) (h pageHead, err error) {
	live := dialect.Qualified(d, f.Names.Table("sequences")) + " s JOIN " +
		dialect.Qualified(d, f.Names.Table("feeds")) + " f ON f.name = s.name"
	if f.ULIDs != nil {
		var state dialect.ULIDState
		var greatest dialect.ScanULID
		var waiting int
		b := dialect.NewBuilder(d)
		query := "SELECT f.generation, " + logVariables + ", " + sessionVariables +
			", COALESCE(h.ulid_high, 0), COALESCE(h.ulid_low, 0), (" + dialect.GreatestULID(d, b, f, q.Shard) + "), " +
			dialect.RecordWaits(d, b, f, q, d.ByShard) + ", " +
			dialect.LiveFrom(d, f, q) + " FROM " + live + " LEFT JOIN " +
			dialect.Qualified(d, f.Names.Table("shards")) + " h ON h.feed = f.name AND h.shard = " + b.Arg(q.Shard) +
			" WHERE f.name = " + b.Arg(f.Name)
		dest := append(append(append([]any{&h.generation}, h.log.dest()...), h.session.dest()...), &state.High,
			&state.Low, &greatest, &waiting)
		err = dialect.QueryRow(ctx, on, query, b.Args(), append(dest, h.live.Dest()...)...)
		h.position, h.given, h.waiting = greatest.Position, state.Given(), waiting != 0
	} else {
		var value int64
		err = dialect.QueryRow(ctx, on, "SELECT s.value, COALESCE(s.term, 0), f.generation, "+logVariables+", "+
			sessionVariables+" FROM "+live+" WHERE s.name = "+d.Literal(f.Name), nil,
			append(append([]any{&value, &h.term, &h.generation}, h.log.dest()...), h.session.dest()...)...)
		h.position, h.given = feedtype.Numbered(value), feedtype.Numbered(value)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("feed %s: %w", f.Name, dialect.ErrNoTable)
	}
	if err == nil {
		err = refuseMode(h.session.unfit)
	}
	return h, err
}

package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // for pages.sql
	"errors"
	"fmt"
	"maps"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed pages.sql
var pagesFile string

var pages = dialect.NewStatements(pagesFile)

// errMoved means that the feed was dropped and added again, bumped or set back, or got another publisher, between a
// page's two statements.
var errMoved = errors.New("the feed's generation, term or sequence changed while a page was read")

// ReadPage implements [dialect.Pages] by two statements, the head first.
func (d database) ReadPage(ctx context.Context, db *sql.DB, f *dialect.Feed,
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
func (d database) readPage(ctx context.Context, db *sql.DB, f *dialect.Feed, q dialect.PageQuery,
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
func (d database) readWithin(ctx context.Context, db beginner, f *dialect.Feed,
	q dialect.PageQuery) (*dialect.PageRows, error) {
	tx, err := db.BeginTx(ctx, d.Begin(dialect.ForRead, f.Names).Options)
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
func (d database) pageBelow(ctx context.Context, on dialect.Querier, f *dialect.Feed, q dialect.PageQuery,
	at pageHead) (*dialect.PageRows, error) {
	page, err := dialect.ReadInOrder(ctx, on, syntax, f, q, dialect.Args{
		"head":     at.argument(d, f),
		"columns":  dialect.SQL(d.signature(f.Source)),
		"identity": dialect.SQL(identity(f.Names)),
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

// OpenChange implements [dialect.Replicas]. It reads the state of the head at READ UNCOMMITTED, and then the committed
// state. If they differ, a transaction is open, and the uncommitted state is its name. The server writes a commit to
// the binary log after it has changed the rows, so the first read shows every change that a replica can show.
func (d database) OpenChange(ctx context.Context, db *sql.DB, f *dialect.Feed, shard int) (string, error) {
	open, err := stateOfHead(ctx, db, f, shard, sql.LevelReadUncommitted)
	if err != nil {
		return "", err
	}
	committed, err := stateOfHead(ctx, db, f, shard, sql.LevelReadCommitted)
	if err != nil || open == committed {
		return "", err
	}
	return open, nil
}

func stateOfHead(ctx context.Context, db *sql.DB, f *dialect.Feed, shard int, level sql.IsolationLevel) (
	state string, err error,
) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // does nothing after Commit
	args := dialect.Args{}
	if f.ULIDs != nil {
		args["shard"] = shard
	}
	err = dialect.One(ctx, dialect.On(tx), syntax, pages.For(syntax, f, "state_of_head"), args, &state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	return state, tx.Commit()
}

type session struct {
	unfit         sql.NullString
	plain, within bool
}

func (s *session) dest() []any { return []any{&s.unfit, &s.plain, &s.within} }

// unfit is the text of the statement unfit.
var unfit = func() string {
	st, err := pages.Render(syntax, dialect.Names{}, "unfit")
	if err != nil {
		panic(err)
	}
	return st.String()
}()

// refuseMode returns an error if [unfit] has named a mode.
func refuseMode(mode sql.NullString) error {
	if !mode.Valid {
		return nil
	}
	return fmt.Errorf("the sql_mode of this session has %s, under which keys would be read as other keys: "+
		"open rowfeed's pool with another one, such as sql_mode='%s' in its DSN", mode.String, keyMode)
}

// pageHead has the values that are read before a page.
type pageHead struct {
	generation      int64
	position, given feedtype.Position
	term            feedtype.Term
	waiting         bool // records wait in the outbox
	live            dialect.ScanLive
	log             logSettings
	session         session
}

// argument is the head as an argument of the page's statement.
func (h *pageHead) argument(d database, f *dialect.Feed) any {
	if f.ULIDs == nil {
		return h.position.Number()
	}
	return f.ULIDs.Param(syntax, h.position)
}

// head reads the head by the statement head, or head_of_shard.
func (d database) head(ctx context.Context, on dialect.Querier, f *dialect.Feed,
	q dialect.PageQuery) (h pageHead, err error) {
	variables := append(h.log.dest(), h.session.dest()...)
	if f.ULIDs != nil {
		var state dialect.ULIDState
		var greatest dialect.ScanULID
		var waiting int
		args := dialect.Args{"feed": f.Name, "shard": q.Shard}
		if f.Outbox {
			args["waiting"], args["unserved"] = q.Waiting(syntax, f)
		}
		dest := append(append([]any{&h.generation}, variables...), &state.High, &state.Low, &greatest, &waiting)
		err = dialect.One(ctx, on, syntax, pages.For(syntax, f, "head_of_shard"), args,
			append(dest, h.live.Dest()...)...)
		h.position, h.given, h.waiting = greatest.Position, state.Given(), waiting != 0
	} else {
		var value int64
		err = dialect.One(ctx, on, syntax, pages.For(syntax, f, "head"), nil,
			append([]any{&value, &h.term, &h.generation}, variables...)...)
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

// scan is [dialect.Syntax].Scan by one scan. The names of the statements for some numbers end in _among.
func scan(s *dialect.Syntax, f *dialect.Feed, of string, among dialect.Seqs, args dialect.Args) []dialect.Built {
	name, own := "all_"+of, dialect.Args{}
	if !among.All() {
		_, column := f.Waiting()
		name, own["numbers"] = of+"_among", dialect.SQL(among.OneByOne(column))
	}
	maps.Copy(own, args)
	return []dialect.Built{s.Statement(f, name).With(own)}
}

// HasChanges implements [dialect.Publishing].
func (d database) HasChanges(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	among dialect.Seqs) (bool, error) {
	return dialect.HasChanges(ctx, q, syntax, f, among)
}

// HasRecords implements [dialect.Moving].
func (d database) HasRecords(ctx context.Context, q dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	shards ...int) (bool, error) {
	return dialect.HasRecords(ctx, q, syntax, f, among, shards)
}

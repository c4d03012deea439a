// Package sqlmirror implements the sink that keeps a table of another SQL database equal to a feed. Rows are upserted
// and deleted by their key, in one transaction with the relay's cursor, so each entry takes effect exactly once.
//
// The table must exist, with the feed's key as primary key, and with a column for each delivered column. Other
// columns keep their values. A mirror cannot have foreign keys, because a changed parent row arrives after its child.
// It can have unique indexes: if another row still has the unique value of a new row, it is deleted first. The feed
// brings that row again.
//
// Rows are found by the entry's key, whose text never changes. The source may spell the key of a row differently by
// now. If this table regards both spellings as equal, the row gets the new one. Otherwise it keeps the entry's key.
package sqlmirror

import (
	"context"
	"crypto/sha256"
	"database/sql"
	_ "embed" // for sqlmirror.sql
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed sqlmirror.sql
var file string

var statements = dialect.NewStatements(file)

// Config holds the settings of a Sink. All of them are required.
type Config struct {
	// Pool is the mirror's database. The sink does not close it.
	Pool *sql.DB
	// Dialect is the dialect of the pool's database.
	Dialect *dialect.Dialect
	// DB is rowfeed on the same database, which has the cursor.
	DB *rowfeed.DB
	// Table is the mirror table: "table", or "schema.table" if it is not in the current schema of the connection.
	Table string
}

// Sink writes into one table. It implements sink.Transactional.
type Sink struct {
	cfg    Config
	d      *dialect.Dialect
	feed   *dialect.Feed // remembers the statements, none of which is about a feed
	name   feedtype.TableName
	sweep  feedtype.TableName // keys of rows that are left from an earlier pass
	closed atomic.Bool

	mu    sync.Mutex
	table *dialect.Table
	key   []string
}

// New reads the columns of the table, and creates a small table next to it for passes from the beginning.
func New(ctx context.Context, cfg Config) (*Sink, error) {
	s := &Sink{cfg: cfg, d: cfg.Dialect, feed: (&dialect.Feed{}).Keep()}
	s.name.Name = cfg.Table
	if schema, name, ok := strings.Cut(cfg.Table, "."); ok {
		s.name = feedtype.TableName{Schema: schema, Name: name}
	}
	if s.name.Name == "" {
		return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "to", Object: "mirror",
			Cause: "it names no table", Next: "add table=NAME to its URL"}
	}
	if err := s.describe(ctx); err != nil {
		return nil, err
	}
	s.sweep = feedtype.TableName{Schema: s.name.Schema, Name: sweepName(s.name.Name)}
	if err := s.makeSweep(ctx, cfg.Pool); err != nil {
		return nil, s.fail("make the table "+s.sweep.String()+" beside it", err)
	}
	return s, nil
}

// makeSweep makes the table of the keys that a pass has not seen yet, unless it is there. Not all databases have CREATE
// TABLE IF NOT EXISTS.
func (s *Sink) makeSweep(ctx context.Context, pool *sql.DB) error {
	look := func() error {
		_, err := pool.ExecContext(ctx, "SELECT 1 FROM "+string(s.quoted(s.sweep))+" WHERE 1 = 0")
		return err
	}
	if err := look(); s.d.Classify(err) != dialect.ClassUndefined {
		return err
	}
	var columns, key []string
	for _, name := range s.key {
		c := s.table.Column(name)
		columns = append(columns, strings.TrimSpace(s.d.Quote(name)+" "+c.Decl)+" NOT NULL")
		key = append(key, s.d.Quote(name))
	}
	_, err := pool.ExecContext(ctx, "CREATE TABLE "+string(s.quoted(s.sweep))+" ("+
		strings.Join(columns, ", ")+", PRIMARY KEY ("+strings.Join(key, ", ")+"))")
	if err != nil && look() == nil { // another process has made it at the same time
		return nil
	}
	return err
}

// sweepName returns the name of the small table, at most 63 bytes long.
func sweepName(table string) string {
	const prefix, most = "rowfeed_sweep_", 63
	if len(prefix)+len(table) <= most {
		return prefix + table
	}
	sum := sha256.Sum256([]byte(table))
	return prefix + hex.EncodeToString(sum[:16])
}

func (s *Sink) object() string { return fmt.Sprintf("mirror table %q", s.name.String()) }

func (s *Sink) quoted(t feedtype.TableName) dialect.SQL {
	return dialect.SQL(dialect.Qualified(s.d.Syntax, t))
}

// fail returns an error that names the table, with the code of the error's class.
func (s *Sink) fail(doing string, err error) error {
	e := &feedtype.Error{Code: feedtype.Failed, Object: s.object(), Cause: doing, Err: err}
	switch s.d.Classify(err) {
	case dialect.ClassConnection:
		e.Code, e.Next = feedtype.Unavailable, "check that the database runs and can be reached"
	case dialect.ClassPermission:
		e.Code, e.Next = feedtype.Refused, "grant the missing right to the mirror's database user"
	case dialect.ClassUndefined:
		e.Code, e.Next = feedtype.Refused, "create the table, with the feed's columns and primary key"
	}
	return e
}

// describe reads the table's columns and indexes.
func (s *Sink) describe(ctx context.Context) error {
	t, err := s.d.Describe(ctx, dialect.On(s.cfg.Pool), s.name)
	if err != nil {
		return s.fail("read its columns", err)
	}
	primary := t.PrimaryKey()
	if primary == nil {
		return &feedtype.Error{Code: feedtype.Refused, Object: s.object(), Cause: "it has no primary key",
			Next: "give the table the feed's key as its primary key"}
	}
	key, ok := primary.Names()
	if !ok {
		return &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
			Cause: "its primary key contains expressions", Next: "give the table the feed's key as its primary key"}
	}
	for _, name := range key {
		if t.Column(name).Generated {
			return &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
				Cause: fmt.Sprintf("the database itself gives key column %q its values", name),
				Next:  "create the table without IDENTITY or GENERATED ALWAYS in that column"}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.key = t, key
	return nil
}

// DB implements sink.Transactional.
func (s *Sink) DB() *rowfeed.DB { return s.cfg.DB }

// Begin marks all rows of the table as rows of an earlier pass.
func (s *Sink) Begin(ctx context.Context, tx *sql.Tx) error {
	var key []string
	for _, k := range s.key {
		key = append(key, s.d.Quote(k))
	}
	err := s.exec(ctx, tx, s.builder(), "clear_sweep", dialect.Args{"sweep": s.quoted(s.sweep)})
	if err == nil {
		err = s.exec(ctx, tx, s.builder(), "mark_rows", dialect.Args{"sweep": s.quoted(s.sweep),
			"table": s.quoted(s.name), "key": dialect.SQL(strings.Join(key, ", "))})
	}
	if err != nil {
		return fmt.Errorf("mark the rows of an older pass: %w", err)
	}
	return nil
}

func (s *Sink) builder() *dialect.Builder { return dialect.NewBuilder(s.d.Syntax) }

// exec runs a statement. b has the parameters of its arguments, which are text.
func (s *Sink) exec(ctx context.Context, tx *sql.Tx, b *dialect.Builder, name string, args dialect.Args) error {
	query := b.Fill(statements.For(s.d.Syntax, s.feed, name), args)
	_, err := tx.ExecContext(ctx, query, b.Args()...)
	return err
}

// Complete removes the rows of an earlier pass that the new pass has not brought.
func (s *Sink) Complete(ctx context.Context, tx *sql.Tx) error {
	left, err := s.sweeping(ctx, tx)
	if err != nil || !left {
		return err
	}
	var same []string
	for _, k := range s.key {
		// The mirror's column is on the left: on SQLite the left column determines the collation.
		same = append(same, string(s.quoted(s.name))+"."+s.d.Quote(k)+" = s."+s.d.Quote(k))
	}
	err = s.exec(ctx, tx, s.builder(), "delete_marked", dialect.Args{"table": s.quoted(s.name),
		"sweep": s.quoted(s.sweep), "same": dialect.SQL(strings.Join(same, " AND "))})
	if err == nil {
		err = s.exec(ctx, tx, s.builder(), "clear_sweep", dialect.Args{"sweep": s.quoted(s.sweep)})
	}
	if err != nil {
		return fmt.Errorf("remove rows that the new pass did not bring: %w", err)
	}
	return nil
}

// sweeping tells whether a pass is running, and rows of an earlier pass are left.
func (s *Sink) sweeping(ctx context.Context, tx *sql.Tx) (bool, error) {
	var one int
	err := dialect.One(ctx, dialect.On(tx), s.d.Syntax, statements.For(s.d.Syntax, s.feed, "is_sweeping"),
		dialect.Args{"sweep": s.quoted(s.sweep)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

var errClosed = errors.New("sqlmirror: the sink is closed")

// Deliver writes the batch in a transaction of its own, without a cursor. It is for callers that use the sink without
// a relay. If the database refuses a batch, Deliver tries each half separately.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	results := make([]sink.Result, len(batch))
	s.attempt(ctx, batch, results)
	return results
}

func (s *Sink) attempt(ctx context.Context, batch []sink.Entry, results []sink.Result) {
	if len(batch) == 0 {
		return
	}
	err := s.commit(ctx, batch)
	switch {
	case err == nil:
		copy(results, sink.All(batch, sink.Accept()))
	case ctx.Err() != nil || s.passes(err):
		copy(results, sink.All(batch, sink.Retry(0, err)))
	case len(batch) == 1:
		results[0] = sink.Reject(err)
	default:
		half := len(batch) / 2
		s.attempt(ctx, batch[:half], results[:half])
		s.attempt(ctx, batch[half:], results[half:])
	}
}

func (s *Sink) commit(ctx context.Context, batch []sink.Entry) error {
	if s.closed.Load() {
		return errClosed
	}
	tx, err := s.cfg.Pool.BeginTx(ctx, s.d.Begin(dialect.ForConsume, dialect.Names{}).Options)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	entries := make([]feedtype.Entry, len(batch))
	for i, e := range batch {
		entries[i] = e.Entry
	}
	if err := s.Apply(ctx, tx, entries); err != nil {
		return err
	}
	return tx.Commit()
}

// passes tells whether an error is caused by the state of the database, and not by the entries.
func (s *Sink) passes(err error) bool {
	if errors.Is(err, errClosed) {
		return true
	}
	class := s.d.Classify(err)
	return slices.Contains([]dialect.Class{dialect.ClassConnection, dialect.ClassRetry, dialect.ClassLockTimeout,
		dialect.ClassFull,
		dialect.ClassPermission, dialect.ClassUndefined}, class)
}

// Close closes the sink, but not the pool.
func (s *Sink) Close() error {
	s.closed.Store(true)
	return nil
}

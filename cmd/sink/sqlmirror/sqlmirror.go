// Package sqlmirror is the sink that keeps a table of another SQL database like a feed's:
// rows are upserted and deleted by their key, in one transaction with the relay's cursor,
// so that each entry takes effect exactly once.
//
// The table must be there, with the feed's key as primary key and a column for each that
// the feed delivers; columns that it has besides keep their values. Foreign keys do not
// go with a mirror: a parent that was changed arrives behind its child. Unique columns do:
// where a new row's value is still another's, which the feed will bring again, that one
// makes room by leaving the table until it comes.
//
// Rows are found by the entry's key, whose text never changes. A row whose key has another text
// in the source by now has that one here, too, if this table takes the two for one key.
// Otherwise it keeps the entry's key.
package sqlmirror

import (
	"context"
	"crypto/sha256"
	"database/sql"
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

// Config of a Sink; everything is needed.
type Config struct {
	// Pool is the mirror's database. The sink does not close it.
	Pool *sql.DB
	// Dialect is that database's.
	Dialect dialect.Dialect
	// DB is rowfeed on it, where the cursor is.
	DB *rowfeed.DB
	// Table is what follows the feed; with its schema in front and a dot between where it
	// is not in the connection's.
	Table string
}

// Sink writes into one table. It is a sink.Transactional.
type Sink struct {
	cfg    Config
	d      dialect.Dialect
	name   feedtype.TableName
	sweep  feedtype.TableName // keys of rows that an older pass has left
	closed atomic.Bool

	mu    sync.Mutex
	table *dialect.Table
	key   []string
}

// New describes the table, and makes a small one beside it for passes from the beginning.
func New(ctx context.Context, cfg Config) (*Sink, error) {
	s := &Sink{cfg: cfg, d: cfg.Dialect}
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
	var columns, key []string
	for _, name := range s.key {
		c := s.table.Column(name)
		columns = append(columns, strings.TrimSpace(s.d.Quote(name)+" "+c.Decl)+" NOT NULL")
		key = append(key, s.d.Quote(name))
	}
	_, err := cfg.Pool.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+s.quoted(s.sweep)+" ("+
		strings.Join(columns, ", ")+", PRIMARY KEY ("+strings.Join(key, ", ")+"))")
	if err != nil {
		return nil, s.fail("make the table "+s.sweep.String()+" beside it", err)
	}
	return s, nil
}

// sweepName is at most 63 bytes long.
func sweepName(table string) string {
	const prefix, most = "rowfeed_sweep_", 63
	if len(prefix)+len(table) <= most {
		return prefix + table
	}
	sum := sha256.Sum256([]byte(table))
	return prefix + hex.EncodeToString(sum[:16])
}

func (s *Sink) object() string { return fmt.Sprintf("mirror table %q", s.name.String()) }

func (s *Sink) quoted(t feedtype.TableName) string { return dialect.Qualified(s.d, t) }

// fail names the table and gives an error the code that its class has.
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
			Next: "give it the feed's key as one"}
	}
	key, ok := primary.Names()
	if !ok {
		return &feedtype.Error{Code: feedtype.Refused, Object: s.object(),
			Cause: "its primary key is not of columns alone", Next: "give it the feed's key as one"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.key = t, key
	return nil
}

// DB implements sink.Transactional.
func (s *Sink) DB() *rowfeed.DB { return s.cfg.DB }

// Begin marks what the table has as rows of an older pass.
func (s *Sink) Begin(ctx context.Context, tx *sql.Tx) error {
	var key []string
	for _, k := range s.key {
		key = append(key, s.d.Quote(k))
	}
	columns := strings.Join(key, ", ")
	for _, statement := range []string{
		"DELETE FROM " + s.quoted(s.sweep),
		"INSERT INTO " + s.quoted(s.sweep) + " (" + columns + ") SELECT " + columns + " FROM " + s.quoted(s.name),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("mark the rows of an older pass: %w", err)
		}
	}
	return nil
}

// Complete removes the rows of an older pass that the new one has not brought.
func (s *Sink) Complete(ctx context.Context, tx *sql.Tx) error {
	left, err := s.sweeping(ctx, tx)
	if err != nil || !left {
		return err
	}
	var same []string
	for _, k := range s.key {
		// The mirror's column stands on the left: on SQLite it decides how texts compare.
		same = append(same, s.quoted(s.name)+"."+s.d.Quote(k)+" = s."+s.d.Quote(k))
	}
	for _, statement := range []string{
		"DELETE FROM " + s.quoted(s.name) + " WHERE EXISTS (SELECT 1 FROM " + s.quoted(s.sweep) + " s WHERE " +
			strings.Join(same, " AND ") + ")",
		"DELETE FROM " + s.quoted(s.sweep),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("remove what the new pass did not bring: %w", err)
		}
	}
	return nil
}

// sweeping tells whether a pass is under way that has found rows of an older one.
func (s *Sink) sweeping(ctx context.Context, tx *sql.Tx) (bool, error) {
	var one int
	err := dialect.QueryRow(ctx, dialect.On(tx), "SELECT 1 FROM "+s.quoted(s.sweep)+" LIMIT 1", nil, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

var errClosed = errors.New("sqlmirror: the sink is closed")

// Deliver writes the batch in a transaction of its own, without a cursor: for those who
// use the sink without a relay. Of a batch that the database does not take each half is
// tried by itself.
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
	tx, err := s.cfg.Pool.BeginTx(ctx, s.d.TxOptions(dialect.ForConsume))
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	entries := make([]feedtype.Entry, len(batch))
	for i, e := range batch {
		entries[i] = e.Entry
	}
	if err := s.Apply(ctx, tx, entries); err != nil {
		return err
	}
	return tx.Commit()
}

// passes tells an error of the database's from one of the entries'.
func (s *Sink) passes(err error) bool {
	if errors.Is(err, errClosed) {
		return true
	}
	class := s.d.Classify(err)
	return slices.Contains([]dialect.Class{dialect.ClassConnection, dialect.ClassRetry, dialect.ClassLockTimeout,
		dialect.ClassFull,
		dialect.ClassPermission, dialect.ClassUndefined}, class)
}

// Close ends the sink; the pool stays open.
func (s *Sink) Close() error {
	s.closed.Store(true)
	return nil
}

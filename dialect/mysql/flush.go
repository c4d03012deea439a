package mysql

import (
	"context"
	_ "embed" // for flush.sql
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed flush.sql
var flushFile string

var flushing = dialect.NewStatements(flushFile)

// commitVariables is a fragment of statements of other files.
var commitVariables = text(flushing, "commit_variables")

// logSettings has the values of the statement log_variables.
type logSettings struct {
	flush      int64
	binary     bool
	syncBinary int64
}

func (s *logSettings) dest() []any { return []any{&s.flush, &s.binary, &s.syncBinary} }

// forgetful returns an error that names the setting under which a commit can be lost after it was confirmed.
func (s *logSettings) forgetful() error {
	switch {
	case s.flush != 1 && s.flush != 3: // in MariaDB 3 is like 1, with one more flush
		return fmt.Errorf("innodb_flush_log_at_trx_commit is %d: set it to 1", s.flush)
	case s.binary && s.syncBinary != 1:
		// Recovery reads from the binary log which prepared transactions have committed. So InnoDB does not
		// flush its own log at commit.
		return fmt.Errorf("sync_binlog is %d while the server writes a binary log: set it to 1", s.syncBinary)
	}
	return nil
}

// commitLog has the values of commitVariables.
type commitLog struct {
	logSettings
	written bool
}

func (s *commitLog) dest() []any { return append(s.logSettings.dest(), &s.written) }

// forgetful returns an error that names the setting under which a commit of this session can be lost.
func (s *commitLog) forgetful() error {
	if err := s.logSettings.forgetful(); err != nil || !s.binary || s.written {
		return err
	}
	// Readers rely on the binary log. A commit that is not in it is shown before it is flushed.
	return errors.New("sql_log_bin is off in this session: leave it on")
}

var (
	durability = statement(flushing, "durability")
	flush      = statement(flushing, "flush")
	flushAlone = statement(flushing, "flush_alone")
)

// Durability implements [dialect.Core].
func (d database) Durability(ctx context.Context, q dialect.Querier) error {
	var log commitLog
	err := dialect.One(ctx, q, syntax, durability, nil, log.dest()...)
	if err == nil {
		err = log.forgetful()
	}
	return err
}

// Flush implements [dialect.Flushing] by a commit of its own.
func (d database) Flush(ctx context.Context, tx dialect.Querier, n dialect.Names) error {
	rows, err := dialect.Exec(ctx, tx, syntax, flush, d.flushes(n))
	if err == nil && rows == 0 {
		err = dialect.ErrReadOnly
	}
	return err
}

// FlushAlone implements [dialect.Flushing]. It is used if pages are read without a transaction: they have shown
// that the server tells whether a transaction is open.
func (d database) FlushAlone(ctx context.Context, pool dialect.Querier, n dialect.Names) (bool, error) {
	if d.plain == nil || !d.plain.Load() {
		return false, nil
	}
	rows, err := dialect.Exec(ctx, pool, syntax, flushAlone, d.flushes(n))
	return rows > 0, err
}

func (d database) flushes(n dialect.Names) dialect.Args {
	return dialect.Args{"flushes": dialect.SQL(dialect.Qualified(syntax, n.Table("flushes")))}
}

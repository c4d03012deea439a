package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// With a binary log, the server syncs that log before it shows a commit. Without one, InnoDB shows a commit
// first and flushes its own log afterwards. A crash in between undoes a commit that readers have seen, and its
// position would be given again, to another key. A commit of the reader's own flushes the log up to that
// commit, and so all that the reader has seen.

// logVariables say which log decides over a commit, and whether it is flushed at each commit.
const logVariables = "@@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog"

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

// commitVariables are logVariables, and whether commits of this session are in the binary log.
const commitVariables = logVariables + ", @@SESSION.sql_log_bin"

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

// Flush implements [dialect.Read]. It changes a row, because a commit without changes flushes nothing. There
// are 16 rows, so that several readers can commit concurrently. It never writes on a replica, even if the user
// may.
func (d Dialect) Flush(ctx context.Context, tx dialect.Querier, n dialect.Names) error {
	rows, err := d.flush(ctx, tx, n, "")
	if err == nil && rows == 0 {
		err = dialect.ErrReadOnly
	}
	return err
}

// FlushAlone implements [dialect.Read]. It is used if pages are read without a transaction: they have shown
// that the server tells whether a transaction is open. The statement checks its session, which may be another
// one.
func (d Dialect) FlushAlone(ctx context.Context, pool dialect.Querier, n dialect.Names) (bool, error) {
	if d.plain == nil || !d.plain.Load() {
		return false, nil
	}
	rows, err := d.flush(ctx, pool, n, " AND @@SESSION.autocommit = 1 AND @@SESSION.in_transaction = 0")
	return rows > 0, err
}

func (d Dialect) flush(ctx context.Context, on dialect.Querier, n dialect.Names, where string) (int64, error) {
	return on.Exec(ctx, "INSERT INTO "+dialect.Qualified(d, n.Table("flushes"))+
		" (id, flush_count) SELECT MOD(CONNECTION_ID(), 16), 1 FROM DUAL WHERE CAST("+readOnly+
		" AS CHAR) IN ('0', 'OFF')"+where+
		" ON DUPLICATE KEY UPDATE flush_count = flush_count + 1")
}

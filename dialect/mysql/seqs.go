package mysql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// SeqsGrow implements [dialect.Publish]. A rollback does not reset AUTO_INCREMENT. A crash never resets it
// below a number that was committed.
func (Dialect) SeqsGrow() bool { return true }

// which returns hint and condition of a scan among some numbers, to follow the table's name. The numbers of
// gaps are listed one by one. A range that ends in deleted records is read far beyond its end, up to the first
// record that exists. The hint keeps the planner from reading the index from its beginning.
func which(column string, among dialect.Seqs) string {
	if among.All() {
		return ""
	}
	return " FORCE INDEX (PRIMARY) WHERE " + among.OneByOne(column)
}

// ScanRanges implements [dialect.Publish].
func (Dialect) ScanRanges(column string, among dialect.Seqs) []string {
	return []string{which(column, among)}
}

// Writers implements [dialect.Publish]. MariaDB tells it to a login with the right PROCESS. MySQL's INNODB_TRX
// cannot be used (see errCannotShow), but its metadata locks can: see tableHolders.
//
// A statement draws a seq, and InnoDB may begin its transaction only right afterwards. So Writers first reads
// which sessions are running a statement, and then which transactions are open. A session that had drawn a seq
// before the first query has ended its transaction, or is in one of the two lists: it was running that
// statement, or its transaction has an id by now.
//
// A transaction gets an id when it writes its first row, however long it has been open, and keeps the id while
// it is prepared. A session that is running a SELECT, such as a dump, draws no seq: if a function in it writes,
// the list shows the function's statement.
func (d Dialect) Writers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	kind, err := numbersAlone(ctx, q)
	switch {
	case err != nil || kind == others:
		return nil, false, d.untold(err)
	case kind == aloneMySQL:
		open, told, err = d.tableHolders(ctx, q, f)
		return open, told && err == nil, d.untold(err)
	}
	// Event handlers and senders of the binary log always run a statement, and write nothing.
	busy, err := dialect.QueryAll(ctx, q,
		"SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump') "+
			"AND ID <> CONNECTION_ID() AND COALESCE(INFO, '') NOT LIKE 'SELECT %'"+whole, nil,
		func(rows dialect.Rows) (w dialect.Writer, err error) { return w, rows.Scan(&w.Session) })
	if err != nil {
		return nil, false, d.untold(err)
	}
	transactions, told, err := openNow(ctx, q, dialect.Qualified(d, f.Names.Table("sequences")))
	if err != nil || !told {
		return nil, false, d.untold(err)
	}
	for _, w := range busy {
		if !slices.ContainsFunc(transactions, func(t dialect.Writer) bool {
			return t.Session == w.Session && t.Transaction != ""
		}) {
			open = append(open, w)
		}
	}
	for _, t := range transactions {
		if t.Transaction != "" {
			open = append(open, t)
		}
	}
	return open, true, nil
}

// untold ignores errors that mean that the server does not tell.
func (d Dialect) untold(err error) error {
	if class := d.Classify(err); cannotShow(err) || class == dialect.ClassPermission ||
		class == dialect.ClassUndefined {
		return nil
	}
	return err
}

// These are the answers of numbersAlone.
const (
	others = iota
	aloneMySQL
	aloneMariaDB
)

// numbersAlone tells whether this is the only server that gives numbers, and which kind of server it is. In a
// cluster the other servers do not wait for this one, and it does not see their transactions.
func numbersAlone(ctx context.Context, q dialect.Querier) (kind int, err error) {
	// MySQL takes the last part for a comment.
	err = dialect.QueryRow(ctx, q, "SELECT (@@GLOBAL.auto_increment_increment = 1) /*M! * 2 * (NOT EXISTS "+
		"(SELECT 1 FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_ON' "+
		"AND VARIABLE_VALUE = 'ON')) */", nil, &kind)
	return kind, err
}

const (
	// firstPointer is greater than all ids of transactions. A transaction without an id is shown with 0 or, by
	// some versions, with an address in memory.
	firstPointer = 1 << 48
	// The server leaves out transactions if the list takes more than 16 MiB. A transaction takes at most 1.3
	// KB. One that waits for a lock takes twice 8 KB more, and in addition there are the pairs of those that
	// wait for the same lock: 1,450 that wait for one row are too many.
	maxShown, maxLockWaits = 4000, 300
)

// openNow returns the open transactions. The server keeps the list, which may be old if other sessions read it
// often. This statement contains a mark: if the list shows it, the list is new. The statement is listed because
// its transaction has read a row before.
func openNow(ctx context.Context, q dialect.Querier, table string) (open []dialect.Writer, fresh bool, err error) {
	mark := fmt.Sprintf("/* %x */", rand.Uint64())
	if _, err := dialect.QueryAll(ctx, q, "SELECT 1 FROM "+table+" LIMIT 1", nil, func(dialect.Rows) (struct{}, error) {
		return struct{}{}, nil
	}); err != nil {
		return nil, false, err
	}
	lockWaits := 0
	all, err := dialect.QueryAll(ctx, q, "SELECT "+mark+
		" trx_mysql_thread_id, trx_id, COALESCE(LEFT(trx_query, 100), ''), trx_state = 'LOCK WAIT' "+
		"FROM information_schema.INNODB_TRX"+whole, nil,
		func(rows dialect.Rows) (struct{}, error) {
			var t dialect.Writer
			var thread, number uint64
			var query string
			var waits bool
			if err := rows.Scan(&thread, &number, &query, &waits); err != nil {
				return struct{}{}, err
			}
			if waits {
				lockWaits++
			}
			if strings.Contains(query, mark) {
				fresh = true
				return struct{}{}, nil
			}
			if t.Session, t.Orphan = strconv.FormatUint(thread, 10), thread == 0; number > 0 && number < firstPointer {
				t.Transaction = strconv.FormatUint(number, 10)
			}
			open = append(open, t)
			return struct{}{}, nil
		})
	return open, fresh && len(all) < maxShown && lockWaits < maxLockWaits, err
}

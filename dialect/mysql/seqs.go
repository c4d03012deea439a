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

// SeqsGrow: AUTO_INCREMENT is not taken back by a rollback, nor by a crash below what was
// committed.
func (Dialect) SeqsGrow() bool { return true }

// which says among which numbers a statement looks, behind the table's name. A range that ends
// before a deleted record is walked far beyond its end, to the first record that is there; so the
// numbers of gaps are looked up one by one. The
// hint keeps the planner from walking the index from its beginning.
func which(column string, among dialect.Seqs) string {
	if among.All() {
		return ""
	}
	return " FORCE INDEX (PRIMARY) WHERE " + among.OneByOne(column)
}

// Which implements [dialect.Publish].
func (Dialect) Which(column string, among dialect.Seqs) []string {
	return []string{which(column, among)}
}

// Writers implements [dialect.Publish], where MariaDB tells, and the login has the right
// PROCESS. MySQL's INNODB_TRX is of no use, see errCannotShow; its metadata locks are.
//
// A seq is drawn by a statement, whose transaction InnoDB may begin right behind that. So who
// is at a statement is read first, and then which transactions are open: whoever had drawn before the
// first is at that statement then, or in a transaction that has a number by the second, or has ended. A transaction has no
// number before it writes its first row, be it open for long, and keeps the one that it gets, also while it is prepared. Who is at a
// SELECT, such as a dump's, draws nothing by it: what a function writes for it is shown as that statement.
func (d Dialect) Writers(ctx context.Context, q dialect.Querier, f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	kind, err := numbersAlone(ctx, q)
	switch {
	case err != nil || kind == others:
		return nil, false, d.untold(err)
	case kind == aloneMySQL:
		open, told, err = d.tableHolders(ctx, q, f)
		return open, told && err == nil, d.untold(err)
	}
	// Event handlers and senders of the binary log are at a statement always, and write nothing.
	busy, err := dialect.QueryAll(ctx, q, "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump') AND ID <> CONNECTION_ID() AND COALESCE(INFO, '') NOT LIKE 'SELECT %'"+whole, nil,
		func(rows dialect.Rows) (w dialect.Writer, err error) { return w, rows.Scan(&w.Session) })
	if err != nil {
		return nil, false, d.untold(err)
	}
	transactions, told, err := openNow(ctx, q, dialect.Qualified(d, f.Names.Table("sequences")))
	if err != nil || !told {
		return nil, false, d.untold(err)
	}
	for _, w := range busy {
		if !slices.ContainsFunc(transactions, func(t dialect.Writer) bool { return t.Session == w.Session && t.Transaction != "" }) {
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

// untold leaves out errors of those who cannot be told.
func (d Dialect) untold(err error) error {
	if class := d.Classify(err); cannotShow(err) || class == dialect.ClassPermission || class == dialect.ClassUndefined {
		return nil
	}
	return err
}

// What numbersAlone answers.
const (
	others = iota
	aloneMySQL
	aloneMariaDB
)

// numbersAlone tells whether this is the only server that numbers rows, and which it is: others in a
// cluster do not wait for this one's, and it does not see their transactions.
func numbersAlone(ctx context.Context, q dialect.Querier) (kind int, err error) {
	// MySQL takes the end for a comment.
	err = dialect.QueryRow(ctx, q, "SELECT (@@GLOBAL.auto_increment_increment = 1) /*M! * 2 * (NOT EXISTS "+
		"(SELECT 1 FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON')) */", nil, &kind)
	return kind, err
}

const (
	// firstPointer is above all numbers of transactions: what is shown of one that has none yet is 0
	// or, by some versions, its address.
	firstPointer = 1 << 48
	// The server leaves some out where the list takes more than 16 MiB: 1.3 KB each at most and, of those that wait for
	// locks, twice 8 KB more, and the pairs of those that wait for the same. (1,450 that wait for one row are too many.)
	maxShown, maxLockWaits = 4000, 300
)

// openNow are the open transactions. The server keeps the list, as old as it may get while others ask
// for it; that it was made just now tells this very statement, which is on it then, in a transaction that
// has read something.
func openNow(ctx context.Context, q dialect.Querier, table string) (open []dialect.Writer, fresh bool, err error) {
	mark := fmt.Sprintf("/* %x */", rand.Uint64())
	if _, err := dialect.QueryAll(ctx, q, "SELECT 1 FROM "+table+" LIMIT 1", nil, func(dialect.Rows) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return nil, false, err
	}
	lockWaits := 0
	all, err := dialect.QueryAll(ctx, q, "SELECT "+mark+" trx_mysql_thread_id, trx_id, COALESCE(LEFT(trx_query, 100), ''), trx_state = 'LOCK WAIT' FROM information_schema.INNODB_TRX"+whole, nil,
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

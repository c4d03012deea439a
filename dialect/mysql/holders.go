package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// Holders implements [dialect.Rest]. MySQL's performance schema lists every lock. MariaDB lists only locks that
// other transactions wait for, and renews this list only if it was not read for 100 ms. MySQL's INNODB_TRX
// cannot be used: see errCannotShow.
func (d Dialect) Holders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	all, err := d.holders(ctx, q, f, `SELECT l.LOCK_DATA, l.LOCK_STATUS = 'WAITING', th.PROCESSLIST_ID, `+
		`l.ENGINE_TRANSACTION_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST,
  (SELECT c.ATTR_VALUE FROM performance_schema.session_account_connect_attrs c `+
		`WHERE c.PROCESSLIST_ID = th.PROCESSLIST_ID AND c.ATTR_NAME = 'program_name'),
  e.TIMER_WAIT DIV 1000000, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME * 1000000, `+lastStatement+`
FROM performance_schema.data_locks l
JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID
LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = l.THREAD_ID AND e.STATE = 'ACTIVE'
WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND l.OBJECT_NAME = ? AND l.LOCK_TYPE = 'RECORD' `+
		`AND l.INDEX_NAME = 'PRIMARY'
  AND l.LOCK_MODE IN ('X', 'X,REC_NOT_GAP') AND SUBSTRING_INDEX(l.LOCK_DATA, ',', 1) = ?
ORDER BY 2, 8 DESC, 3`)
	if err == nil && len(all) == 0 { // a performance schema that is switched off lists nothing
		var on bool
		if err := dialect.QueryRow(ctx, q, "SELECT @@GLOBAL.performance_schema", nil, &on); err != nil || !on {
			return nil, dialect.HoldersNone, err
		}
	}
	if err == nil {
		return all, dialect.HoldersAll, nil
	}
	// MariaDB tells some logins that there is no such table, and others that they may not read it.
	if class := d.Classify(err); class != dialect.ClassUndefined && class != dialect.ClassPermission {
		return nil, dialect.HoldersNone, err
	}
	missed := err
	all, err = d.holders(ctx, q, f, `SELECT l.lock_data, x.trx_requested_lock_id <=> l.lock_id, `+
		`x.trx_mysql_thread_id, x.trx_id, p.USER, p.HOST, '',
  `+trxAge+`, p.COMMAND, CAST(p.TIME_MS * 1000 AS SIGNED), COALESCE(p.INFO, x.trx_query)
FROM information_schema.INNODB_LOCKS l
JOIN information_schema.INNODB_TRX x ON x.trx_id = l.lock_trx_id
JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
WHERE l.lock_table = CONCAT('`+"`', REPLACE(COALESCE(NULLIF(?, ''), DATABASE()), '`', '``'), '`.`', REPLACE(?, "+
		"'`', '``'), '`"+`') AND l.lock_type = 'RECORD' AND l.lock_index = 'PRIMARY'
  AND l.lock_mode = 'X' AND SUBSTRING_INDEX(l.lock_data, ',', 1) = ?
ORDER BY 2, 8 DESC, 3`)
	switch {
	case err == nil:
		return all, dialect.HoldersWaitedFor, nil
	case d.Classify(err) == dialect.ClassPermission:
		return nil, dialect.HoldersNone, missing(d, "PROCESS", err)
	}
	return nil, dialect.HoldersNone, missing(d, "PROCESS, or SELECT on performance_schema,", missed)
}

// missing adds the name of the missing right to an error, if the error is about a missing right.
func missing(d Dialect, right string, err error) error {
	if d.Classify(err) == dialect.ClassPermission {
		return fmt.Errorf("the right %s is missing: %w", right, err)
	}
	return err
}

func (d Dialect) holders(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	query string) (all []dialect.Holding, err error) {
	shards := f.Names.Table("shards")
	_, err = dialect.QueryAll(ctx, q, query+whole, []any{shards.Schema, shards.Name, "'" + f.Name + "'"},
		func(rows dialect.Rows) (struct{}, error) {
			v, err := dialect.ScanStrings(rows, 11)
			if err != nil {
				return struct{}{}, err
			}
			// LOCK_DATA has the columns of the record's key: 'events', 5.
			_, key, _ := strings.Cut(v[0], ",")
			shard, err := strconv.Atoi(strings.TrimSpace(key))
			if err != nil {
				return struct{}{}, fmt.Errorf("a lock on the record %s: %w", v[0], err)
			}
			all = dialect.AddSession(all, shard, v[1] == "1", dialect.Session{ID: v[2], Transaction: v[3], User: v[4],
				Host: v[5], Application: v[6],
				Age: micros(v[7]), State: v[8], StateAge: micros(v[9]), Statement: v[10]})
			return struct{}{}, nil
		})
	return all, err
}

// micros reads a number of microseconds. It is -1 if the text is not a number.
func micros(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return max(n, 0)
}

// EndHolder implements [dialect.Rest]. KILL ends a connection, not a transaction, so EndHolder reads the locks
// right before it. In between, the session could still end its transaction and begin another one. MariaDB's
// list of locks may be 100 ms old. Before the second read of that list, EndHolder waits longer than that
// without reading it.
func (d Dialect) EndHolder(ctx context.Context, q dialect.Querier, f *dialect.Feed, h dialect.Holding) (bool, error) {
	all, named, err := d.Holders(ctx, q, f)
	if err == nil && named == dialect.HoldersWaitedFor {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(150 * time.Millisecond):
		}
		all, _, err = d.Holders(ctx, q, f)
	}
	if err != nil {
		return false, err
	}
	for _, now := range all {
		if now.Shard == h.Shard && now.Holder != nil && now.Holder.ID == h.Holder.ID &&
			now.Holder.Transaction == h.Holder.Transaction {
			id, err := strconv.ParseUint(h.Holder.ID, 10, 64)
			if err != nil {
				return false, err
			}
			_, err = q.Exec(ctx, "KILL CONNECTION "+strconv.FormatUint(id, 10))
			if number, _ := dialect.CodeField(err, "Number"); number == errNoSuchThread {
				return false, nil
			}
			return err == nil, missing(d, "CONNECTION ADMIN (MariaDB; SUPER before 10.5) or CONNECTION_ADMIN (MySQL)",
				err)
		}
	}
	return false, nil
}

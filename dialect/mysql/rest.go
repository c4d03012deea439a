package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// trxAge is an expression for the age of a transaction in microseconds. The catalog shows trx_started in the
// server's time zone, whatever the session's is.
const trxAge = "TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM'))"

// Blockers implements [dialect.Rest]. MySQL's performance schema tells which sessions have the table of changes
// open for writing. MariaDB's is off by default; then the list has all transactions that wrote to any table. If
// the login lacks the rights for both, the list is empty, and Unseen names the missing right.
//
// MySQL sometimes cannot list transactions (errCannotShow), or does not list them for this login. The result
// then includes sessions that have the table of changes open but have written nothing.
func (d Dialect) Blockers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Blocker, *dialect.Unseen, error) {
	if f.ULIDs != nil {
		if _, named, err := d.Holders(ctx, q, f); err == nil && named == dialect.HoldersAll {
			return nil, nil, nil
		}
		return d.writers(ctx, q)
	}
	written := f.Written()
	holding := func(age, join string) ([]dialect.Blocker, error) {
		return blockers(ctx, q, `SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, `+age+
			`, COALESCE(`+lastStatement+`, ''), 'wrote to the feed'
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
`+join+`
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ?
  AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED'
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC`, written.Schema, written.Name)
	}
	var tells sql.NullInt64
	err := dialect.QueryRow(ctx, q, `SELECT COUNT(*) FROM performance_schema.setup_instruments
WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES' AND @@GLOBAL.performance_schema = 1`, nil, &tells)
	if err == nil && tells.Int64 == 1 {
		// The join with innodb_trx excludes sessions that have fired no trigger.
		found, err := holding(trxAge,
			"JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID "+
				"AND x.trx_rows_modified > 0")
		if cannotShow(err) || d.Classify(err) == dialect.ClassPermission {
			found, err = holding("e.TIMER_WAIT DIV 1000000",
				"LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = th.THREAD_ID "+
					"AND e.STATE = 'ACTIVE'")
		}
		if err == nil {
			lockers, err := locking(ctx, q, f.Source)
			return append(lockers, found...), nil, err
		}
	}
	return d.writers(ctx, q)
}

// locking returns the sessions that lock a table, or wait to lock it, against every other session; and those that have
// used the table since a transaction began, if another session waits to lock it.
func locking(ctx context.Context, q dialect.Querier, table feedtype.TableName) ([]dialect.Blocker, error) {
	return blockers(ctx, q, `SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST,
  th.PROCESSLIST_TIME * 1000000, COALESCE(`+lastStatement+`, ''),
  IF(m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE'), 'locks the feed''s table, or waits to lock it',
    'has used the feed''s table, which another session waits to lock')
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ?
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
  AND (m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE') OR m.LOCK_STATUS = 'GRANTED' AND EXISTS (
    SELECT 1 FROM performance_schema.metadata_locks x
    WHERE x.OBJECT_TYPE = 'TABLE' AND x.OBJECT_SCHEMA = m.OBJECT_SCHEMA AND x.OBJECT_NAME = m.OBJECT_NAME
      AND x.LOCK_TYPE = 'EXCLUSIVE' AND x.LOCK_STATUS = 'PENDING' AND x.OWNER_THREAD_ID <> m.OWNER_THREAD_ID))
ORDER BY 4 DESC`, table.Schema, table.Name)
}

// lastStatement is an expression for the current statement of the session th, or for its last one. A session
// that blocks others is mostly between statements.
const lastStatement = "COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT " +
	"FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1))"

// writers returns all transactions that wrote to any table.
func (d Dialect) writers(ctx context.Context, q dialect.Querier) ([]dialect.Blocker, *dialect.Unseen, error) {
	found, err := blockers(ctx, q, `SELECT x.trx_mysql_thread_id, p.USER, p.HOST, `+trxAge+
		`, COALESCE(x.trx_query, ''), 'wrote to some table'
FROM information_schema.INNODB_TRX x
LEFT JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
WHERE x.trx_rows_modified > 0 AND x.trx_mysql_thread_id <> CONNECTION_ID()
UNION ALL
SELECT p.ID, p.USER, p.HOST, p.TIME * 1000000, p.INFO, 'waits to lock a table'
FROM information_schema.PROCESSLIST p
WHERE p.STATE = 'Waiting for table metadata lock'
  AND p.INFO REGEXP '^(ALTER|CREATE|DROP|LOCK|OPTIMIZE|RENAME|TRUNCATE) '
ORDER BY 4 DESC`)
	switch {
	case cannotShow(err):
		return nil, &dialect.Unseen{Cause: "the server cannot list transactions while a statement runs with bytes in " +
			"it that are no text, and does not tell this login of metadata locks",
			Next: "look again, or let it read performance_schema"}, nil
	case err == nil || d.Classify(err) != dialect.ClassPermission:
		return found, nil, err
	}
	var login string
	if err := dialect.QueryRow(ctx, q, "SELECT CURRENT_USER()", nil, &login); err != nil {
		return nil, nil, err
	}
	at := strings.LastIndex(login, "@") // a host has no @, but a user may
	login = d.Literal(login[:at]) + "@" + d.Literal(login[at+1:])
	return nil, &dialect.Unseen{Cause: "the login " + login + " is told of no other's transactions: it lacks PROCESS",
		Next: "run `GRANT PROCESS ON *.* TO " + login + "`"}, nil
}

// cannotShow tells whether err is errCannotShow.
func cannotShow(err error) bool {
	number, _ := dialect.CodeField(err, "Number")
	return number == errCannotShow
}

func blockers(ctx context.Context, q dialect.Querier, query string, args ...any) ([]dialect.Blocker, error) {
	return dialect.QueryAll(ctx, q, query+whole, args, func(rows dialect.Rows) (dialect.Blocker, error) {
		v, err := dialect.ScanStrings(rows, 6)
		if err != nil {
			return dialect.Blocker{}, err
		}
		return dialect.Blocker{Session: v[0], User: v[1], Host: v[2], AgeMicros: micros(v[3]), Statement: v[4],
			Scope: v[5]}, nil
	})
}

// Backlog implements [dialect.Rest]. UNIX_TIMESTAMP reads a TIMESTAMP column without the session's time zone.
func (d Dialect) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, ageMicros int64, err error) {
	b := dialect.NewBuilder(d)
	since, from := dialect.OldestWaiting(d, b, f, shard)
	var age sql.NullInt64
	err = dialect.QueryRow(ctx, q, fmt.Sprintf("SELECT %s, "+
		"(SELECT %s - CAST(UNIX_TIMESTAMP(%s) * 1000000 AS SIGNED)%s)", dialect.CountWaiting(d, f, limit), d.Now(),
		since, from), b.Args(), &count, &age)
	return count, max(age.Int64, 0), err
}

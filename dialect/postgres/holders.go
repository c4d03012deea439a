package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
)

// held are CTEs with the transactions that have locked shards ("holding") and those that wait for shards
// ("waiting").
//
// The row's xmax is the id of the transaction that locks or changes the row. That transaction holds a lock on
// its own id until it ends. If it locked the row under a savepoint, xmax is the id of a subtransaction instead.
// Then the waiting transactions tell: each of them has, or waits for, a tuple lock on that version of the row,
// and pg_blocking_pids includes the holder. A new shard's row is visible only to the transaction that inserted
// it, so that holder is not found.
const held = `mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM %[1]s s WHERE s.feed = $1::text
), waiting AS MATERIALIZED (
  SELECT m.shard, l.pid, min(l.waitstart) AS since, pg_blocking_pids(l.pid) AS behind FROM mine m
  JOIN pg_locks l ON l.locktype = 'tuple' AND l.relation = $2::text::regclass AND m.place = format('(%%s,%%s)', ` +
	`l.page, l.tuple)::tid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  WHERE cardinality(pg_blocking_pids(l.pid)) > 0
  GROUP BY m.shard, l.pid
), holding AS MATERIALIZED (
  SELECT m.shard, l.pid, l.virtualtransaction, m.xmax AS xid FROM mine m
  JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' ` +
	`AND l.transactionid = m.xmax
  UNION ALL
  SELECT w.shard, l.pid, l.virtualtransaction, NULL::xid FROM waiting w
  JOIN pg_locks l ON l.locktype = 'virtualxid' AND l.granted AND l.pid = ANY (w.behind)
  WHERE l.virtualtransaction = l.virtualxid AND NOT EXISTS (SELECT 1 FROM waiting o WHERE o.shard = w.shard ` +
	`AND o.pid = l.pid)
)`

// Holders implements [dialect.Rest]. Every login may see the locks. Only a member of pg_read_all_stats, or of
// the session's own role, sees what a session does.
func (d Dialect) Holders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	shards := dialect.Qualified(d, f.Names.Table("shards"))
	var all []dialect.Holding
	_, err := dialect.QueryAll(ctx, q, "WITH "+fmt.Sprintf(held, shards)+`, sessions AS (
  SELECT DISTINCT ON (shard, pid) shard, 0 AS waits, pid, virtualtransaction, xid, NULL::timestamptz AS since `+
		`FROM holding
  UNION ALL SELECT shard, 1, pid, '', NULL, since FROM waiting
)
SELECT b.shard, b.waits, COALESCE(b.pid::text, ''), b.virtualtransaction, COALESCE(a.usename::text, x.owner::text, ''),
  CASE WHEN a.pid IS NULL OR a.backend_start IS NULL THEN '' ELSE COALESCE(host(a.client_addr), 'local') END, `+
		`COALESCE(a.application_name, ''),
  COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, x.prepared)) * 1000000)::bigint, -1),
  COALESCE(a.state, CASE WHEN x.gid IS NULL THEN '' ELSE 'prepared' END),
  COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.state_change, x.prepared)) * 1000000)::bigint, -1),
  COALESCE(left(a.query, 500), 'PREPARE TRANSACTION ' || quote_literal(x.gid), '')
FROM sessions b
LEFT JOIN pg_stat_activity a ON a.pid = b.pid
LEFT JOIN pg_prepared_xacts x ON b.pid IS NULL AND x.transaction = b.xid
ORDER BY b.shard, b.waits, b.since, b.pid`, []any{f.Name, shards}, func(rows dialect.Rows) (struct{}, error) {
		var shard, waits int
		var s dialect.Session
		err := rows.Scan(&shard, &waits, &s.ID, &s.Transaction, &s.User, &s.Host, &s.Application, &s.Age, &s.State,
			&s.StateAge, &s.Statement)
		all = dialect.AddSession(all, shard, waits == 1, s)
		return struct{}{}, err
	})
	return all, dialect.HoldersAll, err
}

// EndHolder implements [dialect.Rest]. One statement finds the transaction and ends its session. Between these
// two steps the session could still end the transaction and begin another one.
func (d Dialect) EndHolder(ctx context.Context, q dialect.Querier, _ *dialect.Feed,
	h dialect.Holding) (ended bool, err error) {
	err = dialect.QueryRow(ctx, q, `SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'virtualxid' AND granted AND pid::text = $1::text AND virtualtransaction = $2::text `+
		`AND virtualxid = virtualtransaction`,
		[]any{h.Holder.ID, h.Holder.Transaction}, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case d.Classify(err) == dialect.ClassPermission:
		err = fmt.Errorf("membership in the role %q, or in pg_signal_backend, is missing: %w", h.Holder.User, err)
	}
	return ended, err
}

// mayHold returns the transactions that write to the table of shards, but are not known to have locked a shard
// of this feed. The first holder of a new shard is among them. So are holders of other feeds' shards.
func (d Dialect) mayHold(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Blocker, error) {
	shards := dialect.Qualified(d, f.Names.Table("shards"))
	return dialect.QueryAll(ctx, q, "WITH "+fmt.Sprintf(held, shards)+`
SELECT a.pid::text, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1), COALESCE(a.state || ': ', `+
		`'') || left(a.query, 500),
  'has a shard: a new one of this feed, one that it took under a savepoint, or another feed''s'
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock' AND l.relation = $2::text::regclass
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.pid NOT IN (SELECT h.pid FROM holding h WHERE h.pid IS NOT NULL UNION SELECT w.pid FROM waiting w) `+
		`AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start`, []any{f.Name, shards}, func(rows dialect.Rows) (b dialect.Blocker, err error) {
		return b, rows.Scan(&b.Session, &b.User, &b.Host, &b.AgeMicros, &b.Statement, &b.Scope)
	})
}

-- Sessions of other programs: transactions that delay a publisher, and transactions that have locked a shard.
--
-- Every role may read pg_locks, of all sessions. Only members of pg_read_all_stats, or of the session's own role, see
-- in pg_stat_activity since when its transaction runs, from where, and what it does.

-- name: writers
-- The transactions that have a writer's lock on a table, and those that have a transaction id. An INSERT acquires the
-- lock on the table before it draws its first seq, and gets a transaction id with its first row. The transaction has a
-- lock on its id until it ends. Neither lock is enough. The id is assigned after the draw. The table lock can be
-- released too early: PostgreSQL releases a lock that was acquired in a cursor if the cursor fails under a savepoint
-- that is younger than the cursor's rows. Otherwise both are held until the commit is visible.
--
-- pg_locks misses no such lock: locks on the fast path are listed first, and can only move to the main lock table,
-- which is read afterwards. A prepared transaction keeps the name that it had in its session. After a restart its name
-- is -1/ followed by its id. The first column is false for a sequence that caches values: sessions then have numbers
-- without a lock.
SELECT s.plain, COALESCE(l.virtualtransaction, ''), COALESCE(l.pid IS NULL AND l.virtualtransaction LIKE '-1/%', false)
FROM (SELECT COALESCE((SELECT seqcache = 1 AND seqincrement > 0 AND NOT seqcycle FROM pg_sequence
  WHERE seqrelid = pg_get_serial_sequence(:table::text, :column::text)::regclass), false) AS plain) s
LEFT JOIN (SELECT DISTINCT w.virtualtransaction, w.pid
  FROM pg_locks w CROSS JOIN (SELECT oid FROM pg_database WHERE datname = current_database()) here
  WHERE w.granted AND w.locktype = 'relation' AND w.mode = 'RowExclusiveLock' AND w.relation = :table::text::regclass
    AND w.database = here.oid
  OR w.granted AND w.locktype = 'transactionid' AND w.mode = 'ExclusiveLock'
    AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.pid = w.pid AND a.datid <> here.oid)
    AND NOT EXISTS (SELECT 1 FROM pg_prepared_xacts p WHERE p.transaction = w.transactionid
      AND p.database <> current_database())) l ON true

-- name: blockers
-- The transactions that have a writer's lock on the table of changes or, if rows hold their positions, on the source:
-- they wrote to the source, or to a partition that they named, and have not ended. Publishers are left out: they write
-- to the table of positions, too. Then come the sessions that have locked the source against pages and publishers, or
-- wait to lock it, and the sessions that delay these.
--
-- Prepared transactions have no session. Their locks have the name that their session had for them, which the lock on
-- their id has, too.
WITH locks AS (
  SELECT l.* FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), held AS (
  SELECT l.pid, l.virtualtransaction, 'wrote to the feed''s table' AS scope FROM locks l
  WHERE l.granted AND l.mode = 'RowExclusiveLock'
    AND (l.relation = :written::text::regclass
      OR l.relation IN (SELECT relid FROM pg_partition_tree(:written::text::regclass)))
    AND NOT EXISTS (SELECT 1 FROM pg_locks p WHERE p.locktype = 'relation' AND p.virtualtransaction = l.virtualtransaction
      AND p.relation = :positions::text::regclass AND p.mode = 'RowExclusiveLock')
), locking AS (
  SELECT l.pid, l.granted FROM locks l WHERE l.mode = 'AccessExclusiveLock' AND l.relation = :source::text::regclass
), found AS (
  SELECT * FROM held
  UNION ALL SELECT l.pid, '', 'locks the feed''s table, or waits to lock it' FROM locking l
  UNION ALL SELECT b.pid, '', 'has used the feed''s table, which another session waits to lock' FROM (
    SELECT DISTINCT unnest(pg_blocking_pids(l.pid)) AS pid FROM locking l WHERE NOT l.granted
  ) b
)
SELECT 'pid ' || a.pid, {{template "session_columns" .}}, found.scope, a.xact_start
FROM found JOIN pg_stat_activity a ON a.pid = found.pid
WHERE a.pid <> pg_backend_pid()
UNION ALL
SELECT 'prepared transaction ' || x.gid, x.owner::text, '',
  (extract(epoch FROM clock_timestamp() - x.prepared) * 1000000)::bigint,
  'waits for COMMIT PREPARED or ROLLBACK PREPARED', held.scope, x.prepared
FROM held JOIN pg_locks i ON i.pid IS NULL AND i.virtualtransaction = held.virtualtransaction
  AND i.locktype = 'transactionid'
JOIN pg_prepared_xacts x ON x.transaction = i.transactionid
WHERE held.pid IS NULL
ORDER BY 7

-- name: session_columns
-- A session (a) as far as the login may see it. The age is -1 if it may not: every transaction has a start time.
COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1),
  COALESCE(a.state || ': ', '') || left(a.query, 500)

-- name: login
SELECT quote_ident(current_user)

-- name: held
-- The transactions that have locked shards (holding) and those that wait for shards (waiting).
--
-- The row's xmax is the id of the transaction that locks or changes the row. That transaction has a lock on its own id
-- until it ends. If it locked the row under a savepoint, xmax is the id of a subtransaction instead. Then the waiting
-- transactions show the holder: each of them has, or waits for, a tuple lock on that version of the row, and
-- pg_blocking_pids includes the holder. A new shard's row is visible only to the transaction that inserted it. Until it
-- is committed, holder and waiting transactions have, or wait for, the advisory lock of the shard's first use.
first_use AS MATERIALIZED (
  SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart
  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
    AND l.classid = (:feed_hash::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM {{table "shards"}} s WHERE s.feed = :feed::text
), waiting AS MATERIALIZED (
  SELECT m.shard, l.pid, min(l.waitstart) AS since, pg_blocking_pids(l.pid) AS behind FROM mine m
  JOIN pg_locks l ON l.locktype = 'tuple' AND l.relation = :shards::text::regclass
    AND m.place = format('(%s,%s)', l.page, l.tuple)::tid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  WHERE cardinality(pg_blocking_pids(l.pid)) > 0
  GROUP BY m.shard, l.pid
  UNION ALL SELECT u.shard, u.pid, u.waitstart, pg_blocking_pids(u.pid) FROM first_use u WHERE NOT u.granted
), holding AS MATERIALIZED (
  SELECT m.shard, l.pid, l.virtualtransaction, m.xmax AS xid FROM mine m
  JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND l.transactionid = m.xmax
  UNION ALL
  SELECT w.shard, l.pid, l.virtualtransaction, NULL::xid FROM waiting w
  JOIN pg_locks l ON l.locktype = 'virtualxid' AND l.granted AND l.pid = ANY (w.behind)
  WHERE l.virtualtransaction = l.virtualxid
    AND NOT EXISTS (SELECT 1 FROM waiting o WHERE o.shard = w.shard AND o.pid = l.pid)
  UNION ALL
  SELECT u.shard, u.pid, u.virtualtransaction, x.transactionid FROM first_use u
  LEFT JOIN pg_locks x ON u.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = u.virtualtransaction
  WHERE u.granted
)

-- name: holders
WITH {{template "held" .}}, sessions AS (
  SELECT DISTINCT ON (shard, pid) shard, 0 AS waits, pid, virtualtransaction, xid, NULL::timestamptz AS since FROM holding
  UNION ALL SELECT shard, 1, pid, '', NULL, since FROM waiting
)
SELECT b.shard, b.waits, COALESCE(b.pid::text, ''), b.virtualtransaction, COALESCE(a.usename::text, x.owner::text, ''),
  CASE WHEN a.pid IS NULL OR a.backend_start IS NULL THEN '' ELSE COALESCE(host(a.client_addr), 'local') END,
  COALESCE(a.application_name, ''),
  COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, x.prepared)) * 1000000)::bigint, -1),
  COALESCE(a.state, CASE WHEN x.gid IS NULL THEN '' ELSE 'prepared' END),
  COALESCE((extract(epoch FROM clock_timestamp() - COALESCE(a.state_change, x.prepared)) * 1000000)::bigint, -1),
  COALESCE(left(a.query, 500), 'PREPARE TRANSACTION ' || quote_literal(x.gid), '')
FROM sessions b
LEFT JOIN pg_stat_activity a ON a.pid = b.pid
LEFT JOIN pg_prepared_xacts x ON b.pid IS NULL AND x.transaction = b.xid
ORDER BY b.shard, b.waits, b.since, b.pid

-- name: may_hold
-- The transactions that write to the table of shards, but are not known to have locked a shard of this feed. The first
-- holder of a new shard beyond 32 bits is among them. So are holders of other feeds' shards.
WITH {{template "held" .}}
SELECT a.pid::text, {{template "session_columns" .}},
  'has a shard: one of this feed that it took under a savepoint, or another feed''s', a.xact_start
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock' AND l.relation = :shards::text::regclass
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.pid NOT IN (SELECT h.pid FROM holding h WHERE h.pid IS NOT NULL UNION SELECT w.pid FROM waiting w)
  AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start

-- name: open_change
-- The transaction that has locked or changed the row with the feed's head. A commit sends its record to standbys, waits
-- for them, and only then becomes visible. Until it is visible it has the lock on its own id, which is the row's xmax.
-- No publisher works under a savepoint. It locks the row only after the previous publisher's commit is visible. So
-- every snapshot that is taken after the commit was sent has this version of the row.
SELECT l.virtualtransaction FROM (
  SELECT xmax FROM {{table "sequences"}} WHERE name = :feed::text :elsewhere
) s JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock'
  AND l.transactionid = s.xmax
ORDER BY 1 LIMIT 1

-- name: changed_elsewhere
UNION ALL SELECT xmax FROM :sequence WHERE name = :name::text

-- name: open_change_of_shard
WITH {{template "held" .}}
SELECT virtualtransaction FROM holding WHERE shard = :shard::bigint ORDER BY 1 LIMIT 1

-- name: end_holder
-- One statement finds the transaction and ends its session. Between two statements the session could end the
-- transaction and begin another one. No two transactions of a server have the same virtual id.
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'virtualxid' AND granted AND pid::text = :session::text AND virtualtransaction = :transaction::text
  AND virtualxid = virtualtransaction

-- name: backlog
-- How many changes wait, and since when the oldest has waited. Each kind is counted only up to :limit.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{changes}} LIMIT :limit) x)
{{- if .InRows}} + (SELECT count(*) FROM (SELECT 1 FROM {{source}} WHERE feed_sync_id IS NULL LIMIT :limit) y){{end}},
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - changed_at) * 1000000)::bigint
    FROM {{changes}} ORDER BY seq LIMIT 1), 0)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - appended_at) * 1000000)::bigint
    FROM {{records}} ORDER BY order_sequence LIMIT 1), 0)

-- name: backlog_of_shard
-- Its records are counted with those of the other shards. The shard is a range, so that only the index of the outbox
-- has the order of the query: otherwise a planner that expects many records of the shard would scan the primary key,
-- through the records of all other shards.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - appended_at) * 1000000)::bigint
    FROM {{records}} WHERE shard BETWEEN :shard AND :shard ORDER BY shard, order_sequence LIMIT 1), 0)

-- name: backlog
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_changes_<feed>" LIMIT :limit) x),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - changed_at) * 1000000)::bigint
    FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT 1), 0)

-- name: backlog (column_capture_feed)
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_changes_<feed>" LIMIT :limit) x) + (SELECT count(*) FROM (SELECT 1 FROM "items_<feed>" WHERE feed_sync_id IS NULL LIMIT :limit) y),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - changed_at) * 1000000)::bigint
    FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT 1), 0)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_outbox_<feed>" LIMIT :limit) x),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - appended_at) * 1000000)::bigint
    FROM "rowfeed_outbox_<feed>" ORDER BY order_sequence LIMIT 1), 0)

-- name: backlog_of_shard
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_outbox_<feed>" LIMIT :limit) x),
  COALESCE((SELECT (extract(epoch FROM clock_timestamp() - appended_at) * 1000000)::bigint
    FROM "rowfeed_outbox_<feed>" WHERE shard BETWEEN :shard AND :shard ORDER BY shard, order_sequence LIMIT 1), 0)

-- name: blockers
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
SELECT 'pid ' || a.pid, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1),
  COALESCE(a.state || ': ', '') || left(a.query, 500), found.scope, a.xact_start
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

-- name: changed_elsewhere
UNION ALL SELECT xmax FROM :sequence WHERE name = :name::text

-- name: end_holder
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'virtualxid' AND granted AND pid::text = :session::text AND virtualtransaction = :transaction::text
  AND virtualxid = virtualtransaction

-- name: held
first_use AS MATERIALIZED (
  SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart
  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
    AND l.classid = (:feed_hash::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM "rowfeed_shards" s WHERE s.feed = :feed::text
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
WITH first_use AS MATERIALIZED (
  SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart
  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
    AND l.classid = (:feed_hash::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM "rowfeed_shards" s WHERE s.feed = :feed::text
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
), sessions AS (
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

-- name: login
SELECT quote_ident(current_user)

-- name: may_hold
WITH first_use AS MATERIALIZED (
  SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart
  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
    AND l.classid = (:feed_hash::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM "rowfeed_shards" s WHERE s.feed = :feed::text
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
SELECT a.pid::text, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1),
  COALESCE(a.state || ': ', '') || left(a.query, 500),
  'has a shard: one of this feed that it took under a savepoint, or another feed''s', a.xact_start
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock' AND l.relation = :shards::text::regclass
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.pid NOT IN (SELECT h.pid FROM holding h WHERE h.pid IS NOT NULL UNION SELECT w.pid FROM waiting w)
  AND l.pid <> pg_backend_pid()
ORDER BY a.xact_start

-- name: open_change
SELECT l.virtualtransaction FROM (
  SELECT xmax FROM "rowfeed_sequences" WHERE name = :feed::text :elsewhere
) s JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock'
  AND l.transactionid = s.xmax
ORDER BY 1 LIMIT 1

-- name: open_change_of_shard
WITH first_use AS MATERIALIZED (
  SELECT (l.objid::bigint # 2147483648) - 2147483648 AS shard, l.pid, l.virtualtransaction, l.granted, l.waitstart
  FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2
    AND l.classid = (:feed_hash::bigint & 4294967295)::oid
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), mine AS MATERIALIZED (
  SELECT s.shard, s.ctid AS place, s.xmax FROM "rowfeed_shards" s WHERE s.feed = :feed::text
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
SELECT virtualtransaction FROM holding WHERE shard = :shard::bigint ORDER BY 1 LIMIT 1

-- name: session_columns
COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1),
  COALESCE(a.state || ': ', '') || left(a.query, 500)

-- name: writers
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


-- name: all_writers
SELECT x.trx_mysql_thread_id, p.USER, p.HOST, TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')), COALESCE(x.trx_query, ''),
  'wrote to some table'
FROM information_schema.INNODB_TRX x
LEFT JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
WHERE x.trx_rows_modified > 0 AND x.trx_mysql_thread_id <> CONNECTION_ID()
UNION ALL
SELECT p.ID, p.USER, p.HOST, p.TIME * 1000000, p.INFO, 'waits to lock a table'
FROM information_schema.PROCESSLIST p
WHERE p.STATE = 'Waiting for table metadata lock'
  AND p.INFO REGEXP '^(ALTER|CREATE|DROP|LOCK|OPTIMIZE|RENAME|TRUNCATE) '
ORDER BY 4 DESC LIMIT 18446744073709551615

-- name: backlog
SELECT (SELECT count(*) FROM (SELECT 1 FROM `rowfeed_changes_<feed>` LIMIT :limit) x),
  (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(changed_at) * 1000000 AS SIGNED) FROM `rowfeed_changes_<feed>` ORDER BY seq LIMIT 1)

-- name: backlog (column_capture_feed)
SELECT (SELECT count(*) FROM (SELECT 1 FROM `rowfeed_changes_<feed>` LIMIT :limit) x) + (SELECT count(*) FROM (SELECT 1 FROM `items_<feed>` WHERE feed_sync_id IS NULL LIMIT :limit) y),
  (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(changed_at) * 1000000 AS SIGNED) FROM `rowfeed_changes_<feed>` ORDER BY seq LIMIT 1)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM `rowfeed_outbox_<feed>` LIMIT :limit) x),
  (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED)
    FROM `rowfeed_outbox_<feed>` ORDER BY order_sequence LIMIT 1)

-- name: backlog_of_shard
SELECT (SELECT count(*) FROM (SELECT 1 FROM `rowfeed_outbox_<feed>` LIMIT :limit) x),
  (SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED)
    FROM `rowfeed_outbox_<feed>` FORCE INDEX (shard) WHERE shard = :shard ORDER BY order_sequence LIMIT 1)

-- name: blockers
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')),
  COALESCE(COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)), ''), 'wrote to the feed'
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID AND x.trx_rows_modified > 0
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
  AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED'
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC LIMIT 18446744073709551615

-- name: blockers_by_locks
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, e.TIMER_WAIT DIV 1000000,
  COALESCE(COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)), ''), 'wrote to the feed'
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = th.THREAD_ID AND e.STATE = 'ACTIVE'
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
  AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED'
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC LIMIT 18446744073709551615

-- name: end_holder
KILL CONNECTION :session

-- name: has_performance_schema
SELECT @@GLOBAL.performance_schema

-- name: holders
SELECT l.LOCK_DATA, l.LOCK_STATUS = 'WAITING', th.PROCESSLIST_ID, l.ENGINE_TRANSACTION_ID, th.PROCESSLIST_USER,
  th.PROCESSLIST_HOST,
  (SELECT c.ATTR_VALUE FROM performance_schema.session_account_connect_attrs c
    WHERE c.PROCESSLIST_ID = th.PROCESSLIST_ID AND c.ATTR_NAME = 'program_name'),
  e.TIMER_WAIT DIV 1000000, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME * 1000000, COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1))
FROM performance_schema.data_locks l
JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID
LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = l.THREAD_ID AND e.STATE = 'ACTIVE'
WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND l.OBJECT_NAME = :table AND l.LOCK_TYPE = 'RECORD'
  AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_MODE IN ('X', 'X,REC_NOT_GAP')
  AND SUBSTRING_INDEX(l.LOCK_DATA, ',', 1) = :feed
ORDER BY 2, 8 DESC, 3 LIMIT 18446744073709551615

-- name: holders_waited_for
SELECT l.lock_data, x.trx_requested_lock_id <=> l.lock_id, x.trx_mysql_thread_id, x.trx_id, p.USER, p.HOST, '',
  TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM')), p.COMMAND, CAST(p.TIME_MS * 1000 AS SIGNED), COALESCE(p.INFO, x.trx_query)
FROM information_schema.INNODB_LOCKS l
JOIN information_schema.INNODB_TRX x ON x.trx_id = l.lock_trx_id
JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
WHERE l.lock_table = CONCAT('`', REPLACE(COALESCE(NULLIF(:schema, ''), DATABASE()), '`', '``'), '`.`',
    REPLACE(:table, '`', '``'), '`')
  AND l.lock_type = 'RECORD' AND l.lock_index = 'PRIMARY' AND l.lock_mode = 'X'
  AND SUBSTRING_INDEX(l.lock_data, ',', 1) = :feed
ORDER BY 2, 8 DESC, 3 LIMIT 18446744073709551615

-- name: last_statement
COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1))

-- name: lock_for_reading
SELECT 1 FROM :table WHERE :number = 0

-- name: lockers
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, th.PROCESSLIST_TIME * 1000000,
  COALESCE(COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1)), ''),
  IF(m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE'), 'locks the feed''s table, or waits to lock it',
    'has used the feed''s table, which another session waits to lock')
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
  AND (m.LOCK_TYPE IN ('EXCLUSIVE', 'SHARED_NO_READ_WRITE') OR m.LOCK_STATUS = 'GRANTED' AND EXISTS (
    SELECT 1 FROM performance_schema.metadata_locks x
    WHERE x.OBJECT_TYPE = 'TABLE' AND x.OBJECT_SCHEMA = m.OBJECT_SCHEMA AND x.OBJECT_NAME = m.OBJECT_NAME
      AND x.LOCK_TYPE = 'EXCLUSIVE' AND x.LOCK_STATUS = 'PENDING' AND x.OWNER_THREAD_ID <> m.OWNER_THREAD_ID))
ORDER BY 4 DESC LIMIT 18446744073709551615

-- name: locks_complete
SELECT NOT EXISTS (SELECT 1 FROM performance_schema.replication_connection_configuration)
  AND NOT EXISTS (SELECT 1 FROM performance_schema.global_variables
    WHERE VARIABLE_NAME = 'wsrep_on' AND VARIABLE_VALUE = 'ON')
  AND (SELECT COUNT(*) = 2 AND SUM(VARIABLE_VALUE) = 0 FROM performance_schema.global_status
    WHERE VARIABLE_NAME IN ('Performance_schema_metadata_lock_lost', 'Performance_schema_thread_instances_lost'))
  AND EXISTS (SELECT 1 FROM performance_schema.setup_instruments
    WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES')

-- name: metadata_locks
SELECT m.OWNER_THREAD_ID = PS_CURRENT_THREAD_ID(),
  m.LOCK_TYPE IN ('SHARED', 'SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_READ_ONLY'),
  COALESCE(m.SOURCE NOT LIKE '%mdl.cc:%', 0) = 0 OR NOT EXISTS (SELECT 1 FROM performance_schema.threads t
    WHERE t.THREAD_ID = m.OWNER_THREAD_ID AND t.TYPE = 'FOREGROUND'),
  CONCAT(COALESCE(m.OWNER_THREAD_ID, 0), ':', COALESCE(m.OWNER_EVENT_ID, 0))
FROM performance_schema.metadata_locks m
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
LIMIT 18446744073709551615

-- name: numbers_alone
SELECT (@@GLOBAL.auto_increment_increment = 1) /*M! * 2 * (NOT EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES
  WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON')) */

-- name: open_transactions
SELECT :mark trx_mysql_thread_id, trx_id, COALESCE(LEFT(trx_query, 100), ''), trx_state = 'LOCK WAIT'
FROM information_schema.INNODB_TRX LIMIT 18446744073709551615

-- name: read_a_row
SELECT 1 FROM `rowfeed_sequences` LIMIT 1

-- name: running
SELECT ID FROM information_schema.PROCESSLIST
WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump') AND ID <> CONNECTION_ID()
  AND COALESCE(INFO, '') NOT LIKE 'SELECT %'
LIMIT 18446744073709551615

-- name: tells_locks
SELECT COUNT(*) FROM performance_schema.setup_instruments
WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES' AND @@GLOBAL.performance_schema = 1

-- name: transaction_age
TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM'))

-- name: written
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
  AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED'
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC LIMIT 18446744073709551615


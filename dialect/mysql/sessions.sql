-- Open transactions that may have drawn a sequence number, that delay a feed, or that have locked a shard.
--
-- MariaDB lists transactions in INNODB_TRX. MySQL's INNODB_TRX cannot always be read: see errCannotShow. MySQL's
-- performance schema lists the locks instead; MariaDB's is off by default. Every query has a LIMIT, because the
-- session's sql_select_limit would cut the answer, and an open transaction would look as if it had ended.

-- name: numbers_alone
-- Whether this is the only server that gives numbers, and which kind of server it is: 0 if it is not, 1 for MySQL, 2
-- for MariaDB. In a cluster the other servers do not wait for this one, and it does not see their transactions. MySQL
-- reads the last part as a comment.
SELECT (@@GLOBAL.auto_increment_increment = 1) /*M! * 2 * (NOT EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES
  WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON')) */

-- name: running
-- The sessions that are running a statement. Event handlers and senders of the binary log always run a statement, and
-- write nothing.
--
-- A session that is running a SELECT, such as a dump, draws no seq: if a function in it writes, the list shows the
-- function's statement.
SELECT ID FROM information_schema.PROCESSLIST
WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog Dump') AND ID <> CONNECTION_ID()
  AND COALESCE(INFO, '') NOT LIKE 'SELECT %'
LIMIT 18446744073709551615

-- name: read_a_row
-- The statement open_transactions is listed only if its transaction has read a row before.
SELECT 1 FROM {{table "sequences"}} LIMIT 1

-- name: open_transactions
-- The server keeps the list, which may be old if other sessions read it often. This statement contains a mark: if the
-- list shows it, the list is new.
SELECT :mark trx_mysql_thread_id, trx_id, COALESCE(LEFT(trx_query, 100), ''), trx_state = 'LOCK WAIT'
FROM information_schema.INNODB_TRX LIMIT 18446744073709551615

-- name: lock_for_reading
-- The reader's own lock on the table must be in the list of metadata locks: this proves that the server keeps the list,
-- and that it has this name for the table.
SELECT 1 FROM :table WHERE :number = 0

-- name: metadata_locks
-- The sessions that hold or await a metadata lock on a table: whether that is this session, whether the lock is for
-- reading, whether it may belong to any transaction, and its name. The name is the thread, and the event in which it
-- was requested.
--
-- XA PREPARE transfers the lock to the server, in mdl.cc, under another name. After a restart it belongs to a thread of
-- the server.
SELECT m.OWNER_THREAD_ID = PS_CURRENT_THREAD_ID(),
  m.LOCK_TYPE IN ('SHARED', 'SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_READ_ONLY'),
  COALESCE(m.SOURCE NOT LIKE '%mdl.cc:%', 0) = 0 OR NOT EXISTS (SELECT 1 FROM performance_schema.threads t
    WHERE t.THREAD_ID = m.OWNER_THREAD_ID AND t.TYPE = 'FOREGROUND'),
  CONCAT(COALESCE(m.OWNER_THREAD_ID, 0), ':', COALESCE(m.OWNER_EVENT_ID, 0))
FROM performance_schema.metadata_locks m
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
LIMIT 18446744073709551615

-- name: locks_complete
-- Whether all locks and threads have fitted into the lists. Numbers are also drawn elsewhere if this server is
-- configured to apply another server's writes, or belongs to a cluster.
SELECT NOT EXISTS (SELECT 1 FROM performance_schema.replication_connection_configuration)
  AND NOT EXISTS (SELECT 1 FROM performance_schema.global_variables
    WHERE VARIABLE_NAME = 'wsrep_on' AND VARIABLE_VALUE = 'ON')
  AND (SELECT COUNT(*) = 2 AND SUM(VARIABLE_VALUE) = 0 FROM performance_schema.global_status
    WHERE VARIABLE_NAME IN ('Performance_schema_metadata_lock_lost', 'Performance_schema_thread_instances_lost'))
  AND EXISTS (SELECT 1 FROM performance_schema.setup_instruments
    WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES')

-- name: tells_locks
-- Whether the performance schema lists metadata locks.
SELECT COUNT(*) FROM performance_schema.setup_instruments
WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES' AND @@GLOBAL.performance_schema = 1

-- name: transaction_age
-- In microseconds. The catalog shows trx_started in the server's time zone, whatever the session's is.
TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(UTC_TIMESTAMP(6), '+00:00', 'SYSTEM'))

-- name: last_statement
-- The current statement of the session th, or its last one. A session that blocks others is mostly between statements.
COALESCE(th.PROCESSLIST_INFO, (SELECT s.SQL_TEXT FROM performance_schema.events_statements_current s
  WHERE s.THREAD_ID = th.THREAD_ID ORDER BY s.EVENT_ID LIMIT 1))

-- name: blockers
-- The transactions that have written to the feed's table of changes. The join with INNODB_TRX excludes sessions that
-- have fired no trigger.
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, {{template "transaction_age"}},
  COALESCE({{template "last_statement"}}, ''), 'wrote to the feed'
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = th.PROCESSLIST_ID AND x.trx_rows_modified > 0
{{template "written"}}

-- name: blockers_by_locks
-- The same without INNODB_TRX. It includes sessions that have the table of changes open but have written nothing.
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, e.TIMER_WAIT DIV 1000000,
  COALESCE({{template "last_statement"}}, ''), 'wrote to the feed'
FROM performance_schema.metadata_locks m
JOIN performance_schema.threads th ON th.THREAD_ID = m.OWNER_THREAD_ID
LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = th.THREAD_ID AND e.STATE = 'ACTIVE'
{{template "written"}}

-- name: written
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND m.OBJECT_NAME = :table
  AND m.LOCK_TYPE = 'SHARED_WRITE' AND m.LOCK_DURATION = 'TRANSACTION' AND m.LOCK_STATUS = 'GRANTED'
  AND th.PROCESSLIST_ID <> CONNECTION_ID()
ORDER BY 4 DESC LIMIT 18446744073709551615

-- name: lockers
-- The sessions that lock a table, or wait to lock it, against every other session. If a session waits, also the
-- sessions whose open transactions have used the table.
SELECT th.PROCESSLIST_ID, th.PROCESSLIST_USER, th.PROCESSLIST_HOST, th.PROCESSLIST_TIME * 1000000,
  COALESCE({{template "last_statement"}}, ''),
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

-- name: all_writers
-- All transactions that wrote to any table, and sessions that wait to lock one.
SELECT x.trx_mysql_thread_id, p.USER, p.HOST, {{template "transaction_age"}}, COALESCE(x.trx_query, ''),
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
-- How many changes wait, and since when the oldest has waited. Each kind is counted only up to :limit. UNIX_TIMESTAMP
-- reads a TIMESTAMP column without the session's time zone.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{changes}} LIMIT :limit) x)
{{- if .InRows}} + (SELECT count(*) FROM (SELECT 1 FROM {{source}} WHERE feed_sync_id IS NULL LIMIT :limit) y){{end}},
  (SELECT {{now}} - CAST(UNIX_TIMESTAMP(changed_at) * 1000000 AS SIGNED) FROM {{changes}} ORDER BY seq LIMIT 1)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  (SELECT {{now}} - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED)
    FROM {{records}} ORDER BY order_sequence LIMIT 1)

-- name: backlog_of_shard
-- Its records are counted with those of the other shards.
SELECT (SELECT count(*) FROM (SELECT 1 FROM {{records}} LIMIT :limit) x),
  (SELECT {{now}} - CAST(UNIX_TIMESTAMP(appended_at) * 1000000 AS SIGNED)
    FROM {{records}} FORCE INDEX (shard) WHERE shard = :shard ORDER BY order_sequence LIMIT 1)

-- name: has_performance_schema
-- A performance schema that is switched off lists nothing.
SELECT @@GLOBAL.performance_schema

-- name: holders
-- The sessions that have locked a shard or wait for it, on MySQL, whose performance schema lists every lock.
SELECT l.LOCK_DATA, l.LOCK_STATUS = 'WAITING', th.PROCESSLIST_ID, l.ENGINE_TRANSACTION_ID, th.PROCESSLIST_USER,
  th.PROCESSLIST_HOST,
  (SELECT c.ATTR_VALUE FROM performance_schema.session_account_connect_attrs c
    WHERE c.PROCESSLIST_ID = th.PROCESSLIST_ID AND c.ATTR_NAME = 'program_name'),
  e.TIMER_WAIT DIV 1000000, th.PROCESSLIST_COMMAND, th.PROCESSLIST_TIME * 1000000, {{template "last_statement"}}
FROM performance_schema.data_locks l
JOIN performance_schema.threads th ON th.THREAD_ID = l.THREAD_ID
LEFT JOIN performance_schema.events_transactions_current e ON e.THREAD_ID = l.THREAD_ID AND e.STATE = 'ACTIVE'
WHERE l.OBJECT_SCHEMA = COALESCE(NULLIF(:schema, ''), DATABASE()) AND l.OBJECT_NAME = :table AND l.LOCK_TYPE = 'RECORD'
  AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_MODE IN ('X', 'X,REC_NOT_GAP')
  AND SUBSTRING_INDEX(l.LOCK_DATA, ',', 1) = :feed
ORDER BY 2, 8 DESC, 3 LIMIT 18446744073709551615

-- name: holders_waited_for
-- The same on MariaDB, which lists only locks that other transactions wait for, and renews this list only if it was not
-- read for 100 ms.
SELECT l.lock_data, x.trx_requested_lock_id <=> l.lock_id, x.trx_mysql_thread_id, x.trx_id, p.USER, p.HOST, '',
  {{template "transaction_age"}}, p.COMMAND, CAST(p.TIME_MS * 1000 AS SIGNED), COALESCE(p.INFO, x.trx_query)
FROM information_schema.INNODB_LOCKS l
JOIN information_schema.INNODB_TRX x ON x.trx_id = l.lock_trx_id
JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id
WHERE l.lock_table = CONCAT('`', REPLACE(COALESCE(NULLIF(:schema, ''), DATABASE()), '`', '``'), '`.`',
    REPLACE(:table, '`', '``'), '`')
  AND l.lock_type = 'RECORD' AND l.lock_index = 'PRIMARY' AND l.lock_mode = 'X'
  AND SUBSTRING_INDEX(l.lock_data, ',', 1) = :feed
ORDER BY 2, 8 DESC, 3 LIMIT 18446744073709551615

-- name: end_holder
-- KILL ends a connection, not a transaction.
KILL CONNECTION :session

-- Sessions that wait, and those that they wait for. These views need VIEW SERVER STATE (VIEW DATABASE STATE on Azure SQL
-- Database). At the end: the savepoint by which a consumer notices that its transaction has ended.

-- name: session_columns
CONVERT(nvarchar(20), l.request_session_id), COALESCE(s.login_name, N''), COALESCE(s.host_name, N''),
  COALESCE(DATEDIFF_BIG(microsecond, a.transaction_begin_time, SYSDATETIME()), -1),
  COALESCE(LEFT(b.event_info, 500), N'')

-- name: session_tables
LEFT JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
LEFT JOIN sys.dm_tran_active_transactions AS a ON a.transaction_id = l.request_owner_id
OUTER APPLY sys.dm_exec_input_buffer(s.session_id, NULL) AS b

-- name: blockers
-- Transactions that write to the feed have its table locked in mode IX. A publisher also has the positions. A session
-- that changes the table has it locked in mode Sch-M, or waits for that, and the sessions behind it wait, too.
SELECT {{template "session_columns"}}, l.scope
FROM (
  SELECT DISTINCT w.request_session_id, w.request_owner_id, N'wrote to the feed''s table' AS scope
  FROM sys.dm_tran_locks AS w
  WHERE w.resource_type = N'OBJECT' AND w.resource_database_id = DB_ID()
    AND w.resource_associated_entity_id = OBJECT_ID(:written, N'U') AND w.request_status = N'GRANT'
    AND w.request_mode IN (N'IX', N'SIX', N'X')
    AND NOT EXISTS (SELECT 1 FROM sys.dm_tran_locks AS p
      WHERE p.resource_type = N'OBJECT' AND p.resource_database_id = DB_ID()
        AND p.request_owner_id = w.request_owner_id AND p.resource_associated_entity_id = OBJECT_ID(:positions, N'U')
        AND p.request_mode IN (N'IX', N'SIX', N'X'))
  UNION ALL
  SELECT DISTINCT m.request_session_id, m.request_owner_id, N'locks the feed''s table, or waits to lock it'
  FROM sys.dm_tran_locks AS m
  WHERE m.resource_type = N'OBJECT' AND m.resource_database_id = DB_ID()
    AND m.resource_associated_entity_id = OBJECT_ID(:source, N'U') AND m.request_mode = N'Sch-M'
) AS l
{{template "session_tables"}}
WHERE l.request_session_id <> @@SPID
ORDER BY a.transaction_begin_time

-- name: holders
-- A lock by name is described as "principal:[the first 32 characters of its name]:(hash)". Names of a feed's shards
-- are no longer than that.
SELECT l.resource_description, CASE WHEN l.request_status = N'GRANT' THEN 0 ELSE 1 END,
  CONVERT(nvarchar(20), l.request_owner_id), {{template "session_columns"}}, COALESCE(s.program_name, N''),
  COALESCE(s.status, N''), COALESCE(DATEDIFF_BIG(microsecond, s.last_request_end_time, SYSDATETIME()), -1)
FROM sys.dm_tran_locks AS l
{{template "session_tables"}}
WHERE l.resource_type = N'APPLICATION' AND l.resource_database_id = DB_ID()
  AND CHARINDEX(CONCAT(N'[', :turn), l.resource_description) > 0
ORDER BY 2, a.transaction_begin_time

-- name: end_session
KILL :session

-- name: login
SELECT QUOTENAME(SUSER_SNAME())

-- name: backlog
-- Changes that wait, up to a limit, and the age of the oldest one.
SELECT (SELECT COUNT_BIG(*) FROM (SELECT TOP (:limit) 1 AS one FROM {{changes}}) AS x)
{{- if .InRows}}
  + (SELECT COUNT_BIG(*) FROM (SELECT TOP (:limit) 1 AS one FROM {{source}} WHERE feed_sync_id IS NULL) AS y)
{{- end}},
  COALESCE(DATEDIFF_BIG(microsecond, (SELECT TOP (1) c.changed_at FROM {{changes}} AS c ORDER BY c.seq),
    SYSUTCDATETIME()), 0)

-- name: backlog_of_outbox
SELECT (SELECT COUNT_BIG(*) FROM (SELECT TOP (:limit) 1 AS one FROM {{records}}) AS x),
  COALESCE(DATEDIFF_BIG(microsecond, (SELECT TOP (1) o.appended_at FROM {{records}} AS o :which), SYSUTCDATETIME()), 0)

-- name: oldest_record
ORDER BY o.order_sequence

-- name: oldest_record_of_shard
WITH (INDEX(by_shard), FORCESEEK) WHERE o.shard = :shard ORDER BY o.order_sequence

-- name: set_savepoint
-- T-SQL has no statement that releases a savepoint, and fails if the transaction has ended. So the session keeps the
-- transaction's number.
SAVE TRANSACTION :savepoint;
DECLARE @transaction bigint = CURRENT_TRANSACTION_ID();
EXEC sys.sp_set_session_context @key = N'rowfeed.savepoint', @value = @transaction

-- name: back_to_savepoint
ROLLBACK TRANSACTION :savepoint

-- name: release_savepoint
IF @@TRANCOUNT = 0 OR COALESCE(CONVERT(bigint, SESSION_CONTEXT(N'rowfeed.savepoint')), -1) <> CURRENT_TRANSACTION_ID()
  THROW 77117, N'rowfeed: the transaction of the savepoint has ended', 1

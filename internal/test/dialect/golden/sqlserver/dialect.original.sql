-- name: drop_original_roles
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID(N'changefeed.writers:items_<feed>'))
  DROP ROLE IF EXISTS [changefeed.writers:items_<feed>];
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID(N'changefeed.readers:items_<feed>'))
  DROP ROLE IF EXISTS [changefeed.readers:items_<feed>]

-- name: drop_original_schema
IF SCHEMA_ID(N'changefeed') IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM sys.objects AS o
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name <> N'setup_feed')
  AND NOT EXISTS (SELECT 1 FROM sys.types AS t WHERE t.schema_id = SCHEMA_ID(N'changefeed'))
BEGIN
  DROP PROCEDURE IF EXISTS [changefeed].[setup_feed];
  DROP SCHEMA [changefeed];
END

-- name: drop_original_type
DROP TYPE IF EXISTS [changefeed].[type:read:items_<feed>]

-- name: drop_originals
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'DROP ',
    CASE o.type WHEN 'P' THEN N'PROCEDURE ' WHEN 'V' THEN N'VIEW ' ELSE N'FUNCTION ' END, N'[changefeed].',
    QUOTENAME(o.name))), N'; ')
  FROM sys.objects AS o JOIN sys.sql_modules AS m ON m.object_id = o.object_id
  WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.type IN ('P', 'V', 'FN')
    AND (CHARINDEX(N'[rowfeed_lock_<feed>]', m.definition) > 0
  OR CHARINDEX(N'[rowfeed_ulid_<feed>]', m.definition) > 0));
IF @drop IS NOT NULL
  EXEC (@drop)

-- name: drop_originals (outbox_feed)
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'DROP ',
    CASE o.type WHEN 'P' THEN N'PROCEDURE ' WHEN 'V' THEN N'VIEW ' ELSE N'FUNCTION ' END, N'[changefeed].',
    QUOTENAME(o.name))), N'; ')
  FROM sys.objects AS o JOIN sys.sql_modules AS m ON m.object_id = o.object_id
  WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.type IN ('P', 'V', 'FN')
    AND (CHARINDEX(N'[rowfeed_outbox_<feed>]', m.definition) > 0 OR CHARINDEX(N'[rowfeed_feed_<feed>]', m.definition) > 0));
IF @drop IS NOT NULL
  EXEC (@drop)

-- name: of_feed
CHARINDEX(N'[rowfeed_lock_<feed>]', m.definition) > 0
  OR CHARINDEX(N'[rowfeed_ulid_<feed>]', m.definition) > 0

-- name: of_feed (outbox_feed)
CHARINDEX(N'[rowfeed_outbox_<feed>]', m.definition) > 0 OR CHARINDEX(N'[rowfeed_feed_<feed>]', m.definition) > 0

-- name: original_feed
CREATE OR ALTER VIEW [changefeed].[feed:items_<feed>] AS
SELECT CONVERT(int, c.shard) AS shard_id, c.ulid, c.[id] AS [id] FROM [rowfeed_feed_<feed>] AS c

-- name: original_feed (composite_key_feed)
CREATE OR ALTER VIEW [changefeed].[feed:items_<feed>] AS
SELECT CONVERT(int, c.shard) AS shard_id, c.ulid, c.[key_kind] AS [kind], c.[id] AS [id] FROM [rowfeed_feed_<feed>] AS c

-- name: original_insert
CREATE OR ALTER TRIGGER [changefeed].[outbox:items_<feed>:insert]
ON [changefeed].[outbox:items_<feed>] INSTEAD OF INSERT AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.order_sequence IS NOT NULL)
    THROW 77109, N'rowfeed: order_sequence is given by the database: leave it out', 1;
  INSERT INTO [rowfeed_outbox_<feed>] (shard, time_hint, [id])
  SELECT COALESCE(i.shard_id, 0), DATEDIFF_BIG(millisecond, '1970-01-01', i.time_hint), i.[id] FROM inserted AS i;
END

-- name: original_insert (composite_key_feed)
CREATE OR ALTER TRIGGER [changefeed].[outbox:items_<feed>:insert]
ON [changefeed].[outbox:items_<feed>] INSTEAD OF INSERT AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.order_sequence IS NOT NULL)
    THROW 77109, N'rowfeed: order_sequence is given by the database: leave it out', 1;
  INSERT INTO [rowfeed_outbox_<feed>] (shard, time_hint, [key_kind], [id])
  SELECT COALESCE(i.shard_id, 0), DATEDIFF_BIG(millisecond, '1970-01-01', i.time_hint), i.[kind], i.[id] FROM inserted AS i;
END

-- name: original_lock
CREATE OR ALTER PROCEDURE [changefeed].[lock:items_<feed>]
  @shard_id int = 0, @time_hint datetime2(3) = NULL, @session_context bit = 1,
  @ulid_high binary(8) = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT, @ulid binary(16) = NULL OUTPUT
AS
BEGIN
  SET XACT_ABORT, NOCOUNT ON;
  EXEC [rowfeed_lock_<feed>] @shard = @shard_id, @time_hint = @time_hint, @wait = NULL,
    @session_context = @session_context, @ulid = @ulid OUTPUT, @ulid_low = @ulid_low OUTPUT;
  SET @ulid_high = SUBSTRING(@ulid, 1, 8);
END

-- name: original_outbox
CREATE OR ALTER VIEW [changefeed].[outbox:items_<feed>] AS
SELECT CASE WHEN c.shard IS NOT NULL THEN CONVERT(int, c.shard) END AS shard_id,
  CASE WHEN c.order_sequence IS NOT NULL THEN c.order_sequence END AS order_sequence,
  DATEADD(millisecond, CONVERT(int, c.time_hint % 60000),
    DATEADD(minute, CONVERT(int, c.time_hint / 60000), CONVERT(datetime2(3), '1970-01-01'))) AS time_hint,
  c.[id] AS [id]
FROM [rowfeed_outbox_<feed>] AS c

-- name: original_outbox (composite_key_feed)
CREATE OR ALTER VIEW [changefeed].[outbox:items_<feed>] AS
SELECT CASE WHEN c.shard IS NOT NULL THEN CONVERT(int, c.shard) END AS shard_id,
  CASE WHEN c.order_sequence IS NOT NULL THEN c.order_sequence END AS order_sequence,
  DATEADD(millisecond, CONVERT(int, c.time_hint % 60000),
    DATEADD(minute, CONVERT(int, c.time_hint / 60000), CONVERT(datetime2(3), '1970-01-01'))) AS time_hint,
  c.[key_kind] AS [kind], c.[id] AS [id]
FROM [rowfeed_outbox_<feed>] AS c

-- name: original_readers
IF DATABASE_PRINCIPAL_ID(N'changefeed.readers:items_<feed>') IS NULL
  CREATE ROLE [changefeed.readers:items_<feed>] AUTHORIZATION dbo;
GRANT EXECUTE ON OBJECT::[changefeed].[read_feed:items_<feed>]
  TO [changefeed.readers:items_<feed>];
GRANT EXECUTE ON TYPE::[changefeed].[type:read:items_<feed>]
  TO [changefeed.readers:items_<feed>]

-- name: original_schema
IF SCHEMA_ID(N'changefeed') IS NULL
  EXEC (N'CREATE SCHEMA changefeed AUTHORIZATION dbo')
ELSE IF NOT EXISTS (SELECT 1 FROM sys.schemas AS s
  WHERE s.name = N'changefeed' AND s.principal_id = DATABASE_PRINCIPAL_ID(N'dbo'))
  THROW 77116, N'rowfeed: dbo must own the schema: run ALTER AUTHORIZATION ON SCHEMA::changefeed TO dbo', 1

-- name: original_setup
IF OBJECT_ID(N'[changefeed].[setup_feed]') IS NULL
  EXEC (N'CREATE PROCEDURE [changefeed].[setup_feed] @table_name nvarchar(max), @outbox bit = 0, @blocking bit = 0 AS
BEGIN
  SET NOCOUNT ON;
  DECLARE @table int = OBJECT_ID(@table_name, N''U'');
  DECLARE @of nvarchar(300) = CONCAT(N'':'', OBJECT_SCHEMA_NAME(@table), N''.'', OBJECT_NAME(@table));
  IF @blocking = 1 AND OBJECT_ID(CONCAT(N''[changefeed].'', QUOTENAME(CONCAT(N''lock'', @of)))) IS NULL
    OR @outbox = 1 AND OBJECT_ID(CONCAT(N''[changefeed].'', QUOTENAME(CONCAT(N''read_feed'', @of)))) IS NULL
    OR @blocking = @outbox
    THROW 77108, N''rowfeed: no feed of this table has this mode: run rowfeed feed add, then this script again'', 1;
END')

-- name: original_state
SELECT COALESCE(m.definition, N''), CASE WHEN CHARINDEX(N'[rowfeed_lock_<feed>]', m.definition) > 0
  OR CHARINDEX(N'[rowfeed_ulid_<feed>]', m.definition) > 0 THEN 1 ELSE 0 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:object)

-- name: original_state (outbox_feed)
SELECT COALESCE(m.definition, N''), CASE WHEN CHARINDEX(N'[rowfeed_outbox_<feed>]', m.definition) > 0 OR CHARINDEX(N'[rowfeed_feed_<feed>]', m.definition) > 0 THEN 1 ELSE 0 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:object)

-- name: original_type
IF TYPE_ID(N'[changefeed].[type:read:items_<feed>]') IS NULL
  CREATE TYPE [changefeed].[type:read:items_<feed>] AS TABLE (
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL
  )

-- name: original_type (composite_key_feed)
IF TYPE_ID(N'[changefeed].[type:read:items_<feed>]') IS NULL
  CREATE TYPE [changefeed].[type:read:items_<feed>] AS TABLE (
    ulid binary(16) NOT NULL,
    [kind] text NOT NULL, [id] bigint NOT NULL
  )

-- name: original_ulid
CREATE OR ALTER FUNCTION [changefeed].[ulid:items_<feed>] (@i bigint) RETURNS binary(16) AS
BEGIN
  RETURN [rowfeed_ulid_<feed>](@i);
END

-- name: original_writers
IF DATABASE_PRINCIPAL_ID(N'changefeed.writers:items_<feed>') IS NULL
  CREATE ROLE [changefeed.writers:items_<feed>] AUTHORIZATION dbo;
GRANT EXECUTE ON OBJECT::[changefeed].[lock:items_<feed>]
  TO [changefeed.writers:items_<feed>];
GRANT EXECUTE ON OBJECT::[changefeed].[ulid:items_<feed>]
  TO [changefeed.writers:items_<feed>]

-- name: original_writers (outbox_feed)
IF DATABASE_PRINCIPAL_ID(N'changefeed.writers:items_<feed>') IS NULL
  CREATE ROLE [changefeed.writers:items_<feed>] AUTHORIZATION dbo;
GRANT INSERT ON OBJECT::[changefeed].[outbox:items_<feed>]
  TO [changefeed.writers:items_<feed>]

-- name: refuse_taken
DECLARE @taken nvarchar(1000) = (SELECT MIN(o.name) FROM (
  SELECT o.name, m.definition FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name IN (N'lock:items_<feed>',
      N'ulid:items_<feed>', N'state:items_<feed>', N'feed:items_<feed>',
      N'outbox:items_<feed>', N'read_feed:items_<feed>')
  UNION ALL SELECT t.name, N'' FROM sys.types AS t
    WHERE t.schema_id = SCHEMA_ID(N'changefeed') AND t.name = N'type:read:items_<feed>'
      AND OBJECT_ID(N'[changefeed].[read_feed:items_<feed>]') IS NULL) AS o
  CROSS APPLY (SELECT COALESCE(o.definition, N'') AS definition) AS m
  WHERE NOT (CHARINDEX(N'[rowfeed_lock_<feed>]', m.definition) > 0
  OR CHARINDEX(N'[rowfeed_ulid_<feed>]', m.definition) > 0));
IF @taken IS NOT NULL
BEGIN
  SET @taken = CONCAT(N'rowfeed: changefeed.[', @taken, N'] exists, and does not belong to feed ', N'<feed>',
    N'. If another feed has the table, drop that feed. If mssql-changefeed made it, stop the writers, and move its ',
    N'objects of this table to another schema: docs/FROM-MSSQL-CHANGEFEED.md has the statements');
  THROW 77107, @taken, 1;
END

-- name: refuse_taken (outbox_feed)
DECLARE @taken nvarchar(1000) = (SELECT MIN(o.name) FROM (
  SELECT o.name, m.definition FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name IN (N'lock:items_<feed>',
      N'ulid:items_<feed>', N'state:items_<feed>', N'feed:items_<feed>',
      N'outbox:items_<feed>', N'read_feed:items_<feed>')
  UNION ALL SELECT t.name, N'' FROM sys.types AS t
    WHERE t.schema_id = SCHEMA_ID(N'changefeed') AND t.name = N'type:read:items_<feed>'
      AND OBJECT_ID(N'[changefeed].[read_feed:items_<feed>]') IS NULL) AS o
  CROSS APPLY (SELECT COALESCE(o.definition, N'') AS definition) AS m
  WHERE NOT (CHARINDEX(N'[rowfeed_outbox_<feed>]', m.definition) > 0 OR CHARINDEX(N'[rowfeed_feed_<feed>]', m.definition) > 0));
IF @taken IS NOT NULL
BEGIN
  SET @taken = CONCAT(N'rowfeed: changefeed.[', @taken, N'] exists, and does not belong to feed ', N'<feed>',
    N'. If another feed has the table, drop that feed. If mssql-changefeed made it, stop the writers, and move its ',
    N'objects of this table to another schema: docs/FROM-MSSQL-CHANGEFEED.md has the statements');
  THROW 77107, @taken, 1;
END

-- name: source_key
c.[id] AS [id]

-- name: source_key (composite_key_feed)
c.[key_kind] AS [kind], c.[id] AS [id]


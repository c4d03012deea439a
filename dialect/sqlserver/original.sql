-- The objects of the library mssql-changefeed, with its names and parameters, so that SQL for it runs unchanged. They
-- call a feed's own routines, or show its tables. The same principal owns all of them, so roles need no right on these.
--
-- The reader procedure read_feed is read_procedure in outbox.sql, because it moves records.
--
-- An object belongs to the feed if its text names one of the feed's objects. No other object is replaced or dropped.

-- name: of_feed
{{if .Outbox}}CHARINDEX({{literal records}}, m.definition) > 0 OR CHARINDEX({{literal places}}, m.definition) > 0
{{- else}}CHARINDEX({{literal (table (print "lock_" .Name))}}, m.definition) > 0
  OR CHARINDEX({{literal (table (print "ulid_" .Name))}}, m.definition) > 0{{end}}

-- name: original_schema
-- the schema of the names that mssql-changefeed gave
IF SCHEMA_ID(N'changefeed') IS NULL
  EXEC (N'CREATE SCHEMA changefeed AUTHORIZATION dbo')
ELSE IF NOT EXISTS (SELECT 1 FROM sys.schemas AS s
  WHERE s.name = N'changefeed' AND s.principal_id = DATABASE_PRINCIPAL_ID(N'dbo'))
  THROW 77116, N'rowfeed: dbo must own the schema: run ALTER AUTHORIZATION ON SCHEMA::changefeed TO dbo', 1

-- name: refuse_taken
-- names that other objects have are refused
DECLARE @taken nvarchar(1000) = (SELECT MIN(o.name) FROM (
  SELECT o.name, m.definition FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name IN ({{literal (print "lock:" .Source)}},
      {{literal (print "ulid:" .Source)}}, {{literal (print "state:" .Source)}}, {{literal (print "feed:" .Source)}},
      {{literal (print "outbox:" .Source)}}, {{literal (print "read_feed:" .Source)}})
  UNION ALL SELECT t.name, N'' FROM sys.types AS t
    WHERE t.schema_id = SCHEMA_ID(N'changefeed') AND t.name = {{literal (print "type:read:" .Source)}}
      AND OBJECT_ID({{literal (print "[changefeed]." (quote (print "read_feed:" .Source)))}}) IS NULL) AS o
  CROSS APPLY (SELECT COALESCE(o.definition, N'') AS definition) AS m
  WHERE NOT ({{template "of_feed" .}}));
IF @taken IS NOT NULL
BEGIN
  SET @taken = CONCAT(N'rowfeed: changefeed.[', @taken, N'] exists, and does not belong to feed ', {{feed}},
    N'. If another feed has the table, drop that feed. If mssql-changefeed made it, stop the writers, and move its ',
    N'objects of this table to another schema: docs/FROM-MSSQL-CHANGEFEED.md has the statements');
  THROW 77107, @taken, 1;
END

-- name: original_lock
-- takes ULIDs of a shard, by the name that mssql-changefeed gave
--
-- It waits as long as the session's LOCK_TIMEOUT allows. An error rolls the transaction back.
CREATE OR ALTER PROCEDURE [changefeed].{{quote (print "lock:" .Source)}}
  @shard_id int = 0, @time_hint datetime2(3) = NULL, @session_context bit = 1,
  @ulid_high binary(8) = NULL OUTPUT, @ulid_low bigint = NULL OUTPUT, @ulid binary(16) = NULL OUTPUT
AS
BEGIN
  SET XACT_ABORT, NOCOUNT ON;
  EXEC {{table (print "lock_" .Name)}} @shard = @shard_id, @time_hint = @time_hint, @wait = NULL,
    @session_context = @session_context, @ulid = @ulid OUTPUT, @ulid_low = @ulid_low OUTPUT;
  SET @ulid_high = SUBSTRING(@ulid, 1, 8);
END

-- name: original_ulid
-- the i-th of the ULIDs that this transaction took last
CREATE OR ALTER FUNCTION [changefeed].{{quote (print "ulid:" .Source)}} (@i bigint) RETURNS binary(16) AS
BEGIN
  RETURN {{table (print "ulid_" .Name)}}(@i);
END

-- name: original_outbox
-- the outbox, by the name that mssql-changefeed gave
--
-- An INSERT into a view must name each column that cannot be NULL: those with a default are CASE expressions, which can
-- be.
CREATE OR ALTER VIEW [changefeed].{{quote (print "outbox:" .Source)}} AS
SELECT CASE WHEN c.shard IS NOT NULL THEN CONVERT(int, c.shard) END AS shard_id,
  CASE WHEN c.order_sequence IS NOT NULL THEN c.order_sequence END AS order_sequence,
  DATEADD(millisecond, CONVERT(int, c.time_hint % 60000),
    DATEADD(minute, CONVERT(int, c.time_hint / 60000), CONVERT(datetime2(3), '1970-01-01'))) AS time_hint,
  {{template "source_key" .}}
FROM {{records}} AS c

-- name: source_key
{{range $i, $c := .Key}}{{if $i}}, {{end}}c.{{quote $c.Stored}} AS {{quote $c.Name}}{{end}}

-- name: original_insert
-- appends a record
--
-- The database numbers records: a number of the writer's could put its record above those of later transactions.
CREATE OR ALTER TRIGGER [changefeed].{{quote (print "outbox:" .Source ":insert")}}
ON [changefeed].{{quote (print "outbox:" .Source)}} INSTEAD OF INSERT AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.order_sequence IS NOT NULL)
    THROW 77109, N'rowfeed: order_sequence is given by the database: leave it out', 1;
  INSERT INTO {{records}} (shard, time_hint, {{key}})
  SELECT COALESCE(i.shard_id, 0), DATEDIFF_BIG(millisecond, '1970-01-01', i.time_hint), {{row "i"}} FROM inserted AS i;
END

-- name: original_feed
-- the places, by the name that mssql-changefeed gave
CREATE OR ALTER VIEW [changefeed].{{quote (print "feed:" .Source)}} AS
SELECT CONVERT(int, c.shard) AS shard_id, c.ulid, {{template "source_key" .}} FROM {{places}} AS c

-- name: original_type
-- the columns of the table #read, which a reader makes by SELECT * INTO #read from a variable of this type
IF TYPE_ID({{literal (print "[changefeed]." (quote (print "type:read:" .Source)))}}) IS NULL
  CREATE TYPE [changefeed].{{quote (print "type:read:" .Source)}} AS TABLE (
    ulid binary(16) NOT NULL,
    {{range $i, $c := .Key}}{{if $i}}, {{end}}{{quote $c.Name}} {{$c.Decl}} NOT NULL{{end}}
  )

-- name: original_writers
-- the role of writers; one that exists keeps its members
IF DATABASE_PRINCIPAL_ID({{literal (print "changefeed.writers:" .Source)}}) IS NULL
  CREATE ROLE {{quote (print "changefeed.writers:" .Source)}} AUTHORIZATION dbo;
{{if .Outbox}}GRANT INSERT ON OBJECT::[changefeed].{{quote (print "outbox:" .Source)}}
  TO {{quote (print "changefeed.writers:" .Source)}}
{{- else}}GRANT EXECUTE ON OBJECT::[changefeed].{{quote (print "lock:" .Source)}}
  TO {{quote (print "changefeed.writers:" .Source)}};
GRANT EXECUTE ON OBJECT::[changefeed].{{quote (print "ulid:" .Source)}}
  TO {{quote (print "changefeed.writers:" .Source)}}{{end}}

-- name: original_readers
-- the role of readers; one that exists keeps its members
IF DATABASE_PRINCIPAL_ID({{literal (print "changefeed.readers:" .Source)}}) IS NULL
  CREATE ROLE {{quote (print "changefeed.readers:" .Source)}} AUTHORIZATION dbo;
GRANT EXECUTE ON OBJECT::[changefeed].{{quote (print "read_feed:" .Source)}}
  TO {{quote (print "changefeed.readers:" .Source)}};
GRANT EXECUTE ON TYPE::[changefeed].{{quote (print "type:read:" .Source)}}
  TO {{quote (print "changefeed.readers:" .Source)}}

-- name: original_setup
-- set-up scripts for mssql-changefeed run unchanged on a feed that is made
--
-- CREATE PROCEDURE has to begin a batch, and mssql-changefeed can be there for other tables.
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

-- name: drop_originals
-- its objects with the names that mssql-changefeed gave
DECLARE @drop nvarchar(max) = (SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'DROP ',
    CASE o.type WHEN 'P' THEN N'PROCEDURE ' WHEN 'V' THEN N'VIEW ' ELSE N'FUNCTION ' END, N'[changefeed].',
    QUOTENAME(o.name))), N'; ')
  FROM sys.objects AS o JOIN sys.sql_modules AS m ON m.object_id = o.object_id
  WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.type IN ('P', 'V', 'FN')
    AND ({{template "of_feed" .}}));
IF @drop IS NOT NULL
  EXEC (@drop)

-- name: drop_original_type
-- the columns of #read
DROP TYPE IF EXISTS [changefeed].{{quote (print "type:read:" .Source)}}

-- name: drop_original_roles
-- its roles, unless they have members
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID({{literal (print "changefeed.writers:" .Source)}}))
  DROP ROLE IF EXISTS {{quote (print "changefeed.writers:" .Source)}};
IF NOT EXISTS (SELECT 1 FROM sys.database_role_members AS m
  WHERE m.role_principal_id = DATABASE_PRINCIPAL_ID({{literal (print "changefeed.readers:" .Source)}}))
  DROP ROLE IF EXISTS {{quote (print "changefeed.readers:" .Source)}}

-- name: drop_original_schema
-- the schema, unless it has other objects
IF SCHEMA_ID(N'changefeed') IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM sys.objects AS o
    WHERE o.schema_id = SCHEMA_ID(N'changefeed') AND o.name <> N'setup_feed')
  AND NOT EXISTS (SELECT 1 FROM sys.types AS t WHERE t.schema_id = SCHEMA_ID(N'changefeed'))
BEGIN
  DROP PROCEDURE IF EXISTS [changefeed].[setup_feed];
  DROP SCHEMA [changefeed];
END

-- name: original_state
-- The text of an object, and whether it belongs to the feed.
SELECT COALESCE(m.definition, N''), CASE WHEN {{template "of_feed" .}} THEN 1 ELSE 0 END
FROM sys.sql_modules AS m WHERE m.object_id = OBJECT_ID(:object)

-- A feed's own objects: its tables, and the trigger that records what was written.
--
-- The trigger appends keys to the table of changes and does nothing else, whatever columns an UPDATE names. So it also
-- records changes of columns that were added later, and of values that compare as equal.
--
-- Its errors roll the writer's transaction back, so nothing in it may fail. While it is on the table, INSERT, UPDATE
-- and DELETE with OUTPUT, but without INTO, are refused with error 334.
--
-- A writer's ROWCOUNT would count in a trigger, too: it would cut the keys off that an UPDATE of keys records, and the
-- default that draws numbers refuses it with error 11740. So a trigger sets it to 0, which ends with the trigger.
--
-- A SEQUENCE numbers changes and records: an IDENTITY would change @@IDENTITY in the writer's session. Tables of which
-- writers append to one have no filtered index, no indexed view and no indexed computed column: a writer with
-- QUOTED_IDENTIFIER off would fail with error 1934.

-- name: changes_sequence
-- the numbers of changes; none is given twice
--
-- A crash loses the numbers that are cached.
IF OBJECT_ID({{literal (routine "seq")}}, N'SO') IS NULL
  CREATE SEQUENCE {{routine "seq"}} AS bigint START WITH 1 INCREMENT BY 1 CACHE 1000

-- name: changes
-- changes: which keys were written; writers append, publishers delete what they have published
IF OBJECT_ID({{literal changes}}, N'U') IS NULL
  CREATE TABLE {{changes}} (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR {{routine "seq"}}),
    {{declared_key}},
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: changes_locks
-- a statement that writes thousands of rows locks rows, and not the table
ALTER TABLE {{changes}} SET (LOCK_ESCALATION = DISABLE)

-- name: positions
-- positions: where each key stands in the feed; only publishers write it
IF OBJECT_ID({{literal positions}}, N'U') IS NULL
  CREATE TABLE {{positions}} (
    {{declared_key}},
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT {{object "positions"}} PRIMARY KEY CLUSTERED ({{key}})
  )

-- name: position_index
-- pages are read in this order; no position is given twice
--
-- It contains all that a page reads of positions.
IF INDEXPROPERTY(OBJECT_ID({{literal positions}}), N'by_position', N'IndexID') IS NULL
  CREATE UNIQUE INDEX by_position ON {{positions}} (feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: deleted_index
-- old tombstones are found here
--
-- It is filtered: only rowfeed's own sessions write this table.
IF INDEXPROPERTY(OBJECT_ID({{literal positions}}), N'by_deleted', N'IndexID') IS NULL
  CREATE INDEX by_deleted ON {{positions}} (feed_sync_id) WHERE deleted = 1

-- name: bucket_index
-- pages of a part of the shards are read in this order
--
-- It contains the shard, so that an entry of another shard in the same bucket is excluded by the index alone.
IF INDEXPROPERTY(OBJECT_ID({{literal positions}}), N'by_bucket', N'IndexID') IS NULL
  CREATE INDEX by_bucket ON {{positions}} (bucket, feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)

-- name: drop_bucket_index
-- pages of a part of the shards are read otherwise
DROP INDEX IF EXISTS by_bucket ON {{positions}}

-- name: has_bucket_index
SELECT CASE WHEN INDEXPROPERTY(OBJECT_ID({{literal positions}}), N'by_bucket', N'IndexID') IS NULL THEN 0 ELSE 1 END

-- name: outbox
-- outbox: keys that wait for a place; writers append
IF OBJECT_ID({{literal records}}, N'U') IS NULL
  CREATE TABLE {{records}} (
    order_sequence bigint NOT NULL DEFAULT (NEXT VALUE FOR {{routine "seq"}}),
    shard bigint NOT NULL DEFAULT 0,
    time_hint bigint NULL,
    appended_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    {{declared_key}},
    PRIMARY KEY CLUSTERED (order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX by_shard (shard, order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: outbox_locks
-- a statement that writes thousands of rows locks rows, and not the table
ALTER TABLE {{records}} SET (LOCK_ESCALATION = DISABLE)

-- name: places
-- the place of every key; only readers and publishers write it
IF OBJECT_ID({{literal places}}, N'U') IS NULL
  CREATE TABLE {{places}} (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    {{declared_key}},
    CONSTRAINT {{object "places"}} PRIMARY KEY NONCLUSTERED ({{key}}) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )

-- name: places_locks
-- movers of other shards do not wait for a large move
ALTER TABLE {{places}} SET (LOCK_ESCALATION = DISABLE)

-- name: position_column
-- each row's position; NULL while it waits for one
--
-- ADD takes no time, but keeps all other sessions out until the commit.
IF COL_LENGTH({{literal source}}, N'feed_sync_id') IS NULL
  ALTER TABLE {{source}} ADD feed_sync_id bigint NULL

-- name: shard_column
-- each row's shard
--
-- Only the Enterprise edition (and Azure) adds a column with a value without writing every row.
IF COL_LENGTH({{literal source}}, N'shard') IS NULL
  ALTER TABLE {{source}} ADD shard int NOT NULL CONSTRAINT {{object "shard"}} DEFAULT 0

-- name: row_position_index
-- pages are read in this order; rows that wait are found in key order
--
-- It is not unique, because a unique index has one NULL, and not filtered: see the begin of this file.
IF INDEXPROPERTY(OBJECT_ID({{literal source}}),
  {{literal (print .Names.Prefix .Name "_row_position")}}, N'IndexID') IS NULL
  CREATE INDEX {{object "row_position"}} ON {{source}} (feed_sync_id, {{row}})

-- name: drop_row_index
-- index
DROP INDEX IF EXISTS {{object "row_position"}} ON {{source}}

-- name: drop_position_column
-- column
ALTER TABLE {{source}} DROP COLUMN IF EXISTS feed_sync_id

-- name: drop_shard_column
-- column
ALTER TABLE {{source}} DROP CONSTRAINT IF EXISTS {{object "shard"}}, COLUMN IF EXISTS shard

-- name: same_row
-- Two rows of the trigger's tables have the same key.
{{range $i, $c := .Key}}{{if $i}} AND {{end}}i.{{quote $c.Name}} = d.{{quote $c.Name}}{{end}}

-- name: capture_trigger
-- one trigger for the three events; keys that are equal by collation are recorded as they are now
--
-- Without NOCOUNT its rows would be added to the number that the writer is answered. The trigger also fires for a
-- statement that writes no row; @@ROWCOUNT does not tell, because in a MERGE it is that of the whole statement.
CREATE OR ALTER TRIGGER :trigger ON {{source}} :rights AFTER INSERT, UPDATE, DELETE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO {{changes}} ({{key}})
  SELECT {{row "d"}} FROM deleted AS d WHERE NOT EXISTS (SELECT 1 FROM inserted AS i WHERE {{template "same_row" .}})
  UNION ALL SELECT {{row "i"}} FROM inserted AS i;
END

-- name: record_trigger
-- records the keys of new rows
--
-- It appends a record when a row is inserted or gets another key.
CREATE OR ALTER TRIGGER :trigger ON {{source}} :rights AFTER INSERT, UPDATE AS
BEGIN
  SET NOCOUNT ON;
  SET ROWCOUNT 0;
  INSERT INTO {{records}} (shard, {{key}})
  SELECT :shard, {{row "i"}} FROM inserted AS i
  WHERE NOT EXISTS (SELECT 1 FROM deleted AS d WHERE {{template "same_row" .}});
END

-- name: drop_trigger
-- trigger
DROP TRIGGER IF EXISTS :trigger

-- name: drop_outbox
-- its outbox
DROP TABLE IF EXISTS {{records}}

-- name: drop_places
-- its places
DROP TABLE IF EXISTS {{places}}

-- name: drop_changes
-- changes
DROP TABLE IF EXISTS {{changes}}

-- name: drop_positions
-- positions
DROP TABLE IF EXISTS {{positions}}

-- name: drop_sequence
-- numbers
DROP SEQUENCE IF EXISTS {{routine "seq"}}

-- name: drop_key
-- the key's columns are declared again
--
-- A column of a primary key cannot be changed.
ALTER TABLE :table DROP CONSTRAINT IF EXISTS :constraint

-- name: declare_key
-- declare the key as the table does
ALTER TABLE :table ALTER COLUMN :column :type NOT NULL

-- name: add_position_key
-- the key of positions
ALTER TABLE {{positions}} ADD CONSTRAINT {{object "positions"}} PRIMARY KEY CLUSTERED ({{key}})

-- name: add_place_key
-- the key of places
ALTER TABLE {{places}} ADD CONSTRAINT {{object "places"}} PRIMARY KEY NONCLUSTERED ({{key}})
WITH (ALLOW_PAGE_LOCKS = OFF)

-- name: delete_row
DELETE FROM {{source}} WHERE :key

-- name: record_delete
INSERT INTO {{changes}} ({{key}}) VALUES (:values)

-- name: missing
SELECT CASE WHEN OBJECT_ID(:object) IS NULL THEN 1 ELSE 0 END

-- name: trigger_state
-- It compares everything but the text, which is the first column. chained says that the same principal owns the
-- source, the table that the trigger writes, and the sequence: writers then need no right on them. A trigger that runs
-- as its owner also works if that is dbo, or was granted INSERT. With nested triggers off, writes of others' triggers
-- fire none.
SELECT COALESCE(m.definition, N''), CONVERT(int, g.is_disabled), CONVERT(int, g.is_instead_of_trigger),
  CONVERT(int, m.uses_ansi_nulls), CONVERT(int, m.uses_quoted_identifier),
  CASE WHEN m.execute_as_principal_id IS NULL THEN 0 ELSE 1 END,
  (SELECT COUNT(*) FROM sys.trigger_events AS e WHERE e.object_id = g.object_id),
  CASE WHEN OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:written), N'OwnerId')
    AND OBJECTPROPERTY(g.parent_id, N'OwnerId') = OBJECTPROPERTY(OBJECT_ID(:sequence), N'OwnerId')
    OR m.execute_as_principal_id IS NOT NULL AND (
      OBJECTPROPERTY(g.parent_id, N'OwnerId') = DATABASE_PRINCIPAL_ID(N'dbo')
      OR EXISTS (SELECT 1 FROM sys.database_permissions AS p
        WHERE p.class = 1 AND p.major_id = OBJECT_ID(:written) AND p.minor_id = 0 AND p.permission_name = N'INSERT'
          AND p.state_desc LIKE N'GRANT%' AND p.grantee_principal_id = OBJECTPROPERTY(g.parent_id, N'OwnerId')))
    THEN 1 ELSE 0 END,
  COALESCE((SELECT CONVERT(int, n.value_in_use) FROM sys.configurations AS n WHERE n.name = N'nested triggers'), 1)
FROM sys.triggers AS g JOIN sys.sql_modules AS m ON m.object_id = g.object_id
WHERE g.object_id = OBJECT_ID(:trigger, N'TR') AND g.parent_id = OBJECT_ID(:source, N'U')

-- name: strays
-- Triggers of other tables that write into one of the feed's tables.
SELECT SCHEMA_NAME(o.schema_id), o.name, g.name FROM sys.triggers AS g
JOIN sys.objects AS o ON o.object_id = g.parent_id
WHERE g.parent_id <> OBJECT_ID(:source, N'U') AND EXISTS (SELECT 1 FROM sys.sql_expression_dependencies AS d
  WHERE d.referencing_id = g.object_id AND d.referenced_id = OBJECT_ID(:written, N'U'))
ORDER BY 1, 2, 3

-- name: moved
-- It finds the table by the feed's trigger, which moves with the table if that is transferred to another schema. For a
-- feed without triggers it searches rowfeed's own schema, if the former schema does not exist any more.
SELECT SCHEMA_NAME(t.schema_id) FROM sys.tables AS t
WHERE t.name = :table AND t.schema_id <> COALESCE(SCHEMA_ID(:former), 0)
  AND (:triggers = 1 AND EXISTS (SELECT 1 FROM sys.triggers AS g WHERE g.parent_id = t.object_id AND g.name = :trigger)
    OR :triggers = 0 AND t.schema_id = SCHEMA_ID(:own) AND SCHEMA_ID(:former) IS NULL)

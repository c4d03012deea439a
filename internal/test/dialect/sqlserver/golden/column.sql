-- feed add
SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (N'kv', N'sequence', N'column', N'creating', 1, N'', N'kv', N'[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]',
  NULL, N'{"added":["feed_sync_id","shard"]}', 1, NULL, 2592000, 0, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_sequences] (name, value, version, updated_at) VALUES (N'kv', 0, 0, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_kv_seq]', N'SO') IS NULL
  CREATE SEQUENCE [dbo].[rowfeed_kv_seq] AS bigint START WITH 1 INCREMENT BY 1 CACHE 1000
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_changes_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_changes_kv] (
    seq bigint NOT NULL DEFAULT (NEXT VALUE FOR [dbo].[rowfeed_kv_seq]),
    [id] bigint NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    changed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    PRIMARY KEY CLUSTERED (seq) WITH (ALLOW_PAGE_LOCKS = OFF)
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_changes_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_positions_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_positions_kv] (
    [id] bigint NOT NULL,
    feed_sync_id bigint NOT NULL,
    shard int NOT NULL,
    bucket int NOT NULL,
    deleted smallint NOT NULL,
    hidden smallint NOT NULL,
    published_at bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_positions] PRIMARY KEY CLUSTERED ([id])
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_position', N'IndexID') IS NULL
  CREATE UNIQUE INDEX by_position ON [dbo].[rowfeed_positions_kv] (feed_sync_id) INCLUDE (shard, deleted, hidden, published_at)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[rowfeed_positions_kv]'), N'by_deleted', N'IndexID') IS NULL
  CREATE INDEX by_deleted ON [dbo].[rowfeed_positions_kv] (feed_sync_id) WHERE deleted = 1
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF COL_LENGTH(N'[dbo].[kv]', N'feed_sync_id') IS NULL
  ALTER TABLE [dbo].[kv] ADD feed_sync_id bigint NULL
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF COL_LENGTH(N'[dbo].[kv]', N'shard') IS NULL
  ALTER TABLE [dbo].[kv] ADD shard int NOT NULL CONSTRAINT [rowfeed_kv_shard] DEFAULT 0
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF INDEXPROPERTY(OBJECT_ID(N'[dbo].[kv]'),
  N'rowfeed_kv_row_position', N'IndexID') IS NULL
  CREATE INDEX [rowfeed_kv_row_position] ON [dbo].[kv] (feed_sync_id, [id])
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
UPDATE [dbo].[rowfeed_feeds] SET state = N'active' WHERE name = N'kv'
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
COMMIT
GO
SET NOEXEC OFF
GO

-- feed drop
DROP INDEX IF EXISTS [rowfeed_kv_row_position] ON [dbo].[kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[kv] DROP COLUMN IF EXISTS feed_sync_id
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[kv] DROP CONSTRAINT IF EXISTS [rowfeed_kv_shard], COLUMN IF EXISTS shard
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TRIGGER IF EXISTS [dbo].[rowfeed_kv_capture]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_changes_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_positions_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP SEQUENCE IF EXISTS [dbo].[rowfeed_kv_seq]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO


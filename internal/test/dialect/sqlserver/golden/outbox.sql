-- feed add
SET NOEXEC OFF; SET ANSI_NULLS, QUOTED_IDENTIFIER, XACT_ABORT ON; SET LOCK_TIMEOUT 2000;
BEGIN TRANSACTION
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
INSERT INTO [dbo].[rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (N'kv', N'outbox', N'app', N'creating', 1, N'', N'kv', N'[{"name":"id","type":"bigint","decl":"bigint","kind":"integer","stored":"id","exact":true}]',
  NULL, N'{"ulids":{"Position":{"name":"ulid","type":"binary(16)","decl":"binary(16)","kind":"binary"},"Shard":{"name":"shard","type":"bigint","kind":"integer"},"Index":"place"},"runs":1}', 1, NULL, 0, 0, NULL, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))
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
IF OBJECT_ID(N'[dbo].[rowfeed_outbox_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_outbox_kv] (
    order_sequence bigint NOT NULL DEFAULT (NEXT VALUE FOR [dbo].[rowfeed_kv_seq]),
    shard bigint NOT NULL DEFAULT 0,
    time_hint bigint NULL,
    appended_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    [id] bigint NOT NULL,
    PRIMARY KEY CLUSTERED (order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX by_shard (shard, order_sequence) WITH (ALLOW_PAGE_LOCKS = OFF)
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_outbox_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
IF OBJECT_ID(N'[dbo].[rowfeed_feed_kv]', N'U') IS NULL
  CREATE TABLE [dbo].[rowfeed_feed_kv] (
    shard bigint NOT NULL,
    ulid binary(16) NOT NULL,
    [id] bigint NOT NULL,
    CONSTRAINT [rowfeed_kv_places] PRIMARY KEY NONCLUSTERED ([id]) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX place UNIQUE CLUSTERED (shard, ulid) WITH (ALLOW_PAGE_LOCKS = OFF)
  )
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
ALTER TABLE [dbo].[rowfeed_feed_kv] SET (LOCK_ESCALATION = DISABLE)
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
UPDATE [dbo].[rowfeed_feeds] SET state = N'filling', database_identity = CASE WHEN DATABASEPROPERTYEX(DB_NAME(), N'Updateability') = N'READ_WRITE' THEN COALESCE((SELECT CONCAT(N'database ', r.database_guid, N', fork ', r.recovery_fork_guid)
  FROM sys.database_recovery_status AS r WHERE r.database_id = DB_ID()), N'') END WHERE name = N'kv'
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
COMMIT
GO
SET NOEXEC OFF
GO

-- feed drop
DROP TRIGGER IF EXISTS [dbo].[rowfeed_kv_capture]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_outbox_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP TABLE IF EXISTS [dbo].[rowfeed_feed_kv]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO
DROP SEQUENCE IF EXISTS [dbo].[rowfeed_kv_seq]
GO
IF @@ERROR <> 0 AND @@TRANCOUNT > 0 ROLLBACK; IF @@TRANCOUNT = 0 SET NOEXEC ON
GO


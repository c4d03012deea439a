-- name: all
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options,
  tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column,
  failure, failing_since, attempts, next_try FROM [rowfeed_feeds] ORDER BY name

-- name: columns
name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options,
  tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column,
  failure, failing_since, attempts, next_try

-- name: insert
INSERT INTO [rowfeed_feeds] (name, mode, capture, state, generation, source_schema, source_table, key_columns,
  delivered_columns, options, data_shards, shard_column, tombstones_seconds, tombstones_below, database_identity,
  created_at)
VALUES (:name, :mode, :capture, :state, :generation, :source_schema, :source_table, :key_columns,
  :delivered_columns, :options, :data_shards, :shard_column, :tombstones_seconds, 0, :database_identity, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))

-- name: one
SELECT name, mode, capture, state, generation, source_schema, source_table, key_columns, delivered_columns, options,
  tombstones_seconds, tombstones_below, fill_after, database_identity, data_shards, shard_column,
  failure, failing_since, attempts, next_try FROM [rowfeed_feeds] WHERE name = :name

-- name: replace
UPDATE [rowfeed_feeds]
SET mode = :mode, capture = :capture, state = :state, generation = :generation, source_schema = :source_schema,
  source_table = :source_table, key_columns = :key_columns, delivered_columns = :delivered_columns,
  options = :options, data_shards = :data_shards, shard_column = :shard_column,
  tombstones_seconds = :tombstones_seconds, tombstones_below = 0, database_identity = :database_identity,
  fill_after = NULL, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, created_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE name = :name

-- name: save_options
UPDATE [rowfeed_feeds] SET options = :options WHERE name = :name


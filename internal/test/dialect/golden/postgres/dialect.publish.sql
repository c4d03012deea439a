-- name: ask_first
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true); :query

-- name: ask_identity
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 'system ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||
  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||
  ', table ' || '"rowfeed_sequences"'::regclass::oid END

-- name: assign_positions
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."id"
  FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
WHERE t."id" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."id" = c."id" OFFSET 0)
ORDER BY j.place
ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind"
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
WHERE t."kind" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0)
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (column_capture_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."id"
  FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
WHERE 1 = 1
ORDER BY j.place
ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind", CASE WHEN t."tenant" >= 0 AND t."tenant" < 4 THEN t."tenant" ELSE -1 END AS rowfeed_shard
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
WHERE t."kind" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0)
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind", CASE WHEN t."tenant" >= 0 AND t."tenant" < 4 THEN t."tenant" ELSE -1 END AS rowfeed_shard
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
WHERE 1 = 1
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_by_kind
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id",
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."id"
  FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT old."id", old.feed_sync_id, old.hidden, old.published_at FROM "rowfeed_positions_<feed>" old
  WHERE old."id" = c."id" OFFSET 0) old ON true
WHERE t."id" IS NOT NULL OR old."id" IS NOT NULL
ORDER BY j.place
ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id",
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind"
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT old."key_kind", old.feed_sync_id, old.hidden, old.published_at FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0) old ON true
WHERE t."kind" IS NOT NULL OR old."key_kind" IS NOT NULL
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (column_capture_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id",
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."id"
  FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT old."id", old.feed_sync_id, old.hidden, old.published_at FROM "rowfeed_positions_<feed>" old
  WHERE old."id" = c."id" OFFSET 0) old ON true
WHERE 1 = 1
ORDER BY j.place
ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id",
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind", CASE WHEN t."tenant" >= 0 AND t."tenant" < 4 THEN t."tenant" ELSE -1 END AS rowfeed_shard
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT old."key_kind", old.feed_sync_id, old.hidden, old.published_at FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0) old ON true
WHERE t."kind" IS NOT NULL OR old."key_kind" IS NOT NULL
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_by_kind (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id",
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind", CASE WHEN t."tenant" >= 0 AND t."tenant" < 4 THEN t."tenant" ELSE -1 END AS rowfeed_shard
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
LEFT JOIN LATERAL (SELECT old."key_kind", old.feed_sync_id, old.hidden, old.published_at FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0) old ON true
WHERE 1 = 1
ORDER BY j.place
ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden,
  shard = CASE WHEN p.feed_sync_id <> excluded.feed_sync_id THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.feed_sync_id <> excluded.feed_sync_id THEN excluded.bucket ELSE p.bucket END

-- name: assigned
unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."id"
  FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true

-- name: assigned (composite_key_feed)
unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind"
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true

-- name: assigned (own_shards_feed)
unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT c."key_kind", c."id" FROM "rowfeed_changes_<feed>" c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT t."kind", CASE WHEN t."tenant" >= 0 AND t."tenant" < 4 THEN t."tenant" ELSE -1 END AS rowfeed_shard
  FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true

-- name: begin_check
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'

-- name: begin_consume
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')

-- name: begin_move
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off';
SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off';
SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '120s'

-- name: begin_publish
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off';
SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off';
SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '120s'

-- name: begin_read
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'; SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off';
SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'; SET LOCAL lock_timeout = '2s'

-- name: begin_record
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
  set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true),
  set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true),
  set_config('lock_timeout', '30s', true),
  set_config('statement_timeout', '120s', true)

-- name: begin_repair
SET TRANSACTION READ WRITE; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local'); SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
  set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true),
  set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true),
  set_config('lock_timeout', '30s', true),
  set_config('statement_timeout', '0', true)

-- name: bounds_of_publishers
SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '120s'

-- name: by_key
SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off';
SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'

-- name: delete_changes
DELETE FROM "rowfeed_changes_<feed>" WHERE seq = ANY (CAST(CAST(:seqs AS text) AS bigint[]))

-- name: delete_run
DELETE FROM "rowfeed_changes_<feed>" WHERE seq BETWEEN :first AND :last

-- name: durability
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')

-- name: durable
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')

-- name: formats
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'

-- name: formats_at_once
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
  set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true),
  set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true),
  set_config('lock_timeout', '30s', true)

-- name: identity
CASE WHEN NOT pg_is_in_recovery() THEN 'system ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||
  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||
  ', table ' || '"rowfeed_sequences"'::regclass::oid END

-- name: identity_of_primary
'system ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||
  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||
  ', table ' || '"rowfeed_sequences"'::regclass::oid

-- name: known
t."id" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."id" = c."id" OFFSET 0)

-- name: known (composite_key_feed)
t."kind" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0)

-- name: known (column_capture_feed)
1 = 1

-- name: last_of_key


-- name: lock_sequence
SELECT value, version, COALESCE(term, 0), updated_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'system ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||
  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||
  ', table ' || '"rowfeed_sequences"'::regclass::oid
FROM "rowfeed_sequences" WHERE name = :feed FOR UPDATE

-- name: numbers
CAST(CAST(:numbers AS text) AS bigint[])

-- name: oldest
SELECT :columns :range ORDER BY seq LIMIT :limit

-- name: oldest_of_ranges
(:ranges) ORDER BY seq LIMIT :limit

-- name: order_of_keys
ORDER BY j.place

-- name: publish_batch
WITH batch AS MATERIALIZED (:oldest),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM "rowfeed_changes_<feed>" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked)))
  RETURNING seq, "id"),
keys AS (SELECT "id", max(seq) AS seq FROM gone GROUP BY "id"),
placed AS (INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
  SELECT c."id", CAST(:base AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0,
    CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END,
    CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST(:published AS bigint)
  FROM keys c
  LEFT JOIN LATERAL (SELECT t."id" FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
  WHERE t."id" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."id" = c."id" OFFSET 0)
  ON CONFLICT ("id") DO UPDATE SET
    feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id
      ELSE excluded.feed_sync_id END,
    published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at
      ELSE excluded.published_at END,
    deleted = excluded.deleted,
    hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END),
advanced AS (UPDATE "rowfeed_sequences" SET value = CAST(:base AS bigint) + (SELECT count(*) FROM keys),
    term = :term, version = version + 1, updated_at = :published
  WHERE name = :feed AND version = :version
    AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
      WHERE name = :feed AND generation = :generation AND data_shards = 1)
    AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone),
  (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')

-- name: publish_batch (composite_key_feed)
WITH batch AS MATERIALIZED (:oldest),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM "rowfeed_changes_<feed>" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked)))
  RETURNING seq, "key_kind", "id"),
keys AS (SELECT "key_kind", "id", max(seq) AS seq FROM gone GROUP BY "key_kind", "id"),
placed AS (INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
  SELECT c."key_kind", c."id", CAST(:base AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0,
    CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END,
    CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST(:published AS bigint)
  FROM keys c
  LEFT JOIN LATERAL (SELECT t."kind" FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
  WHERE t."kind" IS NOT NULL OR EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old
  WHERE old."key_kind" = c."key_kind" AND old."id" = c."id" OFFSET 0)
  ON CONFLICT ("key_kind", "id") DO UPDATE SET
    feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id
      ELSE excluded.feed_sync_id END,
    published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at
      ELSE excluded.published_at END,
    deleted = excluded.deleted,
    hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END),
advanced AS (UPDATE "rowfeed_sequences" SET value = CAST(:base AS bigint) + (SELECT count(*) FROM keys),
    term = :term, version = version + 1, updated_at = :published
  WHERE name = :feed AND version = :version
    AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
      WHERE name = :feed AND generation = :generation AND data_shards = 1)
    AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone),
  (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')

-- name: publish_batch (column_capture_feed)
WITH batch AS MATERIALIZED (:oldest),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM "rowfeed_changes_<feed>" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked)))
  RETURNING seq, "id"),
keys AS (SELECT "id", max(seq) AS seq FROM gone GROUP BY "id"),
placed AS (INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
  SELECT c."id", CAST(:base AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0,
    CASE WHEN t."id" IS NULL THEN 1 ELSE 0 END,
    CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST(:published AS bigint)
  FROM keys c
  LEFT JOIN LATERAL (SELECT t."id" FROM "items_<feed>" t WHERE c."id" = t."id" OFFSET 0) t ON true
  WHERE 1 = 1
  ON CONFLICT ("id") DO UPDATE SET
    feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id
      ELSE excluded.feed_sync_id END,
    published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at
      ELSE excluded.published_at END,
    deleted = excluded.deleted,
    hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END),
advanced AS (UPDATE "rowfeed_sequences" SET value = CAST(:base AS bigint) + (SELECT count(*) FROM keys),
    term = :term, version = version + 1, updated_at = :published
  WHERE name = :feed AND version = :version
    AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
      WHERE name = :feed AND generation = :generation AND data_shards = 1)
    AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone),
  (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')

-- name: publish_batch (own_shards_in_rows_feed)
WITH batch AS MATERIALIZED (:oldest),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM "rowfeed_changes_<feed>" WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked)))
  RETURNING seq, "key_kind", "id"),
keys AS (SELECT "key_kind", "id", max(seq) AS seq FROM gone GROUP BY "key_kind", "id"),
placed AS (INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
  SELECT c."key_kind", c."id", CAST(:base AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0,
    CASE WHEN t."kind" IS NULL THEN 1 ELSE 0 END,
    CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST(:published AS bigint)
  FROM keys c
  LEFT JOIN LATERAL (SELECT t."kind" FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id" OFFSET 0) t ON true
  WHERE 1 = 1
  ON CONFLICT ("key_kind", "id") DO UPDATE SET
    feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id
      ELSE excluded.feed_sync_id END,
    published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at
      ELSE excluded.published_at END,
    deleted = excluded.deleted,
    hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END),
advanced AS (UPDATE "rowfeed_sequences" SET value = CAST(:base AS bigint) + (SELECT count(*) FROM keys),
    term = :term, version = version + 1, updated_at = :published
  WHERE name = :feed AND version = :version
    AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
      WHERE name = :feed AND generation = :generation AND data_shards = 1)
    AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone),
  (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')

-- name: shard_changes
p.shard < 0

-- name: shard_changes (own_shards_in_rows_feed)
p.hidden = 0

-- name: shard_changes_by_kind
p.shard < 0

-- name: shard_changes_by_kind (own_shards_in_rows_feed)
p.feed_sync_id <> excluded.feed_sync_id

-- name: stamp
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot() AS text) END

-- name: writing
SET TRANSACTION READ WRITE


-- name: assign_positions
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + j.place, 0, 0, 0, 0, :published
FROM (SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
WHERE EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."id" = t."id")

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, 0, 0, 0, 0, :published
FROM (SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
WHERE EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (sharded_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, j.shard, ((j.shard + 1) * 4 - 1) / 4, 0, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
WHERE EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, 0, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
WHERE EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, 0, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
WHERE EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_by_kind
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  j.shard, 0, t."id" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."id" = c."id"
WHERE t."id" IS NOT NULL OR old."id" IS NOT NULL

ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  j.shard, 0, t."kind" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."key_kind" = c."key_kind" AND old."id" = c."id"
WHERE t."kind" IS NOT NULL OR old."key_kind" IS NOT NULL

ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (column_capture_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  j.shard, 0, t."id" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."id" = c."id"
WHERE 1 = 1

ON CONFLICT ("id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (sharded_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  j.shard, ((j.shard + 1) * 4 - 1) / 4, t."kind" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."key_kind" = c."key_kind" AND old."id" = c."id"
WHERE t."kind" IS NOT NULL OR old."key_kind" IS NOT NULL

ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden

-- name: assign_positions_by_kind (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, t."kind" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."key_kind" = c."key_kind" AND old."id" = c."id"
WHERE t."kind" IS NOT NULL OR old."key_kind" IS NOT NULL

ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_by_kind (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE :offset + j.place END,
  COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, t."kind" IS NULL,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE :published END
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
LEFT JOIN "rowfeed_positions_<feed>" old ON old."key_kind" = c."key_kind" AND old."id" = c."id"
WHERE 1 = 1

ON CONFLICT ("key_kind", "id") DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden,
  shard = CASE WHEN p.feed_sync_id <> excluded.feed_sync_id THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.feed_sync_id <> excluded.feed_sync_id THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_of_run
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + c.seq, 0, 0, 0, 0, :published
FROM "rowfeed_changes_<feed>" c
WHERE c.seq BETWEEN :first AND :last AND EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."id" = t."id")

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions_of_run (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 0, 0, :published
FROM "rowfeed_changes_<feed>" c
WHERE c.seq BETWEEN :first AND :last AND EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_positions_of_run (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 0, 0, :published
FROM "rowfeed_changes_<feed>" c
WHERE c.seq BETWEEN :first AND :last AND EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_positions_of_run (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 0, 0, :published
FROM "rowfeed_changes_<feed>" c
WHERE c.seq BETWEEN :first AND :last AND EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_tombstones
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + j.place, 0, 0, 1, 0, :published
FROM (SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
WHERE t."id" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."id" = c."id")

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, 0, 0, 1, 0, :published
FROM (SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones (column_capture_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + j.place, 0, 0, 1, 0, :published
FROM (SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
WHERE t."id" IS NULL

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones (sharded_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, j.shard, ((j.shard + 1) * 4 - 1) / 4, 1, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, 1, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_tombstones (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + j.place, COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END, 1, 0, :published
FROM (SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE t."kind" IS NULL

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_tombstones_of_run
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + c.seq, 0, 0, 1, 0, :published
FROM "rowfeed_changes_<feed>" c
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
WHERE c.seq BETWEEN :first AND :last AND t."id" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."id" = c."id")

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones_of_run (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 1, 0, :published
FROM "rowfeed_changes_<feed>" c
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE c.seq BETWEEN :first AND :last AND t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones_of_run (column_capture_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."id", :offset + c.seq, 0, 0, 1, 0, :published
FROM "rowfeed_changes_<feed>" c
LEFT JOIN "items_<feed>" t ON c."id" = t."id"
WHERE c.seq BETWEEN :first AND :last AND t."id" IS NULL

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: assign_tombstones_of_run (own_shards_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 1, 0, :published
FROM "rowfeed_changes_<feed>" c
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE c.seq BETWEEN :first AND :last AND t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: assign_tombstones_of_run (own_shards_in_rows_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT c."key_kind", c."id", :offset + c.seq, 0, 0, 1, 0, :published
FROM "rowfeed_changes_<feed>" c
LEFT JOIN "items_<feed>" t ON c."key_kind" = t."kind" AND c."id" = t."id"
WHERE c.seq BETWEEN :first AND :last AND t."kind" IS NULL

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END

-- name: assigned
(SELECT key AS place, value AS seq FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq

-- name: assigned (sharded_feed)
(SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq

-- name: assigned_with_kinds
(SELECT key AS place, value ->> 0 AS seq, value ->> 1 AS shard, value ->> 2 AS kind FROM json_each(:list)) j
CROSS JOIN "rowfeed_changes_<feed>" c ON c.seq = j.seq

-- name: assignment
:offset + j.place, 0, 0

-- name: assignment (sharded_feed)
:offset + j.place, j.shard, ((j.shard + 1) * 4 - 1) / 4

-- name: assignment (own_shards_feed)
:offset + j.place, COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END

-- name: backlog
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_changes_<feed>" LIMIT :limit) x),
  COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - changed_at FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT 1), 0)

-- name: backlog (column_capture_feed)
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_changes_<feed>" LIMIT :limit) x) + (SELECT count(*) FROM (SELECT 1 FROM "items_<feed>" WHERE feed_sync_id IS NULL LIMIT :limit) y),
  COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - changed_at FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT 1), 0)

-- name: backlog_of_outbox
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_outbox_<feed>" LIMIT :limit) x),
  COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - appended_at FROM "rowfeed_outbox_<feed>" ORDER BY order_sequence LIMIT 1), 0)

-- name: backlog_of_shard
SELECT (SELECT count(*) FROM (SELECT 1 FROM "rowfeed_outbox_<feed>" LIMIT :limit) x),
  COALESCE((SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - appended_at FROM "rowfeed_outbox_<feed>"
    WHERE shard BETWEEN :shard AND :shard ORDER BY shard, order_sequence LIMIT 1), 0)

-- name: begin_write
UPDATE :sequences SET version = version WHERE 0

-- name: delete_run
DELETE FROM "rowfeed_changes_<feed>" WHERE seq BETWEEN :first AND :last

-- name: durability
PRAGMA synchronous

-- name: file
SELECT file FROM pragma_database_list WHERE name = 'main'

-- name: has_position_only
t."id" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."id" = c."id")

-- name: has_position_only (composite_key_feed)
t."kind" IS NULL AND EXISTS (SELECT 1 FROM "rowfeed_positions_<feed>" old WHERE old."key_kind" = c."key_kind" AND old."id" = c."id")

-- name: has_position_only (column_capture_feed)
t."id" IS NULL

-- name: has_position_only (own_shards_in_rows_feed)
t."kind" IS NULL

-- name: has_row
EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."id" = t."id")

-- name: has_row (composite_key_feed)
EXISTS (SELECT 1 FROM "items_<feed>" t WHERE c."key_kind" = t."kind" AND c."id" = t."id")

-- name: into_positions
INSERT INTO "rowfeed_positions_<feed>" AS p ("id", feed_sync_id, shard, bucket, deleted, hidden, published_at)

-- name: into_positions (composite_key_feed)
INSERT INTO "rowfeed_positions_<feed>" AS p ("key_kind", "id", feed_sync_id, shard, bucket, deleted, hidden, published_at)

-- name: lock_sequence
SELECT value, version, COALESCE(term, 0), updated_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_sequences" WHERE name = :feed

-- name: oldest
SELECT seq, kind, +"id" FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT :limit

-- name: oldest (composite_key_feed)
SELECT seq, kind, +"key_kind", +"id" FROM "rowfeed_changes_<feed>" ORDER BY seq LIMIT :limit

-- name: order_of_changes


-- name: shard_and_bucket
j.shard, 0

-- name: shard_and_bucket (sharded_feed)
j.shard, ((j.shard + 1) * 4 - 1) / 4

-- name: shard_and_bucket (own_shards_feed)
COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1), CASE WHEN COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) < 0 THEN -1 ELSE ((COALESCE((SELECT CASE WHEN typeof(r."tenant") = 'integer' AND r."tenant" >= 0 AND r."tenant" < 4 THEN r."tenant" ELSE -1 END FROM "items_<feed>" r WHERE c."key_kind" = r."kind" AND c."id" = r."id"), -1) + 1) * 4 - 1) / 4 END

-- name: shard_changes
p.shard < 0

-- name: shard_changes (own_shards_in_rows_feed)
p.hidden = 0

-- name: shard_changes_by_kind
p.shard < 0

-- name: shard_changes_by_kind (own_shards_in_rows_feed)
p.feed_sync_id <> excluded.feed_sync_id

-- name: upsert

ON CONFLICT ("id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: upsert (composite_key_feed)

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted

-- name: upsert (own_shards_feed)

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.shard < 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.shard < 0 THEN excluded.bucket ELSE p.bucket END

-- name: upsert (own_shards_in_rows_feed)

ON CONFLICT ("key_kind", "id") DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted,
  shard = CASE WHEN p.hidden = 0 THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN p.hidden = 0 THEN excluded.bucket ELSE p.bucket END


-- name: advance
UPDATE "rowfeed_sequences" SET value = :head, term = :term, version = version + 1, updated_at = :now
WHERE name = :feed AND version = :version
  AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
    WHERE name = :feed AND generation = :generation AND data_shards = :data_shards)

-- name: advance (column_capture_feed)
UPDATE "rowfeed_sequences" SET value = :head, term = :term, version = version + 1, updated_at = :now
WHERE name = :feed AND version = :version
  AND EXISTS (SELECT 1 FROM "rowfeed_feeds"
    WHERE name = :feed AND generation = :generation AND data_shards = :data_shards AND capture = 'column')

-- name: all_tombstones
SELECT feed_sync_id, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - published_at FROM "rowfeed_positions_<feed>"
WHERE deleted = 1 AND hidden = 0
ORDER BY feed_sync_id LIMIT :count

-- name: count_of_key
SELECT (SELECT count(*) FROM "items_<feed>" x WHERE :has_row) + (SELECT count(*) FROM "rowfeed_positions_<feed>" x WHERE :has_position)

-- name: count_placed_rows
SELECT count(*) FROM "items_<feed>" WHERE feed_sync_id > :base

-- name: count_rows
SELECT count(*) FROM "items_<feed>" t WHERE :which

-- name: count_waiting_rows
SELECT count(*) FROM (SELECT feed_sync_id FROM "items_<feed>" WHERE feed_sync_id IS NULL LIMIT :count) x

-- name: delete_tombstones
DELETE FROM "rowfeed_positions_<feed>" WHERE deleted = 1 AND feed_sync_id IN (:positions)

-- name: failed
UPDATE "rowfeed_feeds"
SET failure = :failure, failing_since = COALESCE(failing_since, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000), attempts = :attempts,
  next_try = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + :pause
WHERE name = :feed

-- name: foreign_positions
SELECT feed_sync_id FROM "items_<feed>" WHERE feed_sync_id > :base
GROUP BY feed_sync_id HAVING count(*) > 1 OR feed_sync_id <= :first OR feed_sync_id > :last
ORDER BY feed_sync_id LIMIT :count

-- name: head
SELECT value FROM "rowfeed_sequences":hint WHERE name = :feed :unlocked

-- name: highest_change
SELECT seq FROM "rowfeed_changes_<feed>" ORDER BY seq DESC LIMIT 1

-- name: last_key
SELECT +t."id" FROM "items_<feed>" t WHERE :which ORDER BY t."id" LIMIT 1 OFFSET :others

-- name: last_key (composite_key_feed)
SELECT +t."kind", +t."id" FROM "items_<feed>" t WHERE :which ORDER BY t."kind", t."id" LIMIT 1 OFFSET :others

-- name: lowest_change
SELECT seq FROM "rowfeed_changes_<feed>" ORDER BY seq ASC LIMIT 1

-- name: positions_above_sequence
SELECT t.feed_sync_id FROM "rowfeed_sequences" s JOIN "items_<feed>" t ON t.feed_sync_id > s.value
WHERE s.name = '<feed>' ORDER BY t.feed_sync_id LIMIT :count

-- name: published_here
SELECT 0 FROM "rowfeed_feeds" WHERE name = '<feed>' AND state <> :elsewhere

-- name: raise_tombstones_below
UPDATE "rowfeed_feeds" SET tombstones_below = :highest WHERE name = :feed AND tombstones_below < :highest

-- name: record_key
INSERT INTO "rowfeed_changes_<feed>" ("id", kind) VALUES (:values, :kind)

-- name: record_key (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id", kind) VALUES (:values, :kind)

-- name: record_rows
INSERT INTO "rowfeed_changes_<feed>" ("id", kind) SELECT x.k0, :kind
FROM (SELECT t."id" AS k0 FROM "items_<feed>" t WHERE :which ORDER BY t."id" LIMIT :all) x

-- name: record_rows (composite_key_feed)
INSERT INTO "rowfeed_changes_<feed>" ("key_kind", "id", kind) SELECT x.k0, x.k1, :kind
FROM (SELECT t."kind" AS k0, t."id" AS k1 FROM "items_<feed>" t WHERE :which ORDER BY t."kind", t."id" LIMIT :all) x

-- name: recovered
UPDATE "rowfeed_feeds" SET failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL
WHERE name = :feed AND failure IS NOT NULL

-- name: rows
FROM "items_<feed>" t WHERE :which

-- name: tombstones
SELECT feed_sync_id, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 - published_at FROM "rowfeed_positions_<feed>"
WHERE deleted = 1 AND hidden = 0 AND feed_sync_id >= :from
ORDER BY feed_sync_id LIMIT :count

-- name: waiting_rows
SELECT +t."id" FROM "items_<feed>" t WHERE t.feed_sync_id IS NULL ORDER BY t."id" LIMIT :count

-- name: waiting_rows (composite_key_feed)
SELECT +t."kind", +t."id" FROM "items_<feed>" t WHERE t.feed_sync_id IS NULL ORDER BY t."kind", t."id" LIMIT :count


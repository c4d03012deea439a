-- name: delete_places
DELETE FROM "rowfeed_feed_<feed>" AS g

-- name: delete_records
DELETE FROM "rowfeed_outbox_<feed>" WHERE order_sequence IN (:seqs)

-- name: place_behind
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "id")
SELECT x.shard, unhex(printf('%016x%016x', (:time) * 65536 + :run, :batch + x.n)), x.k0
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at t."id" AS k0,
    row_number() OVER (ORDER BY t."id") AS n
  FROM "items_<feed>" t
  JOIN "rowfeed_shards" s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN "rowfeed_feed_<feed>" g ON g."id" = t."id"
  LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_<feed>") c ON c."id" = t."id"
  WHERE :rows g."id" IS NULL AND c."id" IS NULL) x
WHERE true ON CONFLICT ("id") DO NOTHING

-- name: place_behind (composite_key_feed)
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "key_kind", "id")
SELECT x.shard, unhex(printf('%016x%016x', (:time) * 65536 + :run, :batch + x.n)), x.k0, x.k1
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at t."kind" AS k0, t."id" AS k1,
    row_number() OVER (ORDER BY t."kind", t."id") AS n
  FROM "items_<feed>" t
  JOIN "rowfeed_shards" s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN "rowfeed_feed_<feed>" g ON g."key_kind" = t."kind" AND g."id" = t."id"
  LEFT JOIN (SELECT DISTINCT "key_kind", "id" FROM "rowfeed_outbox_<feed>") c ON c."key_kind" = t."kind" AND c."id" = t."id"
  WHERE :rows g."key_kind" IS NULL AND c."key_kind" IS NULL) x
WHERE true ON CONFLICT ("key_kind", "id") DO NOTHING

-- name: place_records
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "id")
SELECT o.shard, unhex(j.ulid), o."id"
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(:places)) j
CROSS JOIN "rowfeed_outbox_<feed>" o ON o.order_sequence = j.seq
WHERE o.shard = :shard
ON CONFLICT ("id") DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid

-- name: place_records (composite_key_feed)
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "key_kind", "id")
SELECT o.shard, unhex(j.ulid), o."key_kind", o."id"
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(:places)) j
CROSS JOIN "rowfeed_outbox_<feed>" o ON o.order_sequence = j.seq
WHERE o.shard = :shard
ON CONFLICT ("key_kind", "id") DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid

-- name: time_of_row
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END


-- name: delete_places
DELETE FROM "rowfeed_feed_<feed>" g

-- name: delete_records
DELETE FROM "rowfeed_outbox_<feed>" WHERE order_sequence = ANY (CAST(CAST(:seqs AS text) AS bigint[]))

-- name: place_behind
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "id")
SELECT x.shard, CAST(lpad(to_hex((CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1
    WHEN x.at < 0 THEN 0 ELSE x.at END) * 65536 + :run), 16, '0') || lpad(to_hex(:batch + x.n), 16, '0') AS uuid),
  x.k0
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at, t."id" AS k0,
    row_number() OVER (ORDER BY t."id") AS n
  FROM "items_<feed>" t
  JOIN "rowfeed_shards" s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN "rowfeed_feed_<feed>" g ON g."id" = t."id"
  LEFT JOIN (SELECT DISTINCT "id" FROM "rowfeed_outbox_<feed>") c ON c."id" = t."id"
  WHERE :rows AND g."id" IS NULL AND c."id" IS NULL) x
ON CONFLICT ("id") DO NOTHING

-- name: place_behind (composite_key_feed)
INSERT INTO "rowfeed_feed_<feed>" (shard, ulid, "key_kind", "id")
SELECT x.shard, CAST(lpad(to_hex((CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1
    WHEN x.at < 0 THEN 0 ELSE x.at END) * 65536 + :run), 16, '0') || lpad(to_hex(:batch + x.n), 16, '0') AS uuid),
  x.k0, x.k1
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at AS at, t."kind" AS k0, t."id" AS k1,
    row_number() OVER (ORDER BY t."kind", t."id") AS n
  FROM "items_<feed>" t
  JOIN "rowfeed_shards" s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN "rowfeed_feed_<feed>" g ON g."key_kind" = t."kind" AND g."id" = t."id"
  LEFT JOIN (SELECT DISTINCT "key_kind", "id" FROM "rowfeed_outbox_<feed>") c ON c."key_kind" = t."kind" AND c."id" = t."id"
  WHERE :rows AND g."key_kind" IS NULL AND c."key_kind" IS NULL) x
ON CONFLICT ("key_kind", "id") DO NOTHING

-- name: place_records
WITH own AS (SELECT DISTINCT ON (o."id") j.seq, o.shard, j.ulid, o."id"
  FROM unnest(CAST(CAST(:seqs AS text) AS bigint[]), CAST(CAST(:ulids AS text) AS uuid[])) AS j(seq, ulid)
  CROSS JOIN LATERAL (SELECT * FROM "rowfeed_outbox_<feed>" o WHERE o.order_sequence = j.seq AND o.shard = :shard OFFSET 0) o
  ORDER BY o."id", j.seq DESC),
done AS (INSERT INTO "rowfeed_feed_<feed>" AS g (shard, ulid, "id")
  SELECT shard, ulid, "id" FROM own ORDER BY seq
  ON CONFLICT ("id") DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > g.ulid RETURNING 1)
SELECT (SELECT count(*) FROM own) - (SELECT count(*) FROM done)

-- name: place_records (composite_key_feed)
WITH own AS (SELECT DISTINCT ON (o."key_kind", o."id") j.seq, o.shard, j.ulid, o."key_kind", o."id"
  FROM unnest(CAST(CAST(:seqs AS text) AS bigint[]), CAST(CAST(:ulids AS text) AS uuid[])) AS j(seq, ulid)
  CROSS JOIN LATERAL (SELECT * FROM "rowfeed_outbox_<feed>" o WHERE o.order_sequence = j.seq AND o.shard = :shard OFFSET 0) o
  ORDER BY o."key_kind", o."id", j.seq DESC),
done AS (INSERT INTO "rowfeed_feed_<feed>" AS g (shard, ulid, "key_kind", "id")
  SELECT shard, ulid, "key_kind", "id" FROM own ORDER BY seq
  ON CONFLICT ("key_kind", "id") DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > g.ulid RETURNING 1)
SELECT (SELECT count(*) FROM own) - (SELECT count(*) FROM done)


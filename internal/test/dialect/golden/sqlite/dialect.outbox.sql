-- name: delete_places
DELETE FROM "rowfeed_feed_<feed>" AS g

-- name: delete_records
DELETE FROM "rowfeed_outbox_<feed>" WHERE order_sequence IN (:seqs)

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


-- name: but
AND order_sequence NOT IN (:seqs)

-- name: first_change
SELECT seq FROM (SELECT seq :scan ORDER BY seq OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) c:number

-- name: first_of_shard
SELECT shard FROM (SELECT shard :scan OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) s:number

-- name: first_row
SELECT 0 FROM (SELECT feed_sync_id FROM [items_<feed>] WHERE feed_sync_id IS NULL ORDER BY (SELECT NULL) OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY) t

-- name: greatest_of_shard
SELECT :shard AS shard, g:number.* FROM (:greatest) g:number

-- name: highest_place
SELECT g.[ulid] FROM [rowfeed_outbox_<feed>] o JOIN [rowfeed_feed_<feed>] g ON g.[key_kind] = o.[key_kind] AND g.[id] = o.[id]
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last ORDER BY g.ulid DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: highest_place (blocking_feed)
SELECT g.[position] FROM [rowfeed_outbox_<feed>] o JOIN [rowfeed_feed_<feed>] g ON g.[key_kind] = o.[key_kind] AND g.[id] = o.[id]
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last ORDER BY g.ulid DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: last_shard
SELECT g.[shard], g.[ulid] FROM [rowfeed_feed_<feed>] g
ORDER BY g.[shard] DESC, g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: last_shard (blocking_feed)
SELECT g.[tenant], g.[position] FROM [items_<feed>] g
ORDER BY g.[tenant] DESC, g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: last_shard_below
SELECT g.[shard], g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.[shard] < :below
ORDER BY g.[shard] DESC, g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: last_shard_below (blocking_feed)
SELECT g.[tenant], g.[position] FROM [items_<feed>] g WHERE g.[tenant] < :below
ORDER BY g.[tenant] DESC, g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: oldest_shards
SELECT shard FROM (SELECT shard :scan ORDER BY order_sequence OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY) c:number

-- name: passed_ulid
SELECT g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.[shard] = :shard AND g.[ulid] <= :at
ORDER BY g.[ulid] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: passed_ulid (blocking_feed)
SELECT g.[position] FROM [items_<feed>] g WHERE g.[tenant] = :shard AND g.[position] <= :at
ORDER BY g.[position] DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: placed_elsewhere
SELECT count(*) FROM [rowfeed_outbox_<feed>] o JOIN [rowfeed_feed_<feed>] g ON g.[id] = o.[id]
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last AND g.shard <> o.shard

-- name: placed_elsewhere (composite_key_feed)
SELECT count(*) FROM [rowfeed_outbox_<feed>] o JOIN [rowfeed_feed_<feed>] g ON g.[key_kind] = o.[key_kind] AND g.[id] = o.[id]
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last AND g.shard <> o.shard

-- name: record_waits
(SELECT 1 :scan OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY)

-- name: records
SELECT order_sequence, time_hint :scan OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY

-- name: records_of_scan
SELECT order_sequence, time_hint FROM (SELECT order_sequence, time_hint :scan OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY) s:number

-- name: records_of_scans
SELECT order_sequence, time_hint FROM (:scans) o ORDER BY order_sequence OFFSET 0 ROWS FETCH NEXT :limit ROWS ONLY

-- name: records_of_shards
SELECT shard, count(*) FROM (:oldest) r GROUP BY shard ORDER BY shard


-- name: above
AND g.ulid > :above

-- name: expired_by_age
SELECT s.shard FROM [rowfeed_shards] s
WHERE s.feed = :feed AND EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] g WHERE g.shard = s.shard AND g.ulid <= :last)
ORDER BY s.shard

-- name: expired_by_count
SELECT s.shard, (SELECT g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.shard = s.shard
  ORDER BY g.ulid DESC OFFSET :kept ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed ORDER BY s.shard

-- name: expired_by_count (blocking_feed)
SELECT s.shard, (SELECT g.[position] FROM [rowfeed_feed_<feed>] g WHERE g.shard = s.shard
  ORDER BY g.ulid DESC OFFSET :kept ROWS FETCH NEXT 1 ROWS ONLY)
FROM [rowfeed_shards] s WHERE s.feed = :feed ORDER BY s.shard

-- name: expired_places
SELECT g.[ulid] FROM [rowfeed_feed_<feed>] g WHERE g.shard = :shard :above AND g.ulid <= :last
ORDER BY g.ulid OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: expired_places (blocking_feed)
SELECT g.[position] FROM [rowfeed_feed_<feed>] g WHERE g.shard = :shard :above AND g.ulid <= :last
ORDER BY g.ulid OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: live_from
UPDATE [rowfeed_shards] SET live_from = :first WHERE feed = :feed AND shard = :shard

-- name: mark
SELECT below_high, below_low FROM [rowfeed_shards] WHERE feed = :feed AND shard = :shard

-- name: purged_places
g.shard = :shard AND g.ulid >= :first AND g.ulid <= :last

-- name: raise_mark
UPDATE [rowfeed_shards] SET below_high = :high, below_low = :low WHERE feed = :feed AND shard = :shard

-- name: shards
SELECT shard FROM [rowfeed_shards] WHERE feed = :feed ORDER BY shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: shards_with_rows
SELECT s.shard FROM [rowfeed_shards] s
WHERE s.feed = :feed AND EXISTS (SELECT 1 FROM [rowfeed_feed_<feed>] g WHERE g.[shard] = s.shard)
ORDER BY s.shard OFFSET 0 ROWS FETCH NEXT 2 ROWS ONLY

-- name: shards_with_rows (blocking_feed)
SELECT s.shard FROM [rowfeed_shards] s
WHERE s.feed = :feed AND EXISTS (SELECT 1 FROM [items_<feed>] g WHERE g.[tenant] = s.shard)
ORDER BY s.shard OFFSET 0 ROWS FETCH NEXT 2 ROWS ONLY

-- name: shards_with_ulids
SELECT shard FROM [rowfeed_shards] WHERE feed = :feed AND time_ms <> 0 ORDER BY shard OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: sum_of_times
SELECT COALESCE(SUM(time_ms), 0) FROM [rowfeed_shards] WHERE feed = :feed


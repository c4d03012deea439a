-- Shards of feeds with ULIDs, and the purge of entries, if their statements are the same for every database.

-- name: shards
SELECT shard FROM {{table "shards"}} WHERE feed = :feed ORDER BY shard {{limit ":count"}}

-- name: shards_with_ulids
-- A shard in which no ULID was given does not count.
SELECT shard FROM {{table "shards"}} WHERE feed = :feed AND time_ms <> 0 ORDER BY shard {{limit ":count"}}

-- name: shards_with_rows
SELECT s.shard FROM {{table "shards"}} s
WHERE s.feed = :feed AND EXISTS (SELECT 1 FROM {{ulids}} g WHERE {{shard "g"}} = s.shard)
ORDER BY s.shard {{limit "2"}}

-- name: sum_of_times
-- It changes when any shard of the feed advances.
SELECT COALESCE(SUM(time_ms), 0) FROM {{table "shards"}} WHERE feed = :feed

-- name: live_from
UPDATE {{table "shards"}} SET live_from = :first WHERE feed = :feed AND shard = :shard

-- name: expired_by_age
SELECT s.shard FROM {{table "shards"}} s
WHERE s.feed = :feed AND EXISTS (SELECT 1 FROM {{places}} g WHERE g.shard = s.shard AND g.ulid <= :last)
ORDER BY s.shard

-- name: expired_by_count
-- The highest position that need not be kept; NULL if all are kept.
SELECT s.shard, (SELECT {{read_ulid "g"}} FROM {{places}} g WHERE g.shard = s.shard
  ORDER BY g.ulid DESC {{skip ":kept"}})
FROM {{table "shards"}} s WHERE s.feed = :feed ORDER BY s.shard

-- name: expired_places
SELECT {{read_ulid "g"}} FROM {{places}} g WHERE g.shard = :shard :above AND g.ulid <= :last
ORDER BY g.ulid {{limit ":count"}}

-- name: above
AND g.ulid > :above

-- name: mark
SELECT below_high, below_low FROM {{table "shards"}} WHERE feed = :feed AND shard = :shard

-- name: raise_mark
UPDATE {{table "shards"}} SET below_high = :high, below_low = :low WHERE feed = :feed AND shard = :shard

-- name: purged_places
-- The condition of dialect.Moving.DeletePlaces.
g.shard = :shard AND g.ulid >= :first AND g.ulid <= :last

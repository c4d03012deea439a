-- name: all_of_feed
h.feed = :feed

-- name: elsewhere
SELECT s.name, f.generation, s.value, NULL, 0, 0
FROM [rowfeed_sequences] s JOIN [rowfeed_feeds] f ON f.name = s.name

-- name: sequences
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0)
FROM [rowfeed_sequences] s JOIN [rowfeed_feeds] f ON f.name = s.name

-- name: shards
SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0
FROM [rowfeed_shards] h JOIN [rowfeed_feeds] f ON f.name = h.feed

-- name: some_of_feed
h.feed = :feed AND h.shard IN (:shards)

-- name: some_shards
SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0
FROM [rowfeed_shards] h JOIN [rowfeed_feeds] f ON f.name = h.feed WHERE :named

-- name: waiting
SELECT :feed, :waiting, 0, NULL, 0, 0 FROM (:first) w


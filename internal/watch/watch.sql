-- Parts of the statement of a poll, which a UNION ALL joins.

-- name: sequences
SELECT s.name, f.generation, s.value, NULL, 0, COALESCE(s.term, 0)
FROM {{table "sequences"}} s JOIN {{table "feeds"}} f ON f.name = s.name

-- name: elsewhere
-- The same of a feed whose positions another publisher gives.
SELECT s.name, f.generation, s.value, NULL, 0, 0
FROM {{sequence}} s JOIN {{table "feeds"}} f ON f.name = s.name

-- name: shards
SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high, 0
FROM {{table "shards"}} h JOIN {{table "feeds"}} f ON f.name = h.feed

-- name: some_shards
-- A feed may have millions of others.
{{template "shards"}} WHERE :named

-- name: all_of_feed
h.feed = :feed

-- name: some_of_feed
h.feed = :feed AND h.shard IN (:shards)

-- name: waiting
-- A generation that no feed has marks the row of a feed whose publisher has something to do. :first is a query.
SELECT :feed, :waiting, 0, NULL, 0, 0 FROM (:first) w

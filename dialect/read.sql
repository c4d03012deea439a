-- What is read in the same way on every database, without a lock. The folder of each database says which index a scan
-- of changes or records follows: see the names all_changes, all_records and all_of_shard there. Such a scan is :scan
-- here.

-- name: first_change
SELECT seq FROM (SELECT seq :scan ORDER BY seq {{limit "1"}}) c:number

-- name: first_row
-- If rows hold their positions, a row that waits for one counts as a change.
SELECT 0 FROM (SELECT feed_sync_id FROM {{source}} WHERE feed_sync_id IS NULL {{at_most "1"}}) t

-- name: oldest_shards
SELECT shard FROM (SELECT shard :scan ORDER BY order_sequence {{limit ":limit"}}) c:number

-- name: records_of_shards
SELECT shard, count(*) FROM (:oldest) r GROUP BY shard ORDER BY shard

-- name: first_of_shard
SELECT shard FROM (SELECT shard :scan {{limit "1"}}) s:number

-- name: record_waits
(SELECT 1 :scan {{limit "1"}})

-- name: records
SELECT order_sequence, time_hint :scan {{limit ":limit"}}

-- name: records_of_scan
SELECT order_sequence, time_hint FROM (SELECT order_sequence, time_hint :scan {{limit ":limit"}}) s:number

-- name: records_of_scans
SELECT order_sequence, time_hint FROM (:scans) o ORDER BY order_sequence {{limit ":limit"}}

-- name: but
AND order_sequence NOT IN (:seqs)

-- name: highest_place
SELECT {{read_ulid "g"}} FROM {{records}} o JOIN {{places}} g ON {{same_key "g" "o"}}
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last ORDER BY g.ulid DESC {{limit "1"}}

-- name: placed_elsewhere
SELECT count(*) FROM {{records}} o JOIN {{places}} g ON {{same_key "g" "o"}}
WHERE o.shard = :shard AND o.order_sequence BETWEEN :first AND :last AND g.shard <> o.shard

-- name: passed_ulid
-- Of the unique index of shard and ULID, this reads one entry, as do the statements below.
SELECT {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} = :shard AND {{ulid "g"}} <= :at
ORDER BY {{ulid "g"}} DESC {{limit "1"}}

-- name: last_shard
SELECT {{shard "g"}}, {{read_ulid "g"}} FROM {{ulids}} g
ORDER BY {{shard "g"}} DESC, {{ulid "g"}} DESC {{limit "1"}}

-- name: last_shard_below
SELECT {{shard "g"}}, {{read_ulid "g"}} FROM {{ulids}} g WHERE {{shard "g"}} < :below
ORDER BY {{shard "g"}} DESC, {{ulid "g"}} DESC {{limit "1"}}

-- name: greatest_of_shard
SELECT :shard AS shard, g:number.* FROM (:greatest) g:number

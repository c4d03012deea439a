-- The outbox: its records get places. The transaction that moves records has locked their shard.

-- name: place_records
-- One upsert, which processes one record after the other. The keys stay in the server. A plain INSERT that fails would
-- leave gap locks behind. In READ COMMITTED the SELECT part locks nothing and waits for no other transaction.
--
-- A ULID may already belong to another key. If the record's key has a place, the statement then fails. If it has none,
-- the record gets no place, and delete_records keeps the record. It also keeps the record of a key that has a higher
-- place in another shard. Assignments are made from left to right, so the assignment of shard reads the old ULID.
:insert INTO {{places}} (shard, ulid, {{key}})
SELECT o.shard, UNHEX(j.ulid), {{key "o"}}
FROM JSON_TABLE(:places, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', ulid CHAR(32) PATH '$[1]')) j
STRAIGHT_JOIN {{records}} o FORCE INDEX (PRIMARY) ON o.order_sequence = j.seq
WHERE o.shard = :shard ORDER BY j.seq
ON DUPLICATE KEY UPDATE shard = IF(UNHEX(j.ulid) > {{places}}.ulid, o.shard, {{places}}.shard),
  ulid = GREATEST(UNHEX(j.ulid), {{places}}.ulid)

-- name: delete_records
-- Each record is looked up: a scan would wait for open writers. A record whose key has no place in this shard is kept:
-- its ULID existed already, or the key has a higher place in another shard.
DELETE c FROM JSON_TABLE(:seqs, '$[*]' COLUMNS (seq BIGINT PATH '$')) j
STRAIGHT_JOIN {{records}} c FORCE INDEX (PRIMARY) ON c.order_sequence = j.seq
STRAIGHT_JOIN {{places}} g FORCE INDEX (PRIMARY) ON {{same_key "g" "c"}} AND g.shard = c.shard

-- name: delete_places
-- If most places are to be deleted, the planner would read all of them, and wait for places that movers of other shards
-- have locked.
DELETE g FROM {{places}} g FORCE INDEX (place)

-- name: place_behind
-- Back-fill gives places to rows (t) that have neither a record nor a place. The outbox has no index on the key,
-- because every writer would pay for it. So the statement collects the keys of all records. The keys stay in the
-- server, and all that is read comes from one snapshot. The high half of a ULID has the time and the run, the low half
-- the batch and the row's place in it. The last clause ignores a key that has got a place since.
:insert INTO {{places}} (shard, ulid, {{key}})
SELECT x.shard, UNHEX(CONCAT(LPAD(HEX(CAST((:time) * 65536 + :run AS UNSIGNED)), 16, '0'),
  LPAD(HEX(CAST(:batch + x.n AS UNSIGNED)), 16, '0'))), {{numbered "x"}}
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at {{numbered_row "t"}},
    row_number() OVER (ORDER BY {{ordered "t"}}) AS n
  FROM {{source}} t
  JOIN {{table "shards"}} s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN {{places}} g ON {{row_of "t" "g"}}
  LEFT JOIN (SELECT DISTINCT {{key}} FROM {{records}}) c ON {{row_of "t" "c"}}
  WHERE :rows {{one_of_key "g"}} IS NULL AND {{one_of_key "c"}} IS NULL) x
ON DUPLICATE KEY UPDATE shard = {{places}}.shard

-- name: time_of_row
-- The first run in a shard follows the times of the rows: no reader can have passed these positions. A later run places
-- its rows above all of them, and so does a run without a column for the time.
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

-- The outbox: its records get places, and so do rows by back-fill.

-- name: place_records
-- One statement. The keys stay in the database. It processes one row after the other, so the last record of a key
-- decides. A ULID that exists already is an error, because a record would be lost. CROSS JOIN makes SQLite join in this
-- order: a place, in the order of the list, and its record by rowid.
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT o.shard, unhex(j.ulid), {{key "o"}}
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS ulid FROM json_each(:places)) j
CROSS JOIN {{records}} o ON o.order_sequence = j.seq
WHERE o.shard = :shard
ON CONFLICT ({{key}}) DO UPDATE SET shard = excluded.shard, ulid = excluded.ulid WHERE excluded.ulid > ulid

-- name: delete_records
-- By rowid. The seqs are text of the statement, because SQLite would read the whole outbox for a list in a subquery. A
-- range would include records of other shards.
DELETE FROM {{records}} WHERE order_sequence IN (:seqs)

-- name: delete_places
-- It needs no hint: the primary key of the table is (shard, ulid).
DELETE FROM {{places}} AS g

-- name: place_behind
-- Back-fill gives places to rows (t) that have neither a record nor a place. The outbox has no index on the key, because
-- every writer would pay for it. So the statement collects the keys of all records. The high half of a ULID has the time
-- and the run, the low half the batch and the row's place in it. The last clause ignores a key that has got a place
-- since. Without its WHERE, SQLite would parse ON CONFLICT as the ON of a join.
INSERT INTO {{places}} (shard, ulid, {{key}})
SELECT x.shard, unhex(printf('%016x%016x', (:time) * 65536 + :run, :batch + x.n)), {{numbered "x"}}
FROM (SELECT :shard AS shard, s.live_from AS live, s.filled_by AS first_run, :at {{numbered_row "t"}},
    row_number() OVER (ORDER BY {{ordered "t"}}) AS n
  FROM {{source}} t
  JOIN {{table "shards"}} s ON s.feed = :feed AND s.shard = :shard AND s.live_from > 0 AND s.filled_by > 0
  LEFT JOIN {{places}} g ON {{row_of "t" "g"}}
  LEFT JOIN (SELECT DISTINCT {{key}} FROM {{records}}) c ON {{row_of "t" "c"}}
  WHERE :rows {{one_of_key "g"}} IS NULL AND {{one_of_key "c"}} IS NULL) x
WHERE true ON CONFLICT ({{key}}) DO NOTHING

-- name: time_of_row
-- The first run in a shard follows the times of the rows: no reader can have passed these positions. A later run places
-- its rows above all of them, and so does a run without a column for the time.
CASE WHEN x.at IS NULL OR x.first_run <> :run OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END

-- The outbox: its records get places.

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

-- Publishing: what a transaction sets, what it locks, and how changes get their positions.
--
-- One row of the table of sequences is locked, FOR UPDATE, from lock_sequence to the COMMIT of the pass. Only
-- publishers write positions and delete changes, so writers do not wait for these. With capture "column" writers wait
-- for rows that a publisher has locked: see rows.sql. A scan of changes and a query of the source lock nothing.
--
-- LATERAL with OFFSET 0 fixes the order of a join: an assignment, its change by seq, then the row and the old position
-- each by key. Without it, and with the statistics of a time when nothing waited, the planner reads every change that
-- waits and compares each with every assignment: ten million comparisons for a batch of 100 out of 100,000.

-- name: writing
-- It overrides default_transaction_read_only. PostgreSQL accepts it only before the first query of a transaction, so
-- every publisher sends it. A standby refuses it with SQLSTATE 0A000. PostgreSQL has the same code for a cached plan
-- that is out of date. So before it retries, the caller reads the identity, which tells whether the server is a
-- standby.
SET TRANSACTION READ WRITE

-- name: durable
-- It raises synchronous_commit if the server's default is weaker. It never lowers it: remote_apply stays.
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local')

-- name: formats
-- Text is the same whatever the session's settings. With row_security off, the server fails if a policy would hide
-- rows.
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL extra_float_digits = '1'; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = 'off'

-- name: by_key
-- The planner reads no whole table for a page or a batch. Right after ANALYZE, or before the first one, it prefers a
-- hash join with a full scan. It also adds ten thousand million to the cost of a plan with a step that is switched off.
-- At such a cost the server compiles even a plan over a few rows, each time for hundreds of milliseconds: hence jit.
SET LOCAL enable_hashjoin = 'off'; SET LOCAL enable_mergejoin = 'off'; SET LOCAL enable_seqscan = 'off';
SET LOCAL enable_bitmapscan = 'off'; SET LOCAL jit = 'off'

-- name: bounds_of_publishers
-- A publisher that is paused or cut off releases the sequence's row. It gives up early if another session has locked
-- the table, so that other feeds get its connection, but after deadlock_timeout (one second by default): PostgreSQL
-- detects two movers that wait for each other before one of them gives up.
SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '120s'

-- name: begin_publish
-- A statement for each setting: for fifteen settings that takes 9 µs less of the server's CPU than one statement for
-- all. Such transactions run hundreds of times a second.
{{template "writing"}}; {{template "durable"}}; {{template "formats"}}; {{template "by_key"}};
{{template "bounds_of_publishers"}}

-- name: begin_move
-- The same settings. lock_timeout also bounds the waits of movers for each other.
{{template "writing"}}; {{template "durable"}}; {{template "formats"}}; {{template "by_key"}};
{{template "bounds_of_publishers"}}

-- name: formats_at_once
-- The same settings by one statement, for transactions that are rare. An idle process renews its leases, and these
-- statements must not dominate what a server counts and logs. Back-fill follows the index of the key: with the
-- statistics of a table that was almost empty, every batch would read and sort the whole table. Hash joins are allowed,
-- for repairs.
SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
  set_config('IntervalStyle', 'iso_8601', true), set_config('extra_float_digits', '1', true),
  set_config('bytea_output', 'hex', true), set_config('row_security', 'off', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true), set_config('idle_in_transaction_session_timeout', '10s', true),
  set_config('lock_timeout', '30s', true)

-- name: begin_record
{{template "writing"}}; {{template "durable"}}; {{template "formats_at_once"}},
  set_config('statement_timeout', '120s', true)

-- name: begin_repair
-- How long a statement takes depends on the size of the user's table.
{{template "writing"}}; {{template "durable"}}; {{template "formats_at_once"}},
  set_config('statement_timeout', '0', true)

-- name: begin_consume
-- Nothing that would affect the statements of a consumer's handler.
{{template "writing"}}; {{template "durable"}}

-- name: begin_read
-- A page gives up early if another session has locked the table, so that other feeds get its connection.
{{template "formats"}}; {{template "by_key"}}; SET LOCAL lock_timeout = '2s'

-- name: begin_check
-- Without a query, because the first query determines the snapshot.
{{template "formats"}}

-- name: durability
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')

-- name: stamp
-- The snapshot of a statement that begins now says which transactions have ended. It reads no table, so it cannot have
-- a bad plan. The snapshot of a standby does not list which transactions are under way, so the text is empty there.
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot() AS text) END

-- name: identity_of_primary
-- The system identifier of the cluster, the timeline, the oid of the database, and the oid of the table of sequences.
-- Every promotion and every recovery to a point in time begins a new timeline. A dump that is restored makes the table
-- again, with another oid.
'system ' || (SELECT system_identifier FROM pg_control_system()) ||
  ', timeline ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) ||
  ', database ' || (SELECT oid FROM pg_database WHERE datname = current_database()) ||
  ', table ' || {{literal (table "sequences")}}::regclass::oid

-- name: identity
-- The functions that only a primary accepts are not called on a standby.
CASE WHEN NOT pg_is_in_recovery() THEN {{template "identity_of_primary"}} END

-- name: ask_identity
SELECT {{template "identity" .}}

-- name: ask_first
-- The settings that a query for one row of one table needs, and the query, in one message. The server runs the message
-- as one transaction, and plans it each time. A plan that was kept from a time when nothing waited, or with statistics
-- of that time, would read and sort everything that waits. It is one statement because it is sent many times a second.
-- If the session's default is SERIALIZABLE, the query would take part in predicate locking. PostgreSQL would then fail
-- a writer that records a change after the query, and the query itself.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
  set_config('jit', 'off', true); :query

-- name: lock_sequence
-- This row lock makes positions visible in increasing order: a transaction that has the lock sees all positions that
-- were given before.
SELECT value, version, COALESCE(term, 0), updated_at, {{now}}, {{template "identity_of_primary"}}
FROM {{table "sequences"}} WHERE name = :feed FOR UPDATE

-- name: oldest
-- It locks nothing. In READ COMMITTED a statement after the lock has a new snapshot, which shows everything that the
-- previous publisher has committed.
SELECT :columns :range ORDER BY seq LIMIT :limit

-- name: oldest_of_ranges
-- Each range is scanned by itself: with one condition for all ranges, one scan would filter the table from its
-- beginning.
(:ranges) ORDER BY seq LIMIT :limit

-- name: assign_positions
-- One statement. The keys stay in the server. It does not look up former positions. All changes are of kind 0, so a
-- hidden key keeps its position and stays hidden. ON CONFLICT reads from the conflicting row whether the key is hidden.
INSERT INTO {{positions}} AS p ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{template "last_of_key" .}}{{key "c"}}, CAST(:base AS bigint) + j.place, :shard, :bucket,
  CASE WHEN {{one_of_row "t"}} IS NULL THEN 1 ELSE 0 END, 0, CAST(:published AS bigint)
FROM {{template "assigned" .}}
WHERE {{template "known" .}}
{{template "order_of_keys" .}}
ON CONFLICT ({{key}}) DO UPDATE SET
  feed_sync_id = CASE WHEN p.hidden = 1 THEN p.feed_sync_id ELSE excluded.feed_sync_id END,
  published_at = CASE WHEN p.hidden = 1 THEN p.published_at ELSE excluded.published_at END,
  deleted = excluded.deleted
{{- if .OwnShard}},
  shard = CASE WHEN {{template "shard_changes" .}} THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN {{template "shard_changes" .}} THEN excluded.bucket ELSE p.bucket END{{end}}

-- name: shard_changes
-- A key keeps its first data shard, also if its row holds another one later. A key without a data shard gets the first
-- one that its row holds. If rows hold positions, or have held them, the row's column is the shard, and a hidden key
-- keeps its entry.
{{if .RowShards}}p.hidden = 0{{else}}p.shard < 0{{end}}

-- name: shard_changes_by_kind
{{if .RowShards}}p.feed_sync_id <> excluded.feed_sync_id{{else}}p.shard < 0{{end}}

-- name: last_of_key
-- If two different texts can be one key (citext, ICU collations, numeric), the last one counts: one statement cannot
-- upsert a row twice.
{{if not .ExactKey}}DISTINCT ON ({{key "c"}}) {{end}}

-- name: order_of_keys
{{if .ExactKey}}ORDER BY j.place{{else}}ORDER BY {{key "c"}}, j.place DESC{{end}}

-- name: assigned
-- The assignments are arrays, written as text that every driver can send.
unnest(:lists) WITH ORDINALITY AS j(:names, place)
CROSS JOIN LATERAL (SELECT {{key "c"}} FROM {{changes}} c WHERE c.seq = j.seq OFFSET 0) c
LEFT JOIN LATERAL (SELECT {{one_of_row "t"}}{{if .OwnShard}}, {{own_shard "t"}} AS rowfeed_shard{{end}}
  FROM {{source}} t WHERE {{row_of "t" "c"}} OFFSET 0) t ON true

-- name: numbers
CAST(CAST(:numbers AS text) AS bigint[])

-- name: known
-- A key gets a position if it has a row or a position. If rows hold their positions, no query can tell whether a key
-- without a row was ever shown, and it always gets a tombstone. Without OFFSET, the planner may read all positions into
-- a hash table if the statistics say that there are few.
{{if .ReadsRows}}1 = 1{{else}}{{one_of_row "t"}} IS NOT NULL OR EXISTS (SELECT 1 FROM {{positions}} old
  WHERE {{same_key "old" "c"}} OFFSET 0){{end}}

-- name: assign_positions_by_kind
-- Some changes have another kind than 0, changed: 1 republished, 2 unpublished, 3 placed. The former position of each
-- key is looked up.
INSERT INTO {{positions}} AS p ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
SELECT {{template "last_of_key" .}}{{key "c"}},
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.feed_sync_id ELSE CAST(:base AS bigint) + j.place END,
  :shard, :bucket, CASE WHEN {{one_of_row "t"}} IS NULL THEN 1 ELSE 0 END,
  CASE j.kind WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE COALESCE(old.hidden, 0) END,
  CASE WHEN old.hidden = 1 AND j.kind = 0 THEN old.published_at ELSE CAST(:published AS bigint) END
FROM {{template "assigned" .}}
LEFT JOIN LATERAL (SELECT {{one_of_key "old"}}, old.feed_sync_id, old.hidden, old.published_at FROM {{positions}} old
  WHERE {{same_key "old" "c"}} OFFSET 0) old ON true
WHERE {{if .ReadsRows}}1 = 1{{else}}{{one_of_row "t"}} IS NOT NULL OR {{one_of_key "old"}} IS NOT NULL{{end}}
{{template "order_of_keys" .}}
ON CONFLICT ({{key}}) DO UPDATE SET feed_sync_id = excluded.feed_sync_id, published_at = excluded.published_at,
  deleted = excluded.deleted, hidden = excluded.hidden
{{- if .OwnShard}},
  shard = CASE WHEN {{template "shard_changes_by_kind" .}} THEN excluded.shard ELSE p.shard END,
  bucket = CASE WHEN {{template "shard_changes_by_kind" .}} THEN excluded.bucket ELSE p.bucket END{{end}}

-- name: delete_run
-- A row that is not visible to a DELETE is not deleted.
DELETE FROM {{changes}} WHERE seq BETWEEN :first AND :last

-- name: delete_changes
DELETE FROM {{changes}} WHERE seq = ANY (CAST(CAST(:seqs AS text) AS bigint[]))

-- name: publish_batch
-- A whole pass in one statement, with one snapshot that is taken after the lock. Neither changes nor seqs are sent to
-- the client, except the seqs that were deleted. The statement finds rows by keys: the CTEs, the arrays and the LATERAL
-- joins leave the planner no other way. If the changes have different kinds, nothing is written.
--
-- The limit is part of the text. As a parameter it makes the server plan the statement for each execution, because a
-- plan for the known value looks better. That costs as much as publishing fifty keys.
WITH batch AS MATERIALIZED (:oldest),
asked AS MATERIALIZED (SELECT min(kind) AS kind FROM batch HAVING min(kind) = max(kind)),
gone AS (DELETE FROM {{changes}} WHERE seq = ANY (ARRAY(SELECT seq FROM batch WHERE EXISTS (SELECT 1 FROM asked)))
  RETURNING seq, {{key}}),
keys AS (SELECT {{key}}, max(seq) AS seq FROM gone GROUP BY {{key}}),
placed AS (INSERT INTO {{positions}} AS p ({{key}}, feed_sync_id, shard, bucket, deleted, hidden, published_at)
  SELECT {{key "c"}}, CAST(:base AS bigint) + row_number() OVER (ORDER BY c.seq), 0, 0,
    CASE WHEN {{one_of_row "t"}} IS NULL THEN 1 ELSE 0 END,
    CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE 0 END, CAST(:published AS bigint)
  FROM keys c
  LEFT JOIN LATERAL (SELECT {{one_of_row "t"}} FROM {{source}} t WHERE {{row_of "t" "c"}} OFFSET 0) t ON true
  WHERE {{template "known" .}}
  ON CONFLICT ({{key}}) DO UPDATE SET
    feed_sync_id = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.feed_sync_id
      ELSE excluded.feed_sync_id END,
    published_at = CASE WHEN p.hidden = 1 AND (SELECT kind FROM asked) = 0 THEN p.published_at
      ELSE excluded.published_at END,
    deleted = excluded.deleted,
    hidden = CASE (SELECT kind FROM asked) WHEN 2 THEN 1 WHEN 1 THEN 0 ELSE p.hidden END),
advanced AS (UPDATE {{table "sequences"}} SET value = CAST(:base AS bigint) + (SELECT count(*) FROM keys),
    term = :term, version = version + 1, updated_at = :published
  WHERE name = :feed AND version = :version
    AND EXISTS (SELECT 1 FROM {{table "feeds"}}
      WHERE name = :feed AND generation = :generation AND data_shards = 1)
    AND EXISTS (SELECT 1 FROM asked) RETURNING 1)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM asked) > 0, (SELECT count(*) FROM gone),
  (SELECT count(*) FROM keys), (SELECT count(*) FROM advanced) > 0,
  array_to_string(ARRAY(SELECT seq FROM gone ORDER BY seq), ',')

-- name: act_ids
SELECT id FROM [rowfeed_audit] WHERE id > :after ORDER BY id OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: acts
SELECT id, at, actor, act, object, detail, outcome FROM [rowfeed_audit] ORDER BY id DESC OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: acts_before
SELECT id, at, actor, act, object, detail, outcome FROM [rowfeed_audit]
WHERE id < :before ORDER BY id DESC OFFSET 0 ROWS FETCH NEXT :count ROWS ONLY

-- name: add_token
INSERT INTO [rowfeed_tokens] (name, sha256, grants, [view], created_at, expires_at) SELECT :name, :hash, :grants, :view, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :lifetime WHERE NOT EXISTS (SELECT 1 FROM [rowfeed_tokens] WITH (UPDLOCK, SERIALIZABLE) WHERE name = :name)

-- name: begin_act
INSERT INTO [rowfeed_audit] (mark, at, actor, act, object, detail, outcome)
VALUES (:mark, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), :actor, :act, :object, :detail, :outcome)

-- name: count_tokens
SELECT count(*) FROM [rowfeed_tokens] WHERE name = :name

-- name: end_act
UPDATE [rowfeed_audit] SET outcome = :outcome WHERE id = :id

-- name: find_act
SELECT id FROM [rowfeed_audit] WHERE mark = :mark ORDER BY id DESC OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY

-- name: list_tokens
SELECT name, sha256, grants, [view], created_at, expires_at, revoked_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_tokens]
ORDER BY name

-- name: no_failure
failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL

-- name: pause_consumers
UPDATE [rowfeed_consumers] SET paused = :paused, version = version + 1 WHERE :which

-- name: pause_cursors
UPDATE [rowfeed_cursors] SET paused = :paused, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE :which

-- name: paused_shards
SELECT shard FROM [rowfeed_cursors] WHERE :which AND paused <> 0 ORDER BY shard

-- name: purge_acts
DELETE FROM [rowfeed_audit] WHERE id >= :first AND id <= :last AND at < :before

-- name: revoke_token
UPDATE [rowfeed_tokens] SET revoked_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) WHERE name = :name AND revoked_at IS NULL

-- name: seek
UPDATE [rowfeed_cursors]
SET value = :value, generation = :generation, version = version + 1, failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL, updated_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())
WHERE :which

-- name: shard_counts
SELECT consumer, feed, shard_count FROM [rowfeed_cursors]
UNION SELECT consumer, feed, shard_count FROM [rowfeed_consumers]

-- name: token
SELECT name, sha256, grants, [view], created_at, expires_at, revoked_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_tokens]
WHERE sha256 = :hash

-- name: tokens
SELECT name, sha256, grants, [view], created_at, expires_at, revoked_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_tokens]
WHERE sha256 IN (:hashes)


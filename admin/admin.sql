-- Tokens, the audit log, and what operators change of consumers. Tokens and the log are read and written by the command
-- and by servers, on the database's clock. Package consume has the condition :which, and the other statements on
-- cursors.

-- name: tokens
SELECT name, sha256, grants, {{quote "view"}}, created_at, expires_at, revoked_at, {{now}} FROM {{table "tokens"}}
WHERE sha256 IN (:hashes)

-- name: token
-- The database looks up the hash, whose beginning a client cannot choose. So the time of the answer tells nothing.
SELECT name, sha256, grants, {{quote "view"}}, created_at, expires_at, revoked_at, {{now}} FROM {{table "tokens"}}
WHERE sha256 = :hash

-- name: list_tokens
SELECT name, sha256, grants, {{quote "view"}}, created_at, expires_at, revoked_at, {{now}} FROM {{table "tokens"}}
ORDER BY name

-- name: add_token
{{insert_new "tokens" (print `name, sha256, grants, ` (quote "view") `, created_at, expires_at`)
  (print ":name, :hash, :grants, :view, " now ", " now " + :lifetime") "name"}}

-- name: revoke_token
UPDATE {{table "tokens"}} SET revoked_at = {{now}} WHERE name = :name AND revoked_at IS NULL

-- name: count_tokens
SELECT count(*) FROM {{table "tokens"}} WHERE name = :name

-- name: begin_act
INSERT INTO {{table "audit"}} (mark, at, actor, act, object, detail, outcome)
VALUES (:mark, {{now}}, :actor, :act, :object, :detail, :outcome)

-- name: find_act
-- The record is the newest or nearly the newest, so reading backwards needs no index.
SELECT id FROM {{table "audit"}} WHERE mark = :mark ORDER BY id DESC {{limit "1"}}

-- name: end_act
UPDATE {{table "audit"}} SET outcome = :outcome WHERE id = :id

-- name: acts
SELECT id, at, actor, act, object, detail, outcome FROM {{table "audit"}} ORDER BY id DESC {{limit ":count"}}

-- name: acts_before
SELECT id, at, actor, act, object, detail, outcome FROM {{table "audit"}}
WHERE id < :before ORDER BY id DESC {{limit ":count"}}


-- name: act_ids
-- Ids grow with time, so a batch without an old act is the last one to read.
SELECT id FROM {{table "audit"}} WHERE id > :after ORDER BY id {{limit ":count"}}

-- name: purge_acts
DELETE FROM {{table "audit"}} WHERE id >= :first AND id <= :last AND at < :before

-- name: paused_shards
SELECT shard FROM {{table "cursors"}} WHERE :which AND paused <> 0 ORDER BY shard

-- name: pause_consumers
-- New shards get this state.
UPDATE {{table "consumers"}} SET paused = :paused, version = version + 1 WHERE :which

-- name: pause_cursors
UPDATE {{table "cursors"}} SET paused = :paused, version = version + 1, {{template "no_failure"}}, updated_at = {{now}}
WHERE :which

-- name: seek
UPDATE {{table "cursors"}}
SET value = :value, generation = :generation, version = version + 1, {{template "no_failure"}}, updated_at = {{now}}
WHERE :which

-- name: no_failure
failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL

-- name: shard_counts
SELECT consumer, feed, shard_count FROM {{table "cursors"}}
UNION SELECT consumer, feed, shard_count FROM {{table "consumers"}}

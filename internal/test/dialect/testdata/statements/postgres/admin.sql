-- name: act_ids
SELECT id FROM "rowfeed_audit" WHERE id > :after ORDER BY id LIMIT :count

-- name: acts
SELECT id, at, actor, act, object, detail, outcome FROM "rowfeed_audit" ORDER BY id DESC LIMIT :count

-- name: acts_before
SELECT id, at, actor, act, object, detail, outcome FROM "rowfeed_audit"
WHERE id < :before ORDER BY id DESC LIMIT :count

-- name: begin_act
INSERT INTO "rowfeed_audit" (mark, at, actor, act, object, detail, outcome)
VALUES (:mark, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, :actor, :act, :object, :detail, :outcome)

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: count_tokens
SELECT count(*) FROM "rowfeed_tokens" WHERE name = :name

-- name: end_act
UPDATE "rowfeed_audit" SET outcome = :outcome WHERE id = :id

-- name: find_act
SELECT id FROM "rowfeed_audit" WHERE mark = :mark ORDER BY id DESC LIMIT 1

-- name: list_tokens
SELECT name, sha256, grants, view, created_at, expires_at, revoked_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_tokens"
ORDER BY name

-- name: purge_acts
DELETE FROM "rowfeed_audit" WHERE id >= :first AND id <= :last AND at < :before

-- name: revoke_token
UPDATE "rowfeed_tokens" SET revoked_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint WHERE name = :name AND revoked_at IS NULL

-- name: token
SELECT name, sha256, grants, view, created_at, expires_at, revoked_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_tokens"
WHERE sha256 = :hash

-- name: tokens
SELECT name, sha256, grants, view, created_at, expires_at, revoked_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_tokens"
WHERE sha256 IN


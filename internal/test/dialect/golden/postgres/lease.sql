-- name: acquire
UPDATE "rowfeed_leases"
SET owner = :owner, epoch = :epoch, expires_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + :ttl, acquired_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, renewals = 0
WHERE name = :name AND epoch = :seen AND (expires_at IS NULL OR expires_at <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)

-- name: acquire_first
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals)
VALUES (:name, :owner, :epoch, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + :ttl, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0)

-- name: assert
UPDATE "rowfeed_leases" SET renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch AND expires_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: claim
name = :name AND owner = :owner AND epoch = :epoch

-- name: group
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_leases" WHERE name >= :first AND name < :beyond

-- name: lease
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_leases" WHERE name = :name

-- name: leases
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_leases"

-- name: list
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_leases" ORDER BY name

-- name: release
UPDATE "rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch

-- name: renew
UPDATE "rowfeed_leases" SET expires_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + :ttl, renewals = renewals + 1
WHERE expires_at > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND name IN (:names) AND (:claims)

-- name: which
SELECT name, owner, epoch, acquired_at, renewals, expires_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM "rowfeed_leases" WHERE :condition


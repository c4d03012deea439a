-- name: acquire
UPDATE "rowfeed_leases"
SET owner = :owner, epoch = :epoch, expires_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + :ttl, acquired_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, renewals = 0
WHERE name = :name AND epoch = :seen AND (expires_at IS NULL OR expires_at <= CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)

-- name: acquire_first
INSERT INTO "rowfeed_leases" (name, owner, epoch, expires_at, acquired_at, renewals)
VALUES (:name, :owner, :epoch, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + :ttl, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000, 0)

-- name: assert
UPDATE "rowfeed_leases" SET renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch AND expires_at > CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000

-- name: claim
name = :name AND owner = :owner AND epoch = :epoch

-- name: group
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name >= :first AND name < :beyond

-- name: lease
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE name = :name

-- name: leases
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases"

-- name: list
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" ORDER BY name

-- name: release
UPDATE "rowfeed_leases" SET owner = '', expires_at = NULL, renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch

-- name: renew
UPDATE "rowfeed_leases" SET expires_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 + :ttl, renewals = renewals + 1
WHERE expires_at > CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 AND name IN (:names) AND (:claims)

-- name: which
SELECT name, owner, epoch, acquired_at, renewals, expires_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000 FROM "rowfeed_leases" WHERE :condition


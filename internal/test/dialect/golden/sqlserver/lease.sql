-- name: acquire
UPDATE [rowfeed_leases]
SET owner = :owner, epoch = :epoch, expires_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :ttl, acquired_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), renewals = 0
WHERE name = :name AND epoch = :seen AND (expires_at IS NULL OR expires_at <= DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()))

-- name: acquire_first
INSERT INTO [rowfeed_leases] (name, owner, epoch, expires_at, acquired_at, renewals)
VALUES (:name, :owner, :epoch, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :ttl, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()), 0)

-- name: assert
UPDATE [rowfeed_leases] SET renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch AND expires_at > DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME())

-- name: claim
name = :name AND owner = :owner AND epoch = :epoch

-- name: group
SELECT name, owner, epoch, acquired_at, renewals, expires_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_leases] WHERE name >= :first AND name < :beyond

-- name: lease
SELECT name, owner, epoch, acquired_at, renewals, expires_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_leases] WHERE name = :name

-- name: leases
SELECT name, owner, epoch, acquired_at, renewals, expires_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_leases]

-- name: list
SELECT name, owner, epoch, acquired_at, renewals, expires_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_leases] ORDER BY name

-- name: release
UPDATE [rowfeed_leases] SET owner = '', expires_at = NULL, renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch

-- name: renew
UPDATE [rowfeed_leases] SET expires_at = DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) + :ttl, renewals = renewals + 1
WHERE expires_at > DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) AND name IN (:names) AND (:claims)

-- name: which
SELECT name, owner, epoch, acquired_at, renewals, expires_at, DATEDIFF_BIG(microsecond, '1970-01-01', SYSUTCDATETIME()) FROM [rowfeed_leases] WHERE :condition


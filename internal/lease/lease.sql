-- Leases are rows of one table. Each statement reads the database's clock, never the process's. A claim is recognized
-- by name, owner and epoch.

-- name: leases
SELECT name, owner, epoch, acquired_at, renewals, expires_at, {{now}} FROM {{table "leases"}}

-- name: lease
{{template "leases"}} WHERE name = :name

-- name: list
{{template "leases"}} ORDER BY name

-- name: which
-- Names compare by their bytes in every database.
{{template "leases"}} WHERE :condition

-- name: group
{{template "leases"}} WHERE name >= :first AND name < :beyond

-- name: acquire_first
-- There is no row yet. Of two of these statements one fails.
INSERT INTO {{table "leases"}} (name, owner, epoch, expires_at, acquired_at, renewals)
VALUES (:name, :owner, :epoch, {{now}} + :ttl, {{now}}, 0)

-- name: acquire
-- Compare and set: the epoch is the one that was read, and the claim of that epoch is over.
UPDATE {{table "leases"}}
SET owner = :owner, epoch = :epoch, expires_at = {{now}} + :ttl, acquired_at = {{now}}, renewals = 0
WHERE name = :name AND epoch = :seen AND (expires_at IS NULL OR expires_at <= {{now}})

-- name: assert
-- A write, because a plain read may see an old snapshot, and SQLite has no lock but that for writing.
UPDATE {{table "leases"}} SET renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch AND expires_at > {{now}}

-- name: renew
-- The list of names lets the database find the rows by their key. Without it PostgreSQL plans a scan or a bitmap, whose
-- cost under these transactions' settings starts its JIT compiler. The column renewals makes every renewal change its
-- row, because MySQL counts only rows that have changed.
UPDATE {{table "leases"}} SET expires_at = {{now}} + :ttl, renewals = renewals + 1
WHERE expires_at > {{now}} AND name IN (:names) AND (:claims)

-- name: claim
-- One of the claims of a renewal.
name = :name AND owner = :owner AND epoch = :epoch

-- name: release
-- The row keeps its epoch, which must never come again.
UPDATE {{table "leases"}} SET owner = '', expires_at = NULL, renewals = renewals + 1
WHERE name = :name AND owner = :owner AND epoch = :epoch

-- Rights on rowfeed's own objects. A principal is a user or a role of the database.

-- name: grant
GRANT :privilege ON OBJECT:::object TO :login

-- name: revoke
REVOKE :privilege ON OBJECT:::object FROM :login

-- name: account
-- The name as the catalog spells it: on most servers names are equal whatever their case.
SELECT p.name FROM sys.database_principals AS p WHERE p.name = :name

-- name: principal
SELECT CASE WHEN DATABASE_PRINCIPAL_ID(:name) IS NULL THEN 0 ELSE 1 END

-- name: owns
SELECT CASE WHEN OBJECTPROPERTY(OBJECT_ID(:object), N'OwnerId') = DATABASE_PRINCIPAL_ID(:name) THEN 1 ELSE 0 END

-- name: visible
-- Without VIEW DEFINITION, the catalog hides the text of triggers and procedures, and objects without any right.
SELECT COALESCE(HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'VIEW DEFINITION'), 0), USER_NAME()

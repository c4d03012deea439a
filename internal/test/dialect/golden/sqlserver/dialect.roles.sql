-- name: account
SELECT p.name FROM sys.database_principals AS p WHERE p.name = :name

-- name: grant
GRANT :privilege ON OBJECT:::object TO :login

-- name: owns
SELECT CASE WHEN OBJECTPROPERTY(OBJECT_ID(:object), N'OwnerId') = DATABASE_PRINCIPAL_ID(:name) THEN 1 ELSE 0 END

-- name: principal
SELECT CASE WHEN DATABASE_PRINCIPAL_ID(:name) IS NULL THEN 0 ELSE 1 END

-- name: revoke
REVOKE :privilege ON OBJECT:::object FROM :login

-- name: visible
SELECT COALESCE(HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'VIEW DEFINITION'), 0), USER_NAME()


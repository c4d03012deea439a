-- Rights of logins. A role's name is given as in GRANT: with quotes if it needs them.

-- name: role
SELECT COALESCE(to_regrole(:login)::oid::bigint, 0)

-- name: owns_table
-- PostgreSQL lists an owner's own rights, and REVOKE removes them like other rights.
SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass(:object) AND relowner = to_regrole(:login))

-- name: owns_function
SELECT EXISTS (SELECT 1 FROM pg_proc WHERE oid = to_regprocedure(:object) AND proowner = to_regrole(:login))

-- name: has_table
SELECT to_regclass(:object) IS NOT NULL

-- name: has_function
SELECT to_regprocedure(:object) IS NOT NULL

-- name: grant
GRANT :right TO :login

-- name: revoke
REVOKE :right FROM :login

-- name: may_use_table
-- A GRANT by a role that may not grant is only a warning of the server, so the right is looked up afterwards.
SELECT has_schema_privilege(:role::bigint::oid, c.relnamespace, 'USAGE'),
  has_table_privilege(:role::bigint::oid, c.oid, :privilege) FROM pg_class c WHERE c.oid = to_regclass(:object)

-- name: may_use_column
SELECT has_schema_privilege(:role::bigint::oid, c.relnamespace, 'USAGE'),
  has_column_privilege(:role::bigint::oid, c.oid, :column, :privilege) FROM pg_class c WHERE c.oid = to_regclass(:object)

-- name: may_use_function
SELECT has_schema_privilege(:role::bigint::oid, p.pronamespace, 'USAGE'),
  has_function_privilege(:role::bigint::oid, p.oid, :privilege) FROM pg_proc p WHERE p.oid = to_regprocedure(:object)

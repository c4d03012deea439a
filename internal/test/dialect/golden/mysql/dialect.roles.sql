-- name: account_hosts
SELECT RTRIM(Host) FROM mysql.user
WHERE RTRIM(User) = :user AND (:host LIKE RTRIM(Host) OR LOCATE('/', Host) > 0)

-- name: grant
GRANT :right TO :login

-- name: has_right
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right) OR
  EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right
      AND :schema LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR
  EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right AND TABLE_SCHEMA = :schema AND TABLE_NAME = :table) OR
  EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right AND TABLE_SCHEMA = :schema AND TABLE_NAME = :table)

-- name: has_roles
SELECT EXISTS (SELECT 1 FROM information_schema.APPLICABLE_ROLES WHERE ROLE_NAME IN (:roles))

-- name: is_own_role
SELECT EXISTS (SELECT 1 FROM information_schema.APPLICABLE_ROLES
  WHERE BINARY ROLE_NAME = :user AND 0 /*M!100005 + 1 */)

-- name: is_role
SELECT EXISTS (SELECT 1 FROM mysql.user WHERE User = :user AND Host = '' AND is_role = 'Y')

-- name: login
SELECT CURRENT_USER()

-- name: login_may_have_by_role
SELECT EXISTS (SELECT 1 FROM /*!80000 information_schema.APPLICABLE_ROLES *//*M!100005
  (SELECT 1 FROM DUAL WHERE 1 = 0) none */)
  /*!80000 OR @@GLOBAL.mandatory_roles <> '' */

-- name: make_no_account
SET @rowfeed_grant = NULL /*M!100200 ,
  SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'NO_AUTO_CREATE_USER') */

-- name: may_have_by_role
SELECT EXISTS (SELECT 1 FROM (SELECT CAST(:user AS BINARY) AS u, :host AS h) a JOIN mysql./*!80000
  role_edges r ON CAST(RTRIM(r.TO_USER) AS BINARY) = a.u *//*M!100005
  roles_mapping r ON a.h = '' AND RTRIM(r.Host) = '' AND CAST(RTRIM(r.User) AS BINARY) = a.u */)
  /*!80000 OR @@GLOBAL.mandatory_roles <> '' */

-- name: may_make
SELECT CURRENT_USER() IN (:accounts),
  EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('CREATE', 'TRIGGER')) OR
  EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
    WHERE PRIVILEGE_TYPE IN ('CREATE', 'TRIGGER') AND DATABASE() LIKE TABLE_SCHEMA) OR
  EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER')

-- name: revoke
REVOKE :right FROM :login

-- name: rights
SELECT :columns

-- name: shown
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (:grantees))

-- name: shown_to_role
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE NOT GRANTEE IN (:grantees))


-- Accounts: which exist, and which rights they have.
--
-- A login that may read the tables of the schema mysql finds all rights in information_schema. Other logins find only
-- their own rights there.

-- name: login
SELECT CURRENT_USER()

-- name: is_role
-- A role of MariaDB has no host. MySQL does not have the column is_role.
SELECT EXISTS (SELECT 1 FROM mysql.user WHERE User = :user AND Host = '' AND is_role = 'Y')

-- name: is_own_role
-- It tells whether a name is a role of this login. It is for logins that may not read the list of accounts.
SELECT EXISTS (SELECT 1 FROM information_schema.APPLICABLE_ROLES
  WHERE BINARY ROLE_NAME = :user AND 0 /*M!100005 + 1 */)

-- name: may_make
-- It tells whether this login is one of some accounts, and whether it may make tables in the database or see triggers.
-- TABLE_SCHEMA of a right is a pattern of names.
SELECT CURRENT_USER() IN (:accounts),
  EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('CREATE', 'TRIGGER')) OR
  EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
    WHERE PRIVILEGE_TYPE IN ('CREATE', 'TRIGGER') AND DATABASE() LIKE TABLE_SCHEMA) OR
  EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER')

-- name: has_roles
SELECT EXISTS (SELECT 1 FROM information_schema.APPLICABLE_ROLES WHERE ROLE_NAME IN (:roles))

-- name: make_no_account
-- an account that is not there is not made
--
-- Without NO_AUTO_CREATE_USER, MariaDB's GRANT may make an account that does not exist, without a password.
SET @rowfeed_grant = NULL /*M!100200 ,
  SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'NO_AUTO_CREATE_USER') */

-- name: grant
GRANT :right TO :login

-- name: revoke
REVOKE :right FROM :login

-- name: account_hosts
-- The server finds accounts by the user's name, and by a pattern that matches the host. RTRIM because of
-- PAD_CHAR_TO_FULL_LENGTH.
SELECT RTRIM(Host) FROM mysql.user
WHERE RTRIM(User) = :user AND (:host LIKE RTRIM(Host) OR LOCATE('/', Host) > 0)

-- name: shown
-- It tells whether the server shows this login the rights of an account: it then shows at least one row, with USAGE.
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE GRANTEE IN (:grantees))

-- name: shown_to_role
-- A role of MariaDB may have no row. Any row of another account tells that all rights are shown.
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE NOT GRANTEE IN (:grantees))

-- name: has_right
-- Whether one of the grantees has a right on a table. TABLE_SCHEMA of a database's right is a pattern of names; without
-- its backslashes it matches more names.
EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right) OR
  EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right
      AND :schema LIKE REPLACE(TABLE_SCHEMA, CHAR(92 USING utf8mb4), '')) OR
  EXISTS (SELECT 1 FROM information_schema.TABLE_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right AND TABLE_SCHEMA = :schema AND TABLE_NAME = :table) OR
  EXISTS (SELECT 1 FROM information_schema.COLUMN_PRIVILEGES
    WHERE GRANTEE IN (:grantees) AND PRIVILEGE_TYPE = :right AND TABLE_SCHEMA = :schema AND TABLE_NAME = :table)

-- name: rights
SELECT :columns

-- name: may_have_by_role
-- Whether an account may have rights by roles. MySQL counts the account's default roles. MariaDB counts only roles that
-- were granted to a role which is itself the definer.
SELECT EXISTS (SELECT 1 FROM (SELECT CAST(:user AS BINARY) AS u, :host AS h) a JOIN mysql./*!80000
  role_edges r ON CAST(RTRIM(r.TO_USER) AS BINARY) = a.u *//*M!100005
  roles_mapping r ON a.h = '' AND RTRIM(r.Host) = '' AND CAST(RTRIM(r.User) AS BINARY) = a.u */)
  /*!80000 OR @@GLOBAL.mandatory_roles <> '' */

-- name: login_may_have_by_role
-- The same for this login.
SELECT EXISTS (SELECT 1 FROM /*!80000 information_schema.APPLICABLE_ROLES *//*M!100005
  (SELECT 1 FROM DUAL WHERE 1 = 0) none */)
  /*!80000 OR @@GLOBAL.mandatory_roles <> '' */

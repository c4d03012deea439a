package testdb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
)

// lentServer returns the URL of a database of the server that ROWFEED_TEST_SQLSERVER names. For "" it is the database
// that always exists.
func lentServer(database string) (string, error) {
	u, err := url.Parse(os.Getenv("ROWFEED_TEST_SQLSERVER"))
	if err != nil || u.Scheme != "sqlserver" || u.Host == "" {
		return "", errors.New("ROWFEED_TEST_SQLSERVER names no server: sqlserver://sa:password@host:1433")
	}
	if database == "" {
		database = "master"
	}
	query := u.Query()
	if query.Has("database") { // otherwise the path is no instance
		query.Set("database", database)
	} else {
		u.Path = "/" + database
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// sqlServerConnector drops the parameters of other engines' drivers. A session begins at READ COMMITTED, because the
// reset between two users of a connection keeps the level of the first.
func sqlServerConnector(u *url.URL, params []string) (driver.Connector, error) {
	query := u.Query()
	if !query.Has("database") {
		query.Set("database", strings.TrimPrefix(u.Path, "/"))
		u.Path = ""
	}
	for _, p := range params {
		if name, value, _ := strings.Cut(p, "="); name != "multiStatements" && !strings.HasPrefix(name, "_") {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	connector, err := mssql.NewConnector(u.String())
	if err != nil {
		return nil, errors.New("its parameters cannot be used") // the driver's text may show the password
	}
	connector.SessionInitSQL = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
	return connector, nil
}

// dropSQLServer drops a database, and ends all sessions in it.
func (s *Server) dropSQLServer(name string) error {
	return s.administer(fmt.Sprintf("IF DB_ID(N'%[1]s') IS NOT NULL BEGIN "+
		"ALTER DATABASE %[1]s SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE %[1]s END", name))
}

// backupSQLServer is Backup. The server writes the copy into its own folder of backups.
func (d *Database) backupSQLServer(t testing.TB) (restore func()) {
	t.Helper()
	file := d.Name + ".bak"
	if err := d.server.administer(fmt.Sprintf("BACKUP DATABASE %s TO DISK = N'%s' WITH COPY_ONLY, INIT", d.Name,
		file)); err != nil {
		t.Fatalf("testdb: back up %s: %v", d.Name, err)
	}
	return func() {
		t.Helper()
		if err := d.server.administer(fmt.Sprintf("ALTER DATABASE %[1]s SET SINGLE_USER WITH ROLLBACK IMMEDIATE; "+
			"RESTORE DATABASE %[1]s FROM DISK = N'%[2]s' WITH REPLACE; ALTER DATABASE %[1]s SET MULTI_USER",
			d.Name, file)); err != nil {
			t.Fatalf("testdb: restore %s: %v", d.Name, err)
		}
		d.Reconnect()
	}
}

// sqlServerDump reads the schema from the catalog views. Names take the place of numbers.
var sqlServerDump = []dumpQuery{
	{"schemas", `SELECT s.name, USER_NAME(s.principal_id) FROM sys.schemas AS s WHERE s.schema_id BETWEEN 1 AND 16383
		ORDER BY 1`},
	{"objects", `SELECT SCHEMA_NAME(o.schema_id), o.name, RTRIM(o.type), OBJECT_NAME(o.parent_object_id),
			USER_NAME(o.principal_id), m.definition, m.uses_ansi_nulls, m.uses_quoted_identifier,
			USER_NAME(m.execute_as_principal_id), t.lock_escalation_desc
		FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
		LEFT JOIN sys.tables AS t ON t.object_id = o.object_id
		WHERE o.is_ms_shipped = 0 AND (o.type NOT IN ('PK', 'UQ', 'D', 'C', 'F') OR ` + namedByUser + `)
		ORDER BY 1, 2`},
	{"columns", `SELECT OBJECT_SCHEMA_NAME(c.object_id), OBJECT_NAME(c.object_id), c.name, TYPE_NAME(c.user_type_id),
			c.max_length, c.precision, c.scale, c.collation_name, c.is_nullable, c.is_identity, d.definition,
			k.definition
		FROM sys.columns AS c JOIN sys.objects AS o ON o.object_id = c.object_id AND o.is_ms_shipped = 0
		LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id
		LEFT JOIN sys.computed_columns AS k ON k.object_id = c.object_id AND k.column_id = c.column_id
		ORDER BY 1, 2, 3`},
	{"indexes", `SELECT OBJECT_SCHEMA_NAME(i.object_id), OBJECT_NAME(i.object_id),
			CASE WHEN i.is_primary_key = 1 OR i.is_unique_constraint = 1 THEN N'' ELSE i.name END AS name, i.type_desc,
			i.is_unique, i.is_disabled, i.allow_page_locks, i.filter_definition,
			(SELECT STRING_AGG(CONCAT(COL_NAME(k.object_id, k.column_id), ' ', k.is_descending_key, ' ',
				k.is_included_column), ', ') WITHIN GROUP (ORDER BY k.index_column_id)
			FROM sys.index_columns AS k WHERE k.object_id = i.object_id AND k.index_id = i.index_id) AS parts
		FROM sys.indexes AS i JOIN sys.objects AS o ON o.object_id = i.object_id AND o.is_ms_shipped = 0
		ORDER BY 1, 2, 3, 9`},
	{"constraints", `SELECT OBJECT_SCHEMA_NAME(f.object_id), OBJECT_NAME(f.parent_object_id),
			OBJECT_NAME(f.referenced_object_id), f.delete_referential_action_desc, f.is_disabled
		FROM sys.foreign_keys AS f ORDER BY 1, 2, 3`},
	{"triggers", `SELECT OBJECT_NAME(t.parent_id), t.name, t.is_disabled, t.is_instead_of_trigger
		FROM sys.triggers AS t WHERE t.is_ms_shipped = 0 ORDER BY 1, 2`},
	{"sequences", `SELECT SCHEMA_NAME(s.schema_id), s.name, TYPE_NAME(s.user_type_id), CONVERT(bigint, s.increment),
			s.is_cycling, s.cache_size FROM sys.sequences AS s ORDER BY 1, 2`},
	{"types", `SELECT SCHEMA_NAME(y.schema_id), y.name, TYPE_NAME(y.system_type_id), y.max_length, y.is_nullable
		FROM sys.types AS y WHERE y.is_user_defined = 1 ORDER BY 1, 2`},
	{"roles and users", `SELECT p.name, p.type FROM sys.database_principals AS p
		WHERE p.is_fixed_role = 0 AND p.principal_id > 4 ORDER BY 1`},
	{"members", `SELECT USER_NAME(m.role_principal_id), USER_NAME(m.member_principal_id)
		FROM sys.database_role_members AS m ORDER BY 1, 2`},
	{"rights", `SELECT p.class_desc, OBJECT_NAME(p.major_id), COL_NAME(p.major_id, p.minor_id),
			USER_NAME(p.grantee_principal_id), p.permission_name, p.state_desc
		FROM sys.database_permissions AS p WHERE p.major_id >= 0 ORDER BY 1, 2, 3, 4, 5`},
}

// namedByUser leaves out constraints whose names the server has made: they differ each time.
const namedByUser = `EXISTS (SELECT 1 FROM sys.key_constraints AS n WHERE n.object_id = o.object_id
		AND n.is_system_named = 0)
	OR EXISTS (SELECT 1 FROM sys.default_constraints AS n WHERE n.object_id = o.object_id AND n.is_system_named = 0)
	OR EXISTS (SELECT 1 FROM sys.check_constraints AS n WHERE n.object_id = o.object_id AND n.is_system_named = 0)
	OR EXISTS (SELECT 1 FROM sys.foreign_keys AS n WHERE n.object_id = o.object_id AND n.is_system_named = 0)`

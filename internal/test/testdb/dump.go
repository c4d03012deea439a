package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// Dump returns the database's complete schema as text. The same schema always has the same text. It has no rows, no
// counters (AUTO_INCREMENT, sequence values), and nothing that a server stores outside of the database (users, roles).
func (d *Database) Dump(t testing.TB) string {
	t.Helper()
	p, err := findPrograms(d.Engine)
	if err == nil {
		var text string
		switch {
		case d.Family == "sqlite":
			text, err = d.dumpSQLite()
		case d.Family == "postgres" && p.dump != "":
			text, err = d.dumpWith(p.dump, "--schema-only", "--lock-wait-timeout=30s", "--dbname="+d.URL)
			text = pgDumpNoise.ReplaceAllString(text, "")
		case d.Family == "postgres":
			text, err = d.dumpQueries(postgresDump)
		case d.Family == "sqlserver":
			text, err = d.dumpQueries(sqlServerDump)
		case p.dump != "":
			var rights string
			u, _ := url.Parse(d.URL)
			text, err = d.dumpWith(p.dump, "--no-defaults", "--no-data", "--routines", "--triggers", "--events",
				"--skip-dump-date", "--skip-lock-tables", "--host=127.0.0.1", "--port="+
					u.Port(), "--user=root", "--databases", d.Name)
			text = mariadbDumpNoise.ReplaceAllString(text, "")
			if err == nil {
				rights, err = d.dumpQueries(mysqlDumpRights)
			}
			text += rights
		default:
			text, err = d.dumpMySQL()
		}
		if err == nil {
			return text
		}
	}
	t.Fatalf("testdb: dump %s: %v", d.Name, err)
	return ""
}

var (
	// Newer pg_dumps fence their output with a random key.
	pgDumpNoise = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`)
	// Counters are data.
	mariadbDumpNoise = regexp.MustCompile(`(?m) AUTO_INCREMENT=\d+|^DO SETVAL\(.*\n|^SELECT SETVAL\(.*\n`)
	autoIncrement    = regexp.MustCompile(` AUTO_INCREMENT=\d+`)
)

// dumpWith runs the engine's own dump program.
func (d *Database) dumpWith(program string, arguments ...string) (string, error) {
	return output(d.server.command(program, arguments...))
}

// output runs a program and returns its output.
func output(cmd *exec.Cmd) (string, error) {
	var out, complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd.Path, err, complaint.String())
	}
	return out.String(), nil
}

// dumpQuery is one part of a dump: a heading, and a query whose rows have a fixed order.
type dumpQuery struct{ heading, query string }

// dumpQueries prints the rows of each query, one per line.
func (d *Database) dumpQueries(queries []dumpQuery) (string, error) {
	var b strings.Builder
	for _, q := range queries {
		lines, err := rowLines(d.Admin(), q.query)
		if err != nil {
			return "", fmt.Errorf("%s: %w", q.heading, err)
		}
		fmt.Fprintf(&b, "-- %s\n", q.heading)
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), nil
}

// rowLines returns a query's rows as text. NULL differs from an empty text.
func rowLines(db *sql.DB, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var lines []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		fields := make([]string, len(values))
		for i, v := range values {
			if fields[i] = "NULL"; v.Valid {
				fields[i] = "[" + v.String + "]"
			}
		}
		lines = append(lines, strings.Join(fields, " "))
	}
	return lines, rows.Err()
}

func (d *Database) dumpSQLite() (string, error) {
	return d.dumpQueries([]dumpQuery{
		// SQLite makes sqlite_sequence with the first AUTOINCREMENT, and does not allow to drop it.
		{"schema", "SELECT type, name, tbl_name, " +
			"sql FROM sqlite_schema WHERE name <> 'sqlite_sequence' ORDER BY type, name, tbl_name"},
		{"user_version", "PRAGMA user_version"},
		{"application_id", "PRAGMA application_id"},
	})
}

// dumpMySQL asks MySQL for the statement of every object.
func (d *Database) dumpMySQL() (string, error) {
	var b strings.Builder
	ctx := context.Background()
	conn, err := d.Admin().Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	type object struct{ kind, name string }
	var objects []object
	rows, err := conn.QueryContext(ctx, mysqlObjects)
	if err != nil {
		return "", err
	}
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name); err != nil {
			return "", err
		}
		objects = append(objects, o)
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	sort.Slice(objects, func(i, j int) bool {
		a, b := objects[i], objects[j]
		return a.kind < b.kind || a.kind == b.kind && a.name < b.name
	})
	for _, o := range objects {
		text, err := showCreate(ctx, conn, o.kind, o.name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "-- %s %s\n%s\n", o.kind, o.name, autoIncrement.ReplaceAllString(text, ""))
	}
	rights, err := d.dumpQueries(mysqlDumpRights)
	return b.String() + rights, err
}

const mysqlObjects = `
SELECT 'DATABASE', DATABASE()
UNION ALL SELECT CASE table_type WHEN 'VIEW' THEN 'VIEW' ELSE 'TABLE' END, table_name
  FROM information_schema.tables WHERE table_schema = DATABASE()
UNION ALL SELECT 'TRIGGER', trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()
UNION ALL SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()
UNION ALL SELECT 'EVENT', event_name FROM information_schema.events WHERE event_schema = DATABASE()`

// showCreate returns the result of SHOW CREATE for an object, without the time of its creation.
func showCreate(ctx context.Context, conn *sql.Conn, kind, name string) (string, error) {
	rows, err := conn.QueryContext(ctx, "SHOW CREATE "+kind+" `"+strings.ReplaceAll(name, "`", "``")+"`")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var b strings.Builder
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		for i, column := range columns {
			if column != "Created" {
				fmt.Fprintf(&b, "%s: %s\n", column, values[i].String)
			}
		}
	}
	return b.String(), rows.Err()
}

// mysqlDumpRights are the rights on the database and its objects. They are stored outside of the database, and DROP
// TABLE does not remove them.
var mysqlDumpRights = []dumpQuery{
	{"rights on the database", `SELECT grantee, privilege_type, is_grantable
		FROM information_schema.schema_privileges WHERE table_schema = DATABASE() ORDER BY 1, 2, 3`},
	{"rights on tables", `SELECT grantee, table_name, privilege_type, is_grantable
		FROM information_schema.table_privileges WHERE table_schema = DATABASE() ORDER BY 1, 2, 3, 4`},
	{"rights on columns", `SELECT grantee, table_name, column_name, privilege_type, is_grantable
		FROM information_schema.column_privileges WHERE table_schema = DATABASE() ORDER BY 1, 2, 3, 4, 5`},
	{"rights on routines", `SELECT User, Host, Routine_name, Routine_type, Proc_priv
		FROM mysql.procs_priv WHERE Db = DATABASE() ORDER BY 1, 2, 3, 4`},
}

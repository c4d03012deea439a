package testdb

import (
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// databaseName replaces the name of a saved MariaDB database.
const databaseName = "'@database@'"

// Save returns the whole database as text, including rows, for Load: SQL as written by the engine's own dump program.
// The MySQL engine has no dump program. SQL Server has none, so the test is skipped.
func (d *Database) Save(t testing.TB) string {
	t.Helper()
	if d.Engine == SQLServer {
		t.Skip("SQL Server writes no dumps as SQL")
	}
	p, err := findPrograms(d.Engine)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	switch {
	case d.Family == "sqlite":
		text, err = output(exec.Command("sqlite3", d.Name, ".dump"))
	case d.Family == "postgres":
		text, err = d.dumpWith(p.dump, "--inserts", "--no-owner", "--no-privileges", "--dbname="+d.URL)
		// Commands that only psql understands, and a search path that would stay with the session.
		text = regexp.MustCompile(`(?m)^\\.*\n|^SELECT pg_catalog.set_config\('search_path', '', false\);\n`).
			ReplaceAllString(text, "")
	default:
		// A trigger that was made with its database's name keeps the name, and could only be loaded into that database.
		// An older rowfeed stores the name of the database of a feed's table.
		return strings.NewReplacer("`"+d.Name+"`.", "", "'"+d.Name+"'", databaseName).Replace(d.SaveAsIs(t))
	}
	if err != nil {
		t.Fatalf("testdb: save %s: %v", d.Name, err)
	}
	return text
}

// SaveAsIs returns a database of MariaDB or MySQL as written by MariaDB's dump program, including routines.
func (d *Database) SaveAsIs(t testing.TB) string {
	t.Helper()
	p, err := findPrograms(MariaDB)
	if err != nil {
		t.Fatalf("testdb: save %s: MariaDB's dump program: %v", d.Name, err)
	}
	u, _ := url.Parse(d.URL)
	text, err := d.dumpWith(p.dump, "--no-defaults", "--routines", "--triggers", "--skip-dump-date", "--skip-comments",
		"--skip-lock-tables", "--skip-extended-insert", "--host=127.0.0.1", "--port="+u.Port(), "--user=root", d.Name)
	if err != nil {
		t.Fatalf("testdb: save %s: %v", d.Name, err)
	}
	return text
}

// Load fills an empty database with the text of Save.
func (d *Database) Load(t testing.TB, text string) {
	t.Helper()
	if d.Family != "mysql" {
		d.Exec(t, text)
		return
	}
	// Bodies of routines are between delimiters that only the client understands.
	u, _ := url.Parse(d.URL)
	client := d.server.command("mariadb", "--no-defaults", "--host=127.0.0.1", "--port="+u.Port(), "--user=root",
		d.Name)
	client.Stdin = strings.NewReader(strings.ReplaceAll(text, databaseName, "'"+d.Name+"'"))
	if _, err := output(client); err != nil {
		t.Fatalf("testdb: load %s: %v", d.Name, err)
	}
}

// Lines returns a query's rows as text. NULL differs from an empty text.
func (d *Database) Lines(t testing.TB, query string) []string {
	t.Helper()
	lines, err := rowLines(d.Admin(), query)
	if err != nil {
		t.Fatalf("%s: %v\n%s", d.Engine.Name, err, query)
	}
	return lines
}

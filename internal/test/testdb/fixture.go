package testdb

import (
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// databaseName stands for the name of a database of MariaDB that was saved.
const databaseName = "'@database@'"

// Save returns the whole database as text, rows included, for Load: SQL as the engine's own
// dump program writes it. MySQL's is not among the engines' programs.
func (d *Database) Save(t testing.TB) string {
	t.Helper()
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
		// What psql alone understands, and a search path that stays with the session.
		text = regexp.MustCompile(`(?m)^\\.*\n|^SELECT pg_catalog.set_config\('search_path', '', false\);\n`).
			ReplaceAllString(text, "")
	default:
		// A trigger that was made with its database's name keeps it, and could be loaded there only.
		// An older rowfeed notes in which database a feed's table is.
		return strings.NewReplacer("`"+d.Name+"`.", "", "'"+d.Name+"'", databaseName).Replace(d.SaveAsIs(t))
	}
	if err != nil {
		t.Fatalf("testdb: save %s: %v", d.Name, err)
	}
	return text
}

// SaveAsIs returns a database of MariaDB or MySQL as MariaDB's dump program writes it, with routines.
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

// Load fills an empty database with what Save has returned.
func (d *Database) Load(t testing.TB, text string) {
	t.Helper()
	if d.Family != "mysql" {
		d.Exec(t, text)
		return
	}
	// Bodies of routines stand between delimiters that the client alone understands.
	u, _ := url.Parse(d.URL)
	client := d.server.command("mariadb", "--no-defaults", "--host=127.0.0.1", "--port="+u.Port(), "--user=root",
		d.Name)
	client.Stdin = strings.NewReader(strings.ReplaceAll(text, databaseName, "'"+d.Name+"'"))
	if _, err := output(client); err != nil {
		t.Fatalf("testdb: load %s: %v", d.Name, err)
	}
}

// Lines returns a query's rows as text; a NULL is told from an empty text.
func (d *Database) Lines(t testing.TB, query string) []string {
	t.Helper()
	lines, err := rowLines(d.Admin(), query)
	if err != nil {
		t.Fatalf("%s: %v\n%s", d.Engine.Name, err, query)
	}
	return lines
}

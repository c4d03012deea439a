package dialect

import "fmt"

// Migration is one version of rowfeed's own tables.
type Migration struct {
	Version int
	Title   string
	Up      []string
	Down    []string
}

// AddsColumn is a version that adds a column, for a database that undoes schema changes with
// their transaction. name gives the full names of rowfeed's tables, now is Spelling.Now.
func AddsColumn(name func(base string) string, now string, version int, title, table, column, definition string) Migration {
	return Migration{
		Version: version,
		Title:   title,
		Up: []string{
			"ALTER TABLE " + name(table) + " ADD COLUMN " + column + " " + definition,
			fmt.Sprintf("INSERT INTO %s VALUES (%d, %s)", name("schema_version"), version, now),
		},
		Down: []string{
			"ALTER TABLE " + name(table) + " DROP COLUMN " + column,
			fmt.Sprintf("DELETE FROM %s WHERE version = %d", name("schema_version"), version),
		},
	}
}

// OwnSchema is version 9. Since then a feed's record has an empty schema where its table is in the schema of
// rowfeed's own tables, and publishers keep the text of keys. A binary that knows neither must not publish, and is
// kept from it by the version.
func OwnSchema(s Spelling, n Names) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	return Migration{
		Version: 9,
		Title:   "tables beside rowfeed's own, texts of keys",
		Up: []string{
			"UPDATE " + table("feeds") + " SET source_schema = '' WHERE source_schema = " + s.Literal(n.Schema),
			"INSERT INTO " + table("schema_version") + " (version, applied_at) VALUES (9, " + s.Now() + ")",
		},
		Down: []string{"DELETE FROM " + table("schema_version") + " WHERE version = 9"}, // the feeds' table goes as well
	}
}

// Step is a statement and the reason why it is there, as printed by --print.
type Step struct {
	Note string
	SQL  string
	// Commit asks for a commit behind the statement, since it holds a lock that keeps
	// readers out; a list that is made anew goes on from there.
	Commit bool
}

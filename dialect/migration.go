package dialect

import "fmt"

// Migration is one version of rowfeed's own tables.
type Migration struct {
	Version int
	Title   string
	Up      []string
	Down    []string
}

// AddsColumn returns a version that adds a column, for databases that roll back schema changes with their
// transaction. name returns the quoted name of one of rowfeed's tables. now is the expression of
// [Spelling].Now.
func AddsColumn(name func(base string) string, now string, version int, title, table, column,
	definition string) Migration {
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

// OwnSchema is version 9. Since then, a feed's record has an empty schema if its table is in the schema of
// rowfeed's own tables. And publishers keep the spelling of a key that its tables have. A binary that knows
// neither must not publish. The version number keeps it from doing so.
func OwnSchema(s Spelling, n Names) Migration {
	table := func(base string) string { return Qualified(s, n.Table(base)) }
	return Migration{
		Version: 9,
		Title:   "tables beside rowfeed's own, texts of keys",
		Up: []string{
			"UPDATE " + table("feeds") + " SET source_schema = '' WHERE source_schema = " + s.Literal(n.Schema),
			"INSERT INTO " + table("schema_version") + " (version, applied_at) VALUES (9, " + s.Now() + ")",
		},
		// the table of feeds is dropped, too
		Down: []string{"DELETE FROM " + table("schema_version") + " WHERE version = 9"},
	}
}

// Step is a statement and the reason for it. --print shows both.
type Step struct {
	Note string
	SQL  string
	// Commit asks for a commit after the statement, which holds a lock that keeps readers out. The caller then
	// gets the list of steps again, and runs what is left.
	Commit bool
}

package sqlite

import "github.com/rowfeed/rowfeed/dialect"

// accessTables makes the tables of access tokens and of the audit log. Of a token it keeps only the SHA-256 of
// the text. expires_at and revoked_at are NULL if they never happen. The audit log has a row for each action of
// an operator. mark identifies the row, so that the outcome can be added when the action has ended.
func (d Dialect) accessTables(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 8,
		Title:   "tokens, audit log",
		Up: []string{
			"CREATE TABLE " + name("tokens") + ` (
  name TEXT NOT NULL PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  grants TEXT NOT NULL,
  view TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
)`,
			"CREATE TABLE " + name("audit") + ` (
  id INTEGER PRIMARY KEY,
  mark TEXT NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  outcome TEXT NOT NULL
)`,
			"INSERT INTO " + name("schema_version") + " VALUES (8, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("audit"),
			"DROP TABLE " + name("tokens"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 8",
		},
	}
}

package mysql

import "github.com/rowfeed/rowfeed/dialect"

// accessTables makes the tables of access tokens and of the audit log. Of a token it keeps only the SHA-256 of
// the text. expires_at and revoked_at are NULL if they never happen. The audit log has a row for each action of
// an operator. mark identifies the row, so that the outcome can be added when the action has ended.
func (d Dialect) accessTables(table func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 8,
		Title:   "tokens, audit log",
		Up: []string{
			"CREATE TABLE IF NOT EXISTS " + table("tokens") + ` (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  sha256 char(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
  grants longtext NOT NULL,
  view longtext NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NULL,
  revoked_at bigint NULL
)` + tableOptions,
			"CREATE TABLE IF NOT EXISTS " + table("audit") + ` (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  mark varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at bigint NOT NULL,
  actor longtext NOT NULL,
  act longtext NOT NULL,
  object longtext NOT NULL,
  detail longtext NOT NULL,
  outcome longtext NOT NULL
)` + tableOptions,
			"INSERT IGNORE INTO " + table("schema_version") + " (version, applied_at) VALUES (8, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE IF EXISTS " + table("audit"),
			"DROP TABLE IF EXISTS " + table("tokens"),
			"DELETE FROM " + table("schema_version") + " WHERE version = 8",
		},
	}
}

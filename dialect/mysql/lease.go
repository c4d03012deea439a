package mysql

import "github.com/rowfeed/rowfeed/dialect"

// leaseTable makes the table of leases. expires_at is NULL while a lease is free.
func (d Dialect) leaseTable(table func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 4,
		Title:   "leases",
		Up: []string{
			"CREATE TABLE IF NOT EXISTS " + table("leases") + ` (
  name varchar(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  owner varchar(150) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint NULL,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
)` + tableOptions,
			"INSERT IGNORE INTO " + table("schema_version") + " (version, applied_at) VALUES (4, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE IF EXISTS " + table("leases"),
			"DELETE FROM " + table("schema_version") + " WHERE version = 4",
		},
	}
}

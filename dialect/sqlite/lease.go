package sqlite

import "github.com/rowfeed/rowfeed/dialect"

// leaseTable makes the table of leases. expires_at is NULL while a lease is free.
func (d Dialect) leaseTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 4,
		Title:   "leases",
		Up: []string{
			"CREATE TABLE " + name("leases") + ` (
  name TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at INTEGER,
  acquired_at INTEGER NOT NULL,
  renewals INTEGER NOT NULL
)`,
			"INSERT INTO " + name("schema_version") + " VALUES (4, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("leases"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 4",
		},
	}
}

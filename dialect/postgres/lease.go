package postgres

import "github.com/rowfeed/rowfeed/dialect"

// leaseTable makes the table of leases. expires_at is NULL while a lease is free. Every renewal updates the
// row; a low fill factor keeps space for its next version in the same page.
func (d Dialect) leaseTable(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 4,
		Title:   "leases",
		Up: []string{
			"CREATE TABLE " + name("leases") + ` (
  name text COLLATE "C" PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  expires_at bigint,
  acquired_at bigint NOT NULL,
  renewals bigint NOT NULL
) WITH (fillfactor = 10)`,
			"INSERT INTO " + name("schema_version") + " VALUES (4, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("leases"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 4",
		},
	}
}

package postgres

import "github.com/rowfeed/rowfeed/dialect"

// leaseTable has a small row per lease, rewritten by every renewal: room for updates
// in the page. expires_at is NULL while nobody holds the lease.
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

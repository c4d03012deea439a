package install

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// wantDenials asserts that the database itself refuses each statement because the login lacks a right.
func wantDenials(l *suite.Login, statements ...string) {
	l.Helper()
	for _, s := range statements {
		tx := l.BeginAs()
		_, err := tx.ExecContext(l.Ctx, s)
		wantDenied(l, s, err)
		tx.Rollback()
	}
}

// wantDenied asserts that the database refused what the login tried, because the login lacks a right.
func wantDenied(l *suite.Login, tried string, err error) {
	l.Helper()
	if l.Dialect.Classify(err) != dialect.ClassPermission {
		l.Errorf("login %s tried to %s: error %v, want permission denied", l.Name, tried, err)
	}
}

// newGroup creates a role with one member.
func newGroup(x *suite.Env, member *suite.Login) string {
	x.Helper()
	group := "group_" + x.DB.Name
	x.Exec(x.Statements("install.role", group, member.SQL)...)
	x.Cleanup(func() { x.Exec(x.Statements("install.drop_role", group)...) })
	return group
}

// forbiddenStatements returns statements that neither a writer nor a reader of the feed events may run. The table
// others has a feed, too.
func forbiddenStatements(x *suite.Env) []string {
	return append([]string{
		"UPDATE rowfeed_shards SET ulid_low = 0, time_ms = 1", "DELETE FROM rowfeed_shards",
		"INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness)" +
			" VALUES ('events', 99, 1, 1, 1, '')",
		"UPDATE rowfeed_feeds SET generation = 7", "DELETE FROM rowfeed_feeds",
		"UPDATE rowfeed_sequences SET value = 7", "DELETE FROM rowfeed_schema_version",
		"SELECT * FROM rowfeed_cursors", "DELETE FROM rowfeed_cursors", "UPDATE rowfeed_cursors SET value = ''",
		"SELECT * FROM rowfeed_dead_letters", "UPDATE rowfeed_leases SET owner = ''", "DELETE FROM rowfeed_processed",
		"SELECT * FROM others", "INSERT INTO others (id, shard) VALUES (1, 1)",
		"SELECT * FROM rowfeed_positions_plain", "SELECT * FROM rowfeed_changes_plain",
		"DELETE FROM rowfeed_positions_plain",
		"DROP TABLE rowfeed_shards", "ALTER TABLE rowfeed_shards ADD COLUMN mine INT",
		"CREATE INDEX mine ON rowfeed_shards (witness)", "TRUNCATE TABLE rowfeed_shards",
	}, x.Statements("install.out_of_reach")...)
}

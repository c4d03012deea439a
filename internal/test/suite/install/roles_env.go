package install

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// mayNot asserts that the database itself refuses each statement, for want of a right.
func mayNot(l *suite.Login, statements ...string) {
	l.Helper()
	for _, s := range statements {
		tx := l.BeginAs()
		_, err := tx.ExecContext(l.Ctx, s)
		if l.Dialect.Classify(err) != dialect.ClassPermission {
			l.Errorf("%s may %s (%v)", l.Name, s, err)
		}
		tx.Rollback()
	}
}

// outOfReach are statements that neither a writer nor a reader of the feed events may run, with
// a second feed of a table others.
func outOfReach(x *suite.Env) []string {
	all := []string{
		"UPDATE rowfeed_shards SET ulid_low = 0, time_ms = 1", "DELETE FROM rowfeed_shards", "INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('events', 99, 1, 1, 1, '')",
		"UPDATE rowfeed_feeds SET generation = 7", "DELETE FROM rowfeed_feeds", "UPDATE rowfeed_sequences SET value = 7", "DELETE FROM rowfeed_schema_version",
		"SELECT * FROM rowfeed_cursors", "DELETE FROM rowfeed_cursors", "UPDATE rowfeed_cursors SET value = ''", "SELECT * FROM rowfeed_dead_letters", "UPDATE rowfeed_leases SET owner = ''", "DELETE FROM rowfeed_processed",
		"SELECT * FROM others", "INSERT INTO others (id, shard) VALUES (1, 1)", "SELECT * FROM rowfeed_positions_plain", "SELECT * FROM rowfeed_changes_plain", "DELETE FROM rowfeed_positions_plain",
		"DROP TABLE rowfeed_shards", "ALTER TABLE rowfeed_shards ADD COLUMN mine INT", "CREATE INDEX mine ON rowfeed_shards (witness)", "TRUNCATE TABLE rowfeed_shards",
	}
	if x.Family() == "postgres" {
		return append(
			all,
			"SELECT rowfeed_lock_others(1)",
			"SELECT rowfeed_ulid_others(1)",
			"DROP FUNCTION rowfeed_lock_events",
			"DROP FUNCTION rowfeed_lock_others",
			"SELECT * FROM rowfeed_shards FOR UPDATE",
			"SELECT * FROM rowfeed_feeds FOR SHARE",
			"LOCK TABLE rowfeed_shards IN EXCLUSIVE MODE",
			"LOCK TABLE rowfeed_feeds IN SHARE MODE",
			"CREATE OR REPLACE FUNCTION rowfeed_ulid_events(i bigint, shard bigint DEFAULT NULL) RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
			"ALTER FUNCTION rowfeed_ulid_events RENAME TO mine",
		)
	}
	return append(all, "CALL rowfeed_lock_others(1, NULL, @a, @b, @c)",
		"CALL rowfeed_take_others(1, NULL, 'w', 1, FALSE)", "DO rowfeed_ulid_others(1, 1, 1)",
		"DROP PROCEDURE rowfeed_lock_events", "DROP PROCEDURE rowfeed_take_events",
		"DROP PROCEDURE rowfeed_lock_others", "DROP FUNCTION rowfeed_ulid_events",
		"ALTER PROCEDURE rowfeed_lock_events COMMENT 'mine'",
		"CREATE TRIGGER mine BEFORE INSERT ON rowfeed_shards FOR EACH ROW SET NEW.shard = 1",
		"LOCK TABLES rowfeed_shards WRITE", "CALL rowfeed_witness_others(1)")
}

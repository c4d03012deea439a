package conformance

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// login is a login of the database, with rowfeed opened as that login.
type login struct {
	*env
	name string // as Grants takes it
	sql  string // as statements spell it
}

// newLogin makes a login that has no right at all, and opens rowfeed with it.
func (x *env) newLogin(user string, cfg *rowfeed.Config) *login {
	x.Helper()
	const password = "p:w/d@1"
	user += " " + x.db.Name
	l := &login{name: user}
	create, drop := "", []string{}
	if x.family() == "postgres" {
		l.sql = x.dialect.Quote(user)
		create, drop = "CREATE ROLE "+l.sql+" LOGIN PASSWORD '"+password+"'", []string{"DROP OWNED BY " + l.sql, "DROP ROLE " + l.sql}
	} else {
		l.name += "@127.0.0.1"
		l.sql = x.dialect.Literal(user) + "@'127.0.0.1'"
		create, drop = "CREATE USER "+l.sql+" IDENTIFIED BY '"+password+"'", []string{"DROP USER " + l.sql}
	}
	x.exec(create)
	x.Cleanup(func() { x.exec(drop...) })
	if x.family() == "mysql" {
		// To connect to a database takes some right in it.
		x.exec("CREATE TABLE IF NOT EXISTS lobby (id INT)", "GRANT SELECT ON lobby TO "+l.sql)
	}
	u, err := url.Parse(x.db.URL)
	if err != nil {
		x.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	l.env = openEnv(x.T, &testdb.Database{Engine: x.engine, URL: u.String(), Name: x.db.Name}, cfg)
	return l
}

// feedOf is the feed as the login sees it.
func (l *login) feedOf(name string) *rowfeed.Feed {
	l.Helper()
	f, err := l.rf.Feed(l.ctx, name)
	if err != nil {
		l.Fatal(err)
	}
	return f
}

// beginAs opens a transaction of the login's.
func (l *login) beginAs() *sql.Tx {
	l.Helper()
	tx, err := l.pool.BeginTx(l.ctx, nil)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { tx.Rollback() })
	return tx
}

// mayNot asserts that the database itself refuses each statement, for want of a right.
func (l *login) mayNot(statements ...string) {
	l.Helper()
	for _, s := range statements {
		tx := l.beginAs()
		_, err := tx.ExecContext(l.ctx, s)
		if l.dialect.Classify(err) != dialect.ClassPermission {
			l.Errorf("%s may %s (%v)", l.name, s, err)
		}
		tx.Rollback()
	}
}

// outOfReach are statements that neither a writer nor a reader of the feed events may run, with
// a second feed of a table others.
func (x *env) outOfReach() []string {
	all := []string{
		"UPDATE rowfeed_shards SET ulid_low = 0, time_ms = 1", "DELETE FROM rowfeed_shards", "INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('events', 99, 1, 1, 1, '')",
		"UPDATE rowfeed_feeds SET generation = 7", "DELETE FROM rowfeed_feeds", "UPDATE rowfeed_sequences SET value = 7", "DELETE FROM rowfeed_schema_version",
		"SELECT * FROM rowfeed_cursors", "DELETE FROM rowfeed_cursors", "UPDATE rowfeed_cursors SET value = ''", "SELECT * FROM rowfeed_dead_letters", "UPDATE rowfeed_leases SET owner = ''", "DELETE FROM rowfeed_processed",
		"SELECT * FROM others", "INSERT INTO others (id, shard) VALUES (1, 1)", "SELECT * FROM rowfeed_positions_plain", "SELECT * FROM rowfeed_changes_plain", "DELETE FROM rowfeed_positions_plain",
		"DROP TABLE rowfeed_shards", "ALTER TABLE rowfeed_shards ADD COLUMN mine INT", "CREATE INDEX mine ON rowfeed_shards (witness)", "TRUNCATE TABLE rowfeed_shards",
	}
	if x.family() == "postgres" {
		return append(all, "SELECT rowfeed_lock_others(1)", "SELECT rowfeed_ulid_others(1)", "DROP FUNCTION rowfeed_lock_events", "DROP FUNCTION rowfeed_lock_others",
			"SELECT * FROM rowfeed_shards FOR UPDATE", "SELECT * FROM rowfeed_feeds FOR SHARE", "LOCK TABLE rowfeed_shards IN EXCLUSIVE MODE", "LOCK TABLE rowfeed_feeds IN SHARE MODE",
			"CREATE OR REPLACE FUNCTION rowfeed_ulid_events(i bigint, shard bigint DEFAULT NULL) RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'", "ALTER FUNCTION rowfeed_ulid_events RENAME TO mine")
	}
	return append(all, "CALL rowfeed_lock_others(1, NULL, @a, @b, @c)", "CALL rowfeed_take_others(1, NULL, 'w', 1, FALSE)", "DO rowfeed_ulid_others(1, 1, 1)", "DROP PROCEDURE rowfeed_lock_events", "DROP PROCEDURE rowfeed_take_events",
		"DROP PROCEDURE rowfeed_lock_others", "DROP FUNCTION rowfeed_ulid_events", "ALTER PROCEDURE rowfeed_lock_events COMMENT 'mine'", "CREATE TRIGGER mine BEFORE INSERT ON rowfeed_shards FOR EACH ROW SET NEW.shard = 1",
		"LOCK TABLES rowfeed_shards WRITE", "CALL rowfeed_witness_others(1)")
}

// grant lets the login use the feed.
func (x *env) grant(f *rowfeed.Feed, g rowfeed.Grants) {
	x.Helper()
	if err := f.Admin().Grant(x.ctx, g); err != nil {
		x.Fatal(err)
	}
}

// rightsOn gives a login rights on a table of the test's own.
func (x *env) rightsOn(table, rights string, l *login) {
	x.Helper()
	x.exec(fmt.Sprintf("GRANT %s ON %s TO %s", rights, table, l.sql))
}

// sameDump asserts that the schema is as it was.
func (x *env) sameDump(before, when string) {
	x.Helper()
	after := x.db.Dump(x.T)
	if after == before {
		return
	}
	var lines []string
	was := strings.Split(before, "\n")
	for i, line := range strings.Split(after, "\n") {
		if i >= len(was) || was[i] != line {
			if lines = append(lines, line); len(lines) == 12 {
				break
			}
		}
	}
	x.Errorf("%s: the schema is another:\n%s", when, strings.Join(lines, "\n"))
}

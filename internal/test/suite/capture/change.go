package capture

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReaddedFeed (M74, H15): a process that knows a feed which another process has dropped and
// added again, of another table, with other columns or in another mode, neither publishes by the old
// record nor shows rows by it.
func TestReaddedFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		stale := x.AddKV()
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY, secret VARCHAR(20), v BIGINT)", "INSERT INTO kv VALUES (1, 'old', 0)")
		x.Drain(stale, "")
		y := suite.OpenEnv(x.T, x.DB, nil) // the other process
		readd := func(spec rowfeed.FeedSpec) *rowfeed.Feed {
			x.Helper()
			if err := y.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			return y.Add(spec)
		}
		again := readd(rowfeed.FeedSpec{Name: "kv", Table: "other"})
		x.Exec("INSERT INTO other VALUES (1, 'S3CRET', 0)")
		y.Publish(again) // so that its head is no lower than that of before
		x.Exec("INSERT INTO other VALUES (2, 'S3CRET', 0)")
		x.WantDrain(stale, "", `upsert {"id":1,"secret":"S3CRET","v":0}`, `upsert {"id":2,"secret":"S3CRET","v":0}`)
		x.WantSound(stale)
		x.Fetch(stale, "", 0) // it knows the table's columns
		readd(rowfeed.FeedSpec{Name: "kv", Table: "other", Columns: []string{"id", "v"}})
		if _, err := x.RF.Feeds(x.Ctx); err != nil { // as a server does all the time
			x.Fatal(err)
		}
		x.WantDrain(stale, "", `upsert {"id":1,"v":0}`, `upsert {"id":2,"v":0}`)
		readd(rowfeed.FeedSpec{Name: "kv", Table: "other", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.Exec("INSERT INTO other VALUES (3, 'S3CRET', 0)")
		if n, err := stale.Publish(x.Ctx); n != 1 || err != nil {
			x.Errorf("the feed is in mode outbox now: %d published, want 1 (%v)", n, err)
		}
	})
}

// TestReplaceByDefault (H6): OR REPLACE writes a column's default in place of a
// NULL, and removes the row that has it.
func TestReplaceByDefault(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.Exec("CREATE TABLE kv (id INTEGER PRIMARY KEY, ns TEXT NOT NULL DEFAULT ('x' || 'y'), k TEXT NOT NULL DEFAULT 'a', UNIQUE (ns, k))")
	f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	x.Exec("INSERT INTO kv VALUES (1, 'xy', 'a')")
	_, cursor := x.Drain(f, "")
	x.Exec("INSERT OR REPLACE INTO kv VALUES (2, NULL, NULL)")
	cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":2,"ns":"xy","k":"a"}`)
	x.Exec("INSERT INTO kv VALUES (3, 'z', 'z')")
	_, cursor = x.Drain(f, cursor)
	x.Exec("UPDATE OR REPLACE kv SET ns = NULL, k = NULL WHERE id = 3")
	x.WantDrain(f, cursor, suite.Gone(2), `upsert {"id":3,"ns":"xy","k":"a"}`)
	x.WantSound(f)
}

// TestTruncateInOldSnapshot: a TRUNCATE removes rows that its transaction's snapshot
// does not show; where they could not be recorded it is refused.
func TestTruncateInOldSnapshot(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no TRUNCATE in a transaction, or none at all
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		tx := x.Begin(sql.LevelRepeatableRead)
		x.In(tx, "SELECT * FROM kv")
		x.Exec("INSERT INTO kv VALUES (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		if _, err := tx.ExecContext(x.Ctx, "TRUNCATE kv"); err == nil || !strings.Contains(err.Error(), "READ COMMITTED") {
			x.Errorf("truncate: %v", err)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Exec("TRUNCATE kv")
		x.WantDrain(f, cursor, suite.Gone(1), suite.Gone(2))
	})
}

// TestTriggersAgain: DISABLE and ENABLE TRIGGER ALL, as pg_restore does, leaves
// triggers that do not fire for replicated rows; that is seen and mended.
func TestTriggersAgain(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("ALTER TABLE kv DISABLE TRIGGER ALL", "ALTER TABLE kv ENABLE TRIGGER ALL")
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 2 {
			x.Errorf("problems %q, %v", problems, err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec("SET session_replication_role = replica; INSERT INTO kv VALUES (1, 'a', 0); RESET session_replication_role")
		x.WantDrain(f, "", suite.KV(1, "a", 0))
	})
}

// TestKeyChangesType (H22): a key that grows beyond what rowfeed's tables hold is noticed,
// and upgrade mends them.
func TestKeyChangesType(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no ALTER of a type, and its columns hold anything
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id INT NOT NULL PRIMARY KEY, v INT)", "INSERT INTO kv VALUES (1, 0)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		_, cursor := x.Drain(f, "")
		x.Exec(x.By(map[string]string{"postgres": "ALTER TABLE kv ALTER id TYPE bigint", "mysql": "ALTER TABLE kv MODIFY id BIGINT NOT NULL"}))
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || !strings.Contains(strings.Join(problems, ";"), "bigint") {
			x.Errorf("problems %q, %v", problems, err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (3000000000, 1)", "UPDATE kv SET v = 2 WHERE id = 1")
		x.WantDrain(f, cursor, `upsert {"id":3000000000,"v":1}`, `upsert {"id":1,"v":2}`)
		x.WantSound(f)
	})
}

// TestKeyRenamed: verification and upgrade name a key column that is gone; upgrade
// does not make it worse.
func TestKeyRenamed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("ALTER TABLE kv RENAME COLUMN id TO number")
		_, err := f.Admin().Verify(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		_, err = f.Admin().Upgrade(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), `no key column "id"`) {
			x.Errorf("error %v", err)
		}
		x.Exec("ALTER TABLE kv RENAME COLUMN number TO id", "INSERT INTO kv VALUES (1, 'a', 0)")
		x.WantDrain(f, "", suite.KV(1, "a", 0))
	})
}

// TestOwnerMakesPartitions (H22): whoever owns a partitioned table goes on
// making partitions of it, although the feed is another user's.
func TestOwnerMakesPartitions(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		role := "owner_" + x.DB.Name
		x.Exec("CREATE TABLE p (id bigint PRIMARY KEY) PARTITION BY RANGE (id)", "CREATE ROLE "+role,
			"GRANT CREATE ON SCHEMA public TO "+role, "ALTER TABLE p OWNER TO "+role)
		x.Cleanup(func() { x.Exec("DROP OWNED BY "+role+" CASCADE", "DROP ROLE "+role) })
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("SET ROLE " + role + "; CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1); RESET ROLE")
		x.WantDrain(f, "", `upsert {"id":1}`)
	})
}

// TestRepublishAllKeepsHidden (M70): sending everything again shows no hidden row.
func TestRepublishAllKeepsHidden(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Unpublish(x.Ctx, tx, rowfeed.Key{1}) }); err != nil {
			x.Fatal(err)
		}
		_, cursor := x.Drain(f, "")
		if _, err := f.Admin().RepublishWhere(x.Ctx, "", 10, nil); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor, suite.KV(2, "b", 0))
	})
}

// TestUnpublishOtherSpelling (M70): a wish for a key holds in whatever spelling that
// its collation takes for the same, also within one batch.
func TestUnpublishOtherSpelling(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.By(map[string]string{
			"sqlite": "CREATE TABLE n (k TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, v INTEGER)",
			"postgres": "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false); " +
				"CREATE TABLE n (k text COLLATE nocase PRIMARY KEY, v int)",
			"mysql": "CREATE TABLE n (k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci PRIMARY KEY, v INT)",
		}))
		f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n"})
		x.Exec("INSERT INTO n VALUES ('fred', 1)")
		cursor := x.WantDrain(f, "", `upsert {"k":"fred","v":1}`)
		wish := func(what string) {
			x.Helper()
			err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
				if what == "hide" {
					return f.Unpublish(x.Ctx, tx, rowfeed.Key{"FRED"})
				}
				return f.Republish(x.Ctx, tx, rowfeed.Key{"FRED"})
			})
			if err != nil {
				x.Fatal(err)
			}
		}
		wish("hide")
		x.Exec("UPDATE n SET v = 2")
		lines, cursor := x.Drain(f, cursor)
		if len(lines) != 1 || !strings.HasPrefix(lines[0], "delete") {
			x.Fatalf("hidden: %q", lines)
		}
		wish("show")
		x.Exec("UPDATE n SET v = 3")
		x.WantDrain(f, cursor, `upsert {"k":"fred","v":3}`)
	})
}

// TestNamesTaken (H22): tables of the user's own that have the names of rowfeed's are
// neither used nor dropped.
func TestNamesTaken(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, &rowfeed.Config{Prefix: rowfeed.NoPrefix})
		x.Exec("CREATE TABLE feeds (mine INT)")
		if _, err := x.RF.Migrate(x.Ctx); err == nil {
			t.Error("init took the user's table")
		}
		x.Scalar("SELECT count(mine) FROM feeds")
		x.Exec("DROP TABLE feeds")
		x.Migrate()
		x.Exec("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)", "CREATE TABLE changes_orders (mine INT)")
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders"}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if err := x.RF.DropFeed(x.Ctx, "orders"); err != nil && !suite.IsCode(err, rowfeed.UnknownFeed) {
			t.Error(err)
		}
		x.Scalar("SELECT count(mine) FROM changes_orders")
	})
}

// TestHalfDropped: a feed whose drop broke off does not pass for a feed.
func TestHalfDropped(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Exec("UPDATE rowfeed_feeds SET state = 'dropping'") // what a killed drop leaves where DDL commits by itself
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
			x.Errorf("feeds %v, %v", feeds, err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	})
}

// TestPurgeFindsTheOldest: a purge reads no tombstone in vain (the first that is not
// due ends it), and takes those that are.
func TestPurgeFindsTheOldest(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		for i := 1; i <= 3; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
		}
		x.Publish(f)
		x.Exec("DELETE FROM kv")
		x.Publish(f)
		x.Exec("UPDATE rowfeed_positions_kv SET published_at = published_at - 40 * 24 * 3600 * CAST(1000000 AS " +
			x.By(map[string]string{"sqlite": "INTEGER", "postgres": "bigint", "mysql": "SIGNED"}) + ") WHERE feed_sync_id <= 5")
		if n, err := f.Admin().Purge(x.Ctx); n != 2 || err != nil {
			x.Errorf("purged %d, %v", n, err)
		}
		x.WantSound(f)
	})
}

// TestReplaceByOtherWays (H6): OR REPLACE removes rows by a second index on the
// key's columns with another collation, and by the hidden rowid.
func TestReplaceByOtherWays(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.Exec("CREATE TABLE n (k TEXT PRIMARY KEY NOT NULL, v)", "CREATE UNIQUE INDEX n_k ON n (k COLLATE NOCASE)")
	f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n"})
	x.Exec("INSERT INTO n VALUES ('a', 1)")
	_, cursor := x.Drain(f, "")
	x.Exec("INSERT OR REPLACE INTO n VALUES ('A', 2)")
	x.WantDrain(f, cursor, `delete {"k":"a"}`, `upsert {"k":"A","v":2}`)
	x.Exec("CREATE TABLE h (k TEXT NOT NULL PRIMARY KEY)")
	g := x.Add(rowfeed.FeedSpec{Name: "h", Table: "h"})
	x.Exec("INSERT INTO h (rowid, k) VALUES (1, 'a'), (2, 'b')")
	_, cursor = x.Drain(g, "")
	x.Exec("INSERT OR REPLACE INTO h (rowid, k) VALUES (1, 'z')")
	cursor = x.WantDrain(g, cursor, `delete {"k":"a"}`, `upsert {"k":"z"}`)
	x.Exec("UPDATE OR REPLACE h SET rowid = 1 WHERE k = 'b'")
	x.WantDrain(g, cursor, `delete {"k":"z"}`, `upsert {"k":"b"}`)
	x.WantSound(f)
	x.WantSound(g)
}

// TestStrictAny: in a STRICT table 1 and '1' are two keys of a column of type ANY.
func TestStrictAny(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.Exec("CREATE TABLE s (k ANY PRIMARY KEY NOT NULL, v ANY) STRICT")
	f := x.Add(rowfeed.FeedSpec{Name: "s", Table: "s"})
	x.Exec("INSERT INTO s VALUES (1, 1), ('1', 2)")
	cursor := x.WantDrain(f, "", `upsert {"k":1,"v":1}`, `upsert {"k":"1","v":2}`)
	x.Exec("DELETE FROM s WHERE v = 2")
	x.WantDrain(f, cursor, `delete {"k":"1"}`)
	x.WantSound(f)
}

// TestSessionLimits: a session's default limit of rows, its time limit for statements
// and its read-only default cut no page and stop no publisher.
func TestSessionLimits(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		var pool *sql.DB
		switch x.Family() {
		case "sqlite":
			return // has no such settings
		case "postgres":
			pool = x.DB.OpenTapped(x.T, testdb.Hooks{}, "statement_timeout=50000", "default_transaction_read_only=on")
			x.Exec("CREATE TABLE bounds (bound text)", `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO bounds VALUES (current_setting('statement_timeout')); RETURN NULL; END $$`,
				"CREATE TRIGGER note AFTER UPDATE ON rowfeed_sequences FOR EACH ROW EXECUTE FUNCTION note()")
		case "mysql":
			pool = x.DB.OpenTapped(x.T, testdb.Hooks{}, "sql_select_limit=3")
		}
		var want []string
		for i := 1; i <= 6; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			want = append(want, suite.KV(i, "k", 0))
		}
		x.Publish(f)
		limited, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		g, err := limited.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (7, 'k', 0)")
		x.WantDrain(g, "", append(want, suite.KV(7, "k", 0))...)
		if x.Family() == "postgres" && x.Scalar("SELECT count(*) FROM bounds WHERE bound = '50s'") != 0 {
			x.Error("the session's time limit holds for publishing")
		}
	})
}

// TestOwnTables: a feed of rowfeed's own tables would publish itself for ever.
func TestOwnTables(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		for _, table := range []string{"rowfeed_sequences", "rowfeed_feeds", "rowfeed_changes_kv", "rowfeed_positions_kv"} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "own", Table: table}, nil)
			x.WantCode(err, rowfeed.Refused)
		}
	})
}

// TestCompositeTypeKey: refused, since a value with a NULL in it is neither NULL nor
// NOT NULL.
func TestCompositeTypeKey(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // the others have no such types
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TYPE pair AS (a int, b text)", "CREATE TABLE c (a pair PRIMARY KEY)")
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "c", Table: "c"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestOwnerChanges: a table that the triggers' owner may no longer read is noticed.
func TestOwnerChanges(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		role := "mover_" + x.DB.Name
		x.Exec("CREATE ROLE "+role, "ALTER FUNCTION rowfeed_kv_capture() OWNER TO "+role)
		x.Cleanup(func() { x.Exec("DROP OWNED BY "+role+" CASCADE", "DROP ROLE "+role) })
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "the owner of function rowfeed_kv_capture") {
			x.Errorf("problems %q, %v", problems, err)
		}
	})
}

package capture

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestStaleProcessFollowsReaddedFeed (M74, H15): another process drops a feed and adds it again, with another table,
// other columns or another mode. A process that knows the former feed neither publishes nor shows rows by its former
// record.
func TestStaleProcessFollowsReaddedFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		stale := x.AddKV()
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY, secret VARCHAR(20), v BIGINT)",
			"INSERT INTO kv VALUES (1, 'old', 0)")
		x.Drain(stale, "")
		y := suite.OpenEnv(x.T, x.DB, nil) // another process
		readd := func(spec rowfeed.FeedSpec) *rowfeed.Feed {
			x.Helper()
			if err := y.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			return y.Add(spec)
		}
		again := readd(rowfeed.FeedSpec{Name: "kv", Table: "other"})
		x.Exec("INSERT INTO other VALUES (1, 'S3CRET', 0)")
		y.Publish(again) // so that the head is no lower than that of the former feed
		x.Exec("INSERT INTO other VALUES (2, 'S3CRET', 0)")
		x.WantDrain(stale, "", `upsert {"id":1,"secret":"S3CRET","v":0}`, `upsert {"id":2,"secret":"S3CRET","v":0}`)
		x.WantSound(stale)
		x.Fetch(stale, "", 0) // the process knows the table's columns now
		readd(rowfeed.FeedSpec{Name: "kv", Table: "other", Columns: []string{"id", "v"}})
		if _, err := x.RF.Feeds(x.Ctx); err != nil { // a server lists feeds all the time
			x.Fatal(err)
		}
		x.WantDrain(stale, "", `upsert {"id":1,"v":0}`, `upsert {"id":2,"v":0}`)
		readd(rowfeed.FeedSpec{Name: "kv", Table: "other", Mode: rowfeed.ModeOutbox, Capture: "trigger"})
		x.Exec("INSERT INTO other VALUES (3, 'S3CRET', 0)")
		if n, err := stale.Publish(x.Ctx); n != 1 || err != nil {
			x.Errorf("%d records moved, want 1: %v", n, err)
		}
	})
}

// TestReplaceByDefaultsIsCaptured (H6): OR REPLACE writes the default of a column in place of NULL, and deletes the row
// that has it. Both are captured.
func TestReplaceByDefaultsIsCaptured(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_unique_defaults"))
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'xy', 'a')")
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("capture.replace_by_defaults"))
		cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":2,"ns":"xy","k":"a"}`)
		x.Exec("INSERT INTO kv VALUES (3, 'z', 'z')")
		_, cursor = x.Drain(f, cursor)
		x.Exec(x.Text("capture.update_to_defaults"))
		x.WantDrain(f, cursor, suite.Gone(2), `upsert {"id":3,"ns":"xy","k":"a"}`)
		x.WantSound(f)
	})
}

// TestTruncateInOldSnapshotIsRefused: TRUNCATE deletes rows that its transaction's snapshot does not show. It fails if
// they could not be recorded.
func TestTruncateInOldSnapshotIsRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no TRUNCATE in a transaction, or none at all
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		tx := x.Begin(sql.LevelRepeatableRead)
		x.In(tx, "SELECT * FROM kv")
		x.Exec("INSERT INTO kv VALUES (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		_, err := tx.ExecContext(x.Ctx, "TRUNCATE kv")
		if err == nil || !strings.Contains(err.Error(), "READ COMMITTED") {
			x.Errorf("TRUNCATE failed with %v", err)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Exec("TRUNCATE kv")
		x.WantDrain(f, cursor, suite.Gone(1), suite.Gone(2))
	})
}

// TestUpgradeMendsReenabledTriggers: DISABLE and ENABLE TRIGGER ALL, which pg_restore runs, leave triggers that do not
// fire for replicated rows. Verify finds that, and upgrade mends it.
func TestUpgradeMendsReenabledTriggers(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec(x.Statements("capture.disable_and_enable_triggers")...)
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 2 {
			x.Errorf("problems %q, %v", problems, err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec(x.Text("capture.insert_as_replication"))
		x.WantDrain(f, "", suite.KV(1, "a", 0))
	})
}

// TestUpgradeFollowsWiderKey (H22): the key gets a type that rowfeed's tables cannot hold. Verify finds that, and
// upgrade changes the tables.
func TestUpgradeFollowsWiderKey(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no ALTER of a type, and its columns hold anything
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id INT NOT NULL PRIMARY KEY, v INT)", "INSERT INTO kv VALUES (1, 0)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("capture.widen_key"))
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

// TestRenamedKeyIsRefused: verify and upgrade name a key column that was renamed, and change nothing. Renamed back, the
// feed works.
func TestRenamedKeyIsRefused(t *testing.T) {
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

// TestOwnerMakesPartitions (H22): the owner of a partitioned table makes partitions of it, although another login has
// made the feed.
func TestOwnerMakesPartitions(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		role := newRole(x, "owner")
		x.Exec(partitioned(x), "GRANT CREATE ON SCHEMA public TO "+role, "ALTER TABLE p OWNER TO "+role)
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec(asRole(x, role, partition(x, "p1", 0, 10), "INSERT INTO p VALUES (1, 0)"))
		x.WantDrain(f, "", `upsert {"id":1,"v":0}`)
	})
}

// TestRepublishAllKeepsHidden (M70): republishing all rows shows no row that is hidden.
func TestRepublishAllKeepsHidden(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Unpublish(x.Ctx, tx, rowfeed.Key{1}) })
		if err != nil {
			x.Fatal(err)
		}
		_, cursor := x.Drain(f, "")
		if _, err := f.Admin().RepublishWhere(x.Ctx, "", 10, nil); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor, suite.KV(2, "b", 0))
	})
}

// TestUnpublishHoldsForEverySpelling (M70): unpublish and republish of a key hold for every spelling that its collation
// takes for equal, also within a batch.
func TestUnpublishHoldsForEverySpelling(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_case_insensitive_key")...)
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
			x.Fatalf("hiding the key gave %q, want its delete", lines)
		}
		wish("show")
		x.Exec("UPDATE n SET v = 3")
		x.WantDrain(f, cursor, `upsert {"k":"fred","v":3}`)
	})
}

// TestTablesOfTheUserAreKept (H22): tables of the user that have the names of rowfeed's tables are neither used nor
// dropped.
func TestTablesOfTheUserAreKept(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, &rowfeed.Config{Prefix: rowfeed.NoPrefix})
		x.Exec("CREATE TABLE feeds (mine INT)")
		if _, err := x.RF.Migrate(x.Ctx); err == nil {
			t.Error("migrate uses the user's table")
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

// TestHalfDroppedFeedIsNoFeed: a feed whose drop was broken off is not listed, and cannot be added before it is
// dropped.
func TestHalfDroppedFeedIsNoFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Exec("UPDATE rowfeed_feeds SET state = 'dropping'") // as a killed drop leaves it if DDL commits
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
			x.Errorf("the feeds are %v, %v", feeds, err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	})
}

// TestPurgeDeletesOldestTombstones: a purge deletes the tombstones that are old enough, from the oldest on, and ends at
// the first that is not.
func TestPurgeDeletesOldestTombstones(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		for i := 1; i <= 3; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
		}
		x.Publish(f)
		x.Exec("DELETE FROM kv")
		x.Publish(f)
		ago := (40 * 24 * time.Hour).Microseconds()
		x.Exec(fmt.Sprintf(
			"UPDATE rowfeed_positions_kv SET published_at = published_at - %d WHERE feed_sync_id <= 5", ago))
		if n, err := f.Admin().Purge(x.Ctx); n != 2 || err != nil {
			x.Errorf("%d tombstones purged, %v", n, err)
		}
		x.WantSound(f)
	})
}

// TestReplaceByRowidIsCaptured (H6): OR REPLACE deletes rows by a second index on the key's columns with another
// collation, and by the hidden rowid. The deletes are captured.
func TestReplaceByRowidIsCaptured(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_second_collation")...)
		f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n"})
		x.Exec("INSERT INTO n VALUES ('a', 1)")
		_, cursor := x.Drain(f, "")
		x.Exec("REPLACE INTO n VALUES ('A', 2)")
		x.WantDrain(f, cursor, `delete {"k":"a"}`, `upsert {"k":"A","v":2}`)
		x.Exec("CREATE TABLE h (k TEXT NOT NULL PRIMARY KEY)")
		g := x.Add(rowfeed.FeedSpec{Name: "h", Table: "h"})
		x.Exec(x.Text("capture.insert_rowids"))
		_, cursor = x.Drain(g, "")
		x.Exec(x.Text("capture.replace_rowid"))
		cursor = x.WantDrain(g, cursor, `delete {"k":"a"}`, `upsert {"k":"z"}`)
		x.Exec(x.Text("capture.update_rowid_and_replace"))
		x.WantDrain(g, cursor, `delete {"k":"z"}`, `upsert {"k":"b"}`)
		x.WantSound(f)
		x.WantSound(g)
	})
}

// TestStrictKeysKeepTheirTypes: in a STRICT table 1 and '1' are two keys of a column of type ANY.
func TestStrictKeysKeepTheirTypes(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_key_of_any_type"))
		f := x.Add(rowfeed.FeedSpec{Name: "s", Table: "s"})
		x.Exec("INSERT INTO s VALUES (1, 1), ('1', 2)")
		cursor := x.WantDrain(f, "", `upsert {"k":1,"v":1}`, `upsert {"k":"1","v":2}`)
		x.Exec("DELETE FROM s WHERE v = 2")
		x.WantDrain(f, cursor, `delete {"k":"1"}`)
		x.WantSound(f)
	})
}

// TestSessionLimitsCutNoPage: sessions have by default a limit of rows, a time limit for statements, or are read-only.
// Pages are complete, and the publisher works.
func TestSessionLimitsCutNoPage(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		limits := x.Statements("capture.limits_of_session")
		if len(limits) == 0 {
			return
		}
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, limits...)
		notes := x.Statements("capture.note_time_limits")
		x.Exec(notes...)
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
		if len(notes) > 0 && x.Scalar("SELECT count(*) FROM bounds WHERE bound = '50s'") != 0 {
			x.Error("the publisher's transactions have the session's time limit")
		}
	})
}

// TestOwnTablesAreRefused: a feed of one of rowfeed's own tables is refused, since it would publish itself for ever.
func TestOwnTablesAreRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		for _, table := range []string{
			"rowfeed_sequences", "rowfeed_feeds", "rowfeed_changes_kv", "rowfeed_positions_kv",
		} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "own", Table: table}, nil)
			x.WantCode(err, rowfeed.Refused)
		}
	})
}

// TestKeyOfCompositeTypeIsRefused: a key of a composite type is refused, since a value with a NULL in it is neither
// NULL nor NOT NULL.
func TestKeyOfCompositeTypeIsRefused(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // the others have no such types
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_composite_type")...)
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "c", Table: "c"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestVerifyFindsOwnerThatCannotRead: the function of the triggers gets another owner, who may not read the table.
// Verify finds that.
func TestVerifyFindsOwnerThatCannotRead(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("ALTER FUNCTION rowfeed_kv_capture() OWNER TO " + newRole(x, "mover"))
		problems, err := f.Admin().Verify(x.Ctx)
		const problem = "the owner of function rowfeed_kv_capture"
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], problem) {
			x.Errorf("verify found %q, %v", problems, err)
		}
	})
}

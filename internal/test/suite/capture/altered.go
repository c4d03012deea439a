package capture

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLaterColumnsAreDelivered: a column that is added to the table after the feed is captured and delivered at once. A
// dropped column is delivered no more.
func TestLaterColumnsAreDelivered(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 1))
		x.Exec("ALTER TABLE kv ADD COLUMN late VARCHAR(10)", "UPDATE kv SET late = 'x'")
		cursor = x.WantDrain(f, cursor, `upsert {"id":1,"k":"a","v":1,"late":"x"}`)
		x.Exec("ALTER TABLE kv DROP COLUMN v", "UPDATE kv SET late = 'y'")
		x.WantDrain(f, cursor, `upsert {"id":1,"k":"a","late":"y"}`)
		x.WantSound(f)
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
			x.Errorf("verify found %q, %v", problems, err)
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
			x.Errorf("verify found %q, %v", problems, err)
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
			x.Errorf("upgrade failed with %v", err)
		}
		x.Exec("ALTER TABLE kv RENAME COLUMN number TO id", "INSERT INTO kv VALUES (1, 'a', 0)")
		x.WantDrain(f, "", suite.KV(1, "a", 0))
	})
}

// TestVerifyFindsOwnerThatCannotRead: the function of the triggers gets another owner, who may not read the table.
// Verify finds that.
func TestVerifyFindsOwnerThatCannotRead(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec(x.Text("capture.give_function", "rowfeed_kv_capture()", newRole(x, "mover")))
		problems, err := f.Admin().Verify(x.Ctx)
		const problem = "the owner of function rowfeed_kv_capture"
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], problem) {
			x.Errorf("verify found %q, %v", problems, err)
		}
	})
}

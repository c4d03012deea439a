package capture

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestEveryWritingStatementIsCaptured (H4): every statement that writes the table is captured, in every form that the
// database has (M12 to M14 for capture trigger; hazards 4 and 6).
func TestEveryWritingStatementIsCaptured(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100) UNIQUE, v BIGINT)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		cursor := rowfeed.Beginning
		step := func(statement string, want ...string) {
			x.Helper()
			x.Exec(statement)
			cursor = x.WantDrain(f, cursor, want...)
		}
		step("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
		step("UPDATE kv SET v = v + 10", suite.KV(1, "a", 11), suite.KV(2, "b", 12))
		step("UPDATE kv SET v = v", suite.KV(1, "a", 11), suite.KV(2, "b", 12)) // captured although no value changes
		step("UPDATE kv SET id = 3 WHERE id = 2", suite.Gone(2), suite.KV(3, "b", 12))
		// A second NULL in k would be a duplicate on SQL Server.
		step("INSERT INTO kv SELECT id + 10, CASE WHEN id = 3 THEN 'c' END, v FROM kv",
			`upsert {"id":11,"k":null,"v":11}`, suite.KV(13, "c", 12))
		step("DELETE FROM kv WHERE id > 10", suite.Gone(11), suite.Gone(13))
		step(x.Text("capture.insert_or_update"), suite.KV(1, "a", 20))
		x.Exec(x.Text("capture.insert_or_ignore"))
		lines, next := x.Drain(f, cursor)
		if cursor = next; !slices.Contains(lines, suite.KV(5, "e", 5)) || slices.Contains(lines, suite.KV(1, "a", 99)) {
			x.Fatalf("an insert that ignores row 1 gave %q", lines)
		}
		x.Exec("DELETE FROM kv", "INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.WantDrain(f, cursor, suite.Gone(3), suite.Gone(5), suite.KV(1, "again", 1))
		if x.Has.TruncateTriggers && x.Capture == feedtype.CaptureTrigger {
			step("TRUNCATE kv", suite.Gone(1))
			x.Exec(x.Statements("capture.write_in_further_ways")...)
			x.WantDrain(f, cursor, `upsert {"id":9,"k":null,"v":null}`, suite.KV(1, "a", 2),
				`upsert {"id":8,"k":null,"v":8}`)
		}
		x.WantSound(f)
	})
}

// TestUpdateToEqualValueIsCaptured (H4): an update to another value that is equal by "=" is a change.
func TestUpdateToEqualValueIsCaptured(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_equal_values"))
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec(x.Text("capture.insert_value"))
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("capture.update_to_equal_value"))
		x.WantDrain(f, cursor, "upsert "+x.Text("capture.row_of_equal_value"))
	})
}

// TestCompositeKeysMayHaveOddColumnNames: a feed has a composite key of text, number and bytes, whose columns have
// names that rowfeed uses itself or that need quotes. Entries show the key, and ParseKey accepts it as they show it.
func TestCompositeKeysMayHaveOddColumnNames(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_odd_names"))
		table := `"odd ""ta.ble"`
		quoted := dialect.Qualified(x.Dialect.Syntax, feedtype.TableName{Name: `odd "ta.ble`})
		x.Exec("INSERT INTO " + quoted + " VALUES ('it''s', 1, " + x.Text("capture.two_bytes") + ", 'x')")
		f := x.Add(rowfeed.FeedSpec{Name: "odd", Table: table})
		key := `{"seq":"it's","Größe %s":` + x.Text("capture.one_in_json") + `,"bucket":"AP8="}`
		cursor := x.WantDrain(f, "", "upsert "+strings.TrimSuffix(key, "}")+`,"a b":"x"}`)
		x.Exec("UPDATE " + quoted + " SET " + x.Dialect.Quote("seq") + " = 'moved'")
		row := strings.TrimSuffix(key, "}") + `,"a b":"x"}`
		cursor = x.WantDrain(f, cursor, "delete "+key, "upsert "+strings.Replace(row, "it's", "moved", 1))
		// ParseKey accepts a key as entries show it.
		parsed, err := f.ParseKey(strings.Replace(key, "it's", "moved", 1))
		if err != nil {
			x.Fatal(err)
		}
		stranger := append(rowfeed.Key{"stranger"}, parsed[1:]...)
		unknown, err := f.Admin().UnknownKeys(x.Ctx, parsed, stranger)
		if err != nil || len(unknown) != 1 || unknown[0][0] != "stranger" {
			x.Errorf("the unknown keys are %v, %v", unknown, err)
		}
		if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Republish(x.Ctx, tx, parsed) }); err != nil {
			x.Fatal(err)
		}
		lines, _ := x.Drain(f, cursor)
		if len(lines) != 1 {
			x.Errorf("republishing a key gave %q, want one entry", lines)
		}
		x.WantSound(f)
	})
}

// TestCascadesAreCapturedOrRefused (H21): rows that a foreign key deletes by cascade are captured. MySQL and MariaDB
// fire no trigger for them, so a feed of such a table is refused unless its specification accepts that.
func TestCascadesAreCapturedOrRefused(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE parent (id BIGINT NOT NULL PRIMARY KEY)",
			"CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, "+
				"FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)",
			"INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (7, 1)")
		spec := rowfeed.FeedSpec{Name: "child", Table: "child"}
		if x.Has.SilentCascades {
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			spec.AcceptUntriggered = true
		}
		f := x.Add(spec)
		cursor := x.WantDrain(f, "", `upsert {"id":7,"parent":1}`)
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range x.Statements("capture.delete_with_cascade") {
			if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
				x.Fatal(err)
			}
		}
		if x.Has.SilentCascades {
			x.WantRepaired(f, cursor, suite.Gone(7))
			return
		}
		x.WantDrain(f, cursor, suite.Gone(7))
	})
}

// TestPublisherFailsNoStrictWriter (H12): a writer in REPEATABLE READ or SERIALIZABLE has a snapshot that is older than
// a publication of its own keys. It does not fail, since writers and the publisher share no row (section 5 of the
// hazards).
func TestPublisherFailsNoStrictWriter(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		if x.Has.OneWriter {
			return // no writer's snapshot can be older than a publication
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		for _, isolation := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			tx := x.Begin(isolation)
			x.In(tx, "SELECT * FROM kv WHERE id = 2") // makes the snapshot
			_, cursor = x.Drain(f, cursor)            // publishes row 1, and is not in the snapshot
			x.In(tx, "UPDATE kv SET v = v + 1 WHERE id = 2",
				fmt.Sprintf("INSERT INTO kv VALUES (%d, 'n', 0)", 100+int(isolation)))
			if lines, _ := x.Drain(f, cursor); len(lines) != 0 {
				x.Errorf("before its commit, the writer's rows gave %q", lines)
			}
			x.Commit(tx)
			lines, next := x.Drain(f, cursor)
			if cursor = next; len(lines) != 2 {
				x.Errorf("the rows of a writer in %v gave %q, want two entries", isolation, lines)
			}
		}
		x.WantSound(f)
	})
}

// TestWriterRecordsWithoutTriggers: with capture app the writer records what it wrote, in its own transaction, by the
// library or with an INSERT.
func TestWriterRecordsWithoutTriggers(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"INSERT INTO kv VALUES (1, 'a', 0)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureApp})
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0)) // feed add records the rows that it finds
		x.Exec("UPDATE kv SET v = 1")
		cursor = x.WantDrain(f, cursor) // the writer has not recorded the key
		tx := x.Begin(sql.LevelDefault)
		x.In(tx, "INSERT INTO kv VALUES (2, 'b', 0)")
		if err := f.Record(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{2}, rowfeed.Key{1}); err != nil {
			x.Fatal(err)
		}
		x.Commit(tx)
		cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 0), suite.KV(1, "a", 1))
		tx = x.Begin(sql.LevelDefault)
		x.In(tx, "DELETE FROM kv WHERE id = 2", "INSERT INTO rowfeed_changes_kv (id) VALUES (2)")
		x.Commit(tx)
		cursor = x.WantDrain(f, cursor, suite.Gone(2))
		tx = x.Begin(sql.LevelDefault)
		x.In(tx, "UPDATE kv SET v = 5")
		if err := f.Record(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{1}); err != nil {
			x.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor)
		err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Record(x.Ctx, tx, rowfeed.Key{1, 2}) })
		x.WantCode(err, rowfeed.InvalidRequest)
		x.WantSound(f)
	})
}

// TestTruncateInOldSnapshotIsRefused: TRUNCATE deletes rows that its transaction's snapshot does not show. It fails if
// they could not be recorded.
func TestTruncateInOldSnapshotIsRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // other databases have no TRUNCATE in a transaction
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

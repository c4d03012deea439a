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

// TestCaptureEveryStatement (H4): every statement that writes the table is captured, in every form that the database
// has (M12 to M14 for capture trigger; hazards 4 and 6).
func TestCaptureEveryStatement(t *testing.T) {
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
		step("INSERT INTO kv SELECT id + 10, NULL, v FROM kv", `upsert {"id":11,"k":null,"v":11}`,
			`upsert {"id":13,"k":null,"v":12}`)
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

// TestReplaceCapturesDeletedRows (H6): a statement that replaces rows is captured with the rows that it deletes (hazard
// 6). SQLite fires no DELETE trigger for them.
func TestReplaceCapturesDeletedRows(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite, testdb.MariaDB, testdb.MySQL) // PostgreSQL has no REPLACE
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"CREATE UNIQUE INDEX kv_k ON kv (k)", "CREATE UNIQUE INDEX kv_v ON kv (v)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
		_, cursor := x.Drain(f, "")
		sorted := func(after rowfeed.Cursor) ([]string, rowfeed.Cursor) {
			lines, next := x.Drain(f, after)
			slices.Sort(lines)
			return lines, next
		}
		x.Exec("REPLACE INTO kv VALUES (5, 'a', 2)") // deletes rows 1 and 2
		lines, cursor := sorted(cursor)
		if want := []string{suite.Gone(1), suite.Gone(2), suite.KV(5, "a", 2)}; !slices.Equal(lines, want) {
			x.Errorf("got %q, want %q", lines, want)
		}
		if updates := x.Statements("capture.update_and_replace"); len(updates) > 0 {
			x.Exec(updates[0]) // sets k of row 4, and deletes row 3
			lines, cursor = sorted(cursor)
			if want := []string{suite.Gone(3), suite.KV(4, "c", 4)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
			x.Exec(updates[1]) // makes row 5 row 4, and deletes the former row 4
			lines, _ = sorted(cursor)
			if want := []string{suite.Gone(5), suite.KV(4, "a", 2)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
		}
		x.WantSound(f)
	})
}

// TestVerifyFindsLaterUniqueIndex (M63, H6): on SQLite the triggers depend on the unique indexes of the table. Verify
// finds that an index was added, and upgrade makes the triggers anew.
func TestVerifyFindsLaterUniqueIndex(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE UNIQUE INDEX kv_k ON kv (k)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if (len(problems) > 0) != x.Has.SilentReplace {
			x.Errorf("verify found %q", problems)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if problems, _ = f.Admin().Verify(x.Ctx); len(problems) > 0 {
			x.Errorf("after upgrade, verify found %q", problems)
		}
		if !x.Has.SilentReplace {
			return
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		_, cursor := x.Drain(f, "")
		x.Exec("REPLACE INTO kv VALUES (2, 'a', 2)")
		x.WantDrain(f, cursor, suite.Gone(1), suite.KV(2, "a", 2))
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv"}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.Exec(x.Text("capture.add_index_on_expression"))
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "refused", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}

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

// TestCompositeKeysUnderOddNames: a feed has a composite key of text, number and bytes, whose columns have names that
// rowfeed uses itself or that need quotes. Entries show the key, and ParseKey accepts it as they show it.
func TestCompositeKeysUnderOddNames(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_odd_names"))
		table := `"odd ""ta.ble"`
		quoted := dialect.Qualified(x.Dialect, feedtype.TableName{Name: `odd "ta.ble`})
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

// TestPartitionedTableIsCaptured (H11, H21): writes to a partitioned table, to a partition and to a partition that was
// attached later are captured. Check finds rows that ATTACH brings.
func TestPartitionedTableIsCaptured(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no partitions
	suite.Each(t, func(x *suite.Env) {
		if !x.Has.TruncateTriggers {
			x.Exec(x.Text("capture.table_with_two_partitions"))
			f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
			x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)")
			cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`)
			x.Exec("UPDATE p SET id = 12 WHERE id = 1")
			cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":12,"v":0}`)
			// No trigger fires. Readers get the rows no more, check finds them, and repair records them.
			x.Exec(x.Text("capture.truncate_second_partition"))
			x.WantRepaired(f, cursor, suite.Gone(11), suite.Gone(12))
			return
		}
		x.Exec(partitioned(x), partition(x, "p_a", 0, 10))
		x.Exec(x.Statements("capture.make_partitions_of_partition", "p_b", 10, 100, "p_b1", 50)...)
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)", "INSERT INTO p_b1 VALUES (12, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`, `upsert {"id":12,"v":0}`)
		x.Exec("UPDATE p SET id = 13 WHERE id = 1")
		cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":13,"v":0}`)
		x.Exec("TRUNCATE p_b1")
		cursor = x.WantDrain(f, cursor, suite.Gone(11), suite.Gone(12), suite.Gone(13))
		x.Exec("CREATE TABLE p_c (id bigint PRIMARY KEY, v int)", "INSERT INTO p_c VALUES (200, 0)",
			attach(x, "p_c", 200, 300))
		x.Exec("INSERT INTO p VALUES (201, 0)")
		cursor = x.WantDrain(f, cursor, `upsert {"id":201,"v":0}`)
		wantTold(x, f, "public.p_c")
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		// Row 201 comes again: a partition may be a rewritten copy, so its keys with positions are recorded, too.
		cursor = x.WantDrain(f, cursor, `upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`)
		x.Exec(detach(x, "p_c"))
		cursor = x.WantRepaired(f, cursor, suite.Gone(200), suite.Gone(201))
		x.Exec("TRUNCATE p_c") // records its former keys once more, although it is no partition
		x.WantDrain(f, cursor, suite.Gone(200), suite.Gone(201))
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

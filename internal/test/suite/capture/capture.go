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

// TestCaptureEveryStatement (H4): whatever writes the table is captured, in whatever
// form the database has it (M12 to M14 for trigger capture; hazards 4 and 6).
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
		step("UPDATE kv SET v = v", suite.KV(1, "a", 11), suite.KV(2, "b", 12)) // no value changes; captured all the same
		step("UPDATE kv SET id = 3 WHERE id = 2", suite.Gone(2), suite.KV(3, "b", 12))
		step("INSERT INTO kv SELECT id + 10, NULL, v FROM kv", `upsert {"id":11,"k":null,"v":11}`, `upsert {"id":13,"k":null,"v":12}`)
		step("DELETE FROM kv WHERE id > 10", suite.Gone(11), suite.Gone(13))
		upsert := map[string]string{
			"sqlite":   "INSERT INTO kv VALUES (1, 'a', 20) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
			"postgres": "INSERT INTO kv VALUES (1, 'a', 20) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
			"mysql":    "INSERT INTO kv VALUES (1, 'a', 20) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		}
		step(x.By(upsert), suite.KV(1, "a", 20))
		ignore := map[string]string{
			"sqlite":   "INSERT OR IGNORE INTO kv VALUES (1, 'a', 99), (5, 'e', 5)",
			"postgres": "INSERT INTO kv VALUES (1, 'a', 99), (5, 'e', 5) ON CONFLICT DO NOTHING",
			"mysql":    "INSERT IGNORE INTO kv VALUES (1, 'a', 99), (5, 'e', 5)",
		}
		x.Exec(x.By(ignore))
		lines, next := x.Drain(f, cursor)
		if cursor = next; !slices.Contains(lines, suite.KV(5, "e", 5)) || slices.Contains(lines, suite.KV(1, "a", 99)) {
			x.Fatalf("after ignore: %q", lines)
		}
		x.Exec("DELETE FROM kv", "INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.WantDrain(f, cursor, suite.Gone(3), suite.Gone(5), suite.KV(1, "again", 1))
		if x.Family() == "postgres" && x.Capture == feedtype.CaptureTrigger {
			step("TRUNCATE kv", suite.Gone(1))
			step("INSERT INTO kv VALUES (1, 'a', 1); COPY kv (id) FROM PROGRAM 'echo 9'; MERGE INTO kv USING (VALUES (1), (8)) s(id) ON kv.id = s.id WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL, 8)",
				`upsert {"id":9,"k":null,"v":null}`, suite.KV(1, "a", 2), `upsert {"id":8,"k":null,"v":8}`)
		}
		x.WantSound(f)
	})
}

// TestCaptureReplace (H6): statements that remove other rows on their way (hazard 6).
// SQLite fires no DELETE trigger for them.
func TestCaptureReplace(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite, testdb.MariaDB, testdb.MySQL) // PostgreSQL has no REPLACE
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "CREATE UNIQUE INDEX kv_k ON kv (k)", "CREATE UNIQUE INDEX kv_v ON kv (v)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
		_, cursor := x.Drain(f, "")
		live := func(after rowfeed.Cursor) ([]string, rowfeed.Cursor) {
			lines, next := x.Drain(f, after)
			slices.Sort(lines)
			return lines, next
		}
		x.Exec("REPLACE INTO kv VALUES (5, 'a', 2)") // removes 1 and 2
		lines, cursor := live(cursor)
		if want := []string{suite.Gone(1), suite.Gone(2), suite.KV(5, "a", 2)}; !slices.Equal(lines, want) {
			x.Errorf("got %q, want %q", lines, want)
		}
		if x.Family() == "sqlite" {
			x.Exec("UPDATE OR REPLACE kv SET k = 'c' WHERE id = 4") // removes 3
			lines, cursor = live(cursor)
			if want := []string{suite.Gone(3), suite.KV(4, "c", 4)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
			x.Exec("UPDATE OR REPLACE kv SET id = 4 WHERE id = 5") // removes the old 4
			lines, _ = live(cursor)
			if want := []string{suite.Gone(5), suite.KV(4, "a", 2)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
		}
		x.WantSound(f)
	})
}

// TestUniqueIndexAddedLater (M63, H6): on SQLite the triggers depend on the unique indexes;
// verification sees that one was added, and upgrade mends it.
func TestUniqueIndexAddedLater(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE UNIQUE INDEX kv_k ON kv (k)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if (len(problems) > 0) != (x.Family() == "sqlite") {
			x.Errorf("problems: %q", problems)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if problems, _ = f.Admin().Verify(x.Ctx); len(problems) > 0 {
			x.Errorf("after upgrade: %q", problems)
		}
		if x.Family() != "sqlite" {
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
		x.Exec("CREATE UNIQUE INDEX kv_expression ON kv (v + 1)")
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "refused", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestColumnsAddedLater: a column added
// after the feed is captured and delivered, at once.
func TestColumnsAddedLater(t *testing.T) {
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

// TestEqualValues (H4): an update that changes nothing for "=" is a change.
func TestEqualValues(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.By(map[string]string{
			"sqlite":   "CREATE TABLE kv (id INTEGER PRIMARY KEY, k TEXT COLLATE NOCASE, v NUMERIC)",
			"postgres": "CREATE TABLE kv (id bigint PRIMARY KEY, k json, v numeric)",
			"mysql":    "CREATE TABLE kv (id BIGINT PRIMARY KEY, k VARCHAR(20), v JSON)",
		}))
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		first, second := "INSERT INTO kv VALUES (1, 'fred', NULL)", "UPDATE kv SET k = 'FRED '"
		want := `upsert {"id":1,"k":"FRED ","v":null}`
		if x.Family() == "postgres" {
			first, second = `INSERT INTO kv VALUES (1, '{"a":1}', 1.0)`, `UPDATE kv SET v = 1.00`
			want = `upsert {"id":1,"k":{"a":1},"v":"1.00"}`
		}
		x.Exec(first)
		_, cursor := x.Drain(f, "")
		x.Exec(second)
		x.WantDrain(f, cursor, want)
	})
}

// TestKeysOfEveryKind: composite keys of text, bytes and decimals, under names that are rowfeed's own.
func TestKeysOfEveryKind(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.By(map[string]string{
			"sqlite":   `CREATE TABLE "odd ""ta.ble" ("seq" TEXT NOT NULL, "Größe %s" INTEGER NOT NULL, "bucket" BLOB NOT NULL, "a b" TEXT, PRIMARY KEY ("seq", "Größe %s", "bucket")) STRICT, WITHOUT ROWID`,
			"postgres": `CREATE TABLE "odd ""ta.ble" ("seq" text, "Größe %s" numeric(10,2), "bucket" bytea, "a b" text, PRIMARY KEY ("seq", "Größe %s", "bucket"))`,
			"mysql":    "CREATE TABLE `odd \"ta.ble` (`seq` CHAR(20) COLLATE utf8mb4_bin, `Größe %s` DECIMAL(10,2), `bucket` VARBINARY(10), `a b` TEXT, PRIMARY KEY (`seq`, `Größe %s`, `bucket`))",
		}))
		table := `"odd ""ta.ble"`
		quoted := dialect.Qualified(x.Dialect, feedtype.TableName{Name: `odd "ta.ble`})
		binary := x.By(map[string]string{"sqlite": "x'00ff'", "postgres": `'\x00ff'`, "mysql": "x'00ff'"})
		x.Exec("INSERT INTO " + quoted + " VALUES ('it''s', 1, " + binary + ", 'x')")
		f := x.Add(rowfeed.FeedSpec{Name: "odd", Table: table})
		number := x.By(map[string]string{"sqlite": "1", "postgres": `"1.00"`, "mysql": `"1.00"`})
		key := `{"seq":"it's","Größe %s":` + number + `,"bucket":"AP8="}`
		cursor := x.WantDrain(f, "", "upsert "+strings.TrimSuffix(key, "}")+`,"a b":"x"}`)
		x.Exec("UPDATE " + quoted + " SET " + x.Dialect.Quote("seq") + " = 'moved'")
		cursor = x.WantDrain(f, cursor, "delete "+key, strings.Replace("upsert "+strings.TrimSuffix(key, "}")+`,"a b":"x"}`, "it's", "moved", 1))
		// A key as entries show it is taken back.
		parsed, err := f.ParseKey(strings.Replace(key, "it's", "moved", 1))
		if err != nil {
			x.Fatal(err)
		}
		stranger := append(rowfeed.Key{"stranger"}, parsed[1:]...)
		if unknown, err := f.Admin().UnknownKeys(x.Ctx, parsed, stranger); err != nil || len(unknown) != 1 || unknown[0][0] != "stranger" {
			x.Errorf("unknown keys: %v (%v)", unknown, err)
		}
		if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Republish(x.Ctx, tx, parsed) }); err != nil {
			x.Fatal(err)
		}
		lines, _ := x.Drain(f, cursor)
		if len(lines) != 1 {
			x.Errorf("republished: %q", lines)
		}
		x.WantSound(f)
	})
}

// TestPartitions (H11, H21): writes to the partitioned table, to a partition and
// to one attached later; rows that ATTACH brings are found by check.
func TestPartitions(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no partitions
	suite.Each(t, func(x *suite.Env) {
		if x.Family() == "mysql" {
			x.Exec("CREATE TABLE p (id BIGINT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (100))")
			f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
			x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)")
			cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`)
			x.Exec("UPDATE p SET id = 12 WHERE id = 1")
			cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":12,"v":0}`)
			x.Exec("ALTER TABLE p TRUNCATE PARTITION b") // fires nothing: left out, found, repaired
			x.WantRepaired(f, cursor, suite.Gone(11), suite.Gone(12))
			return
		}
		x.Exec("CREATE TABLE p (id bigint, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
			"CREATE TABLE p_a PARTITION OF p FOR VALUES FROM (0) TO (10)",
			"CREATE TABLE p_b PARTITION OF p FOR VALUES FROM (10) TO (100) PARTITION BY RANGE (id)",
			"CREATE TABLE p_b1 PARTITION OF p_b FOR VALUES FROM (10) TO (50)")
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("INSERT INTO p VALUES (1, 0), (11, 0)", "INSERT INTO p_b1 VALUES (12, 0)")
		cursor := x.WantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`, `upsert {"id":12,"v":0}`)
		x.Exec("UPDATE p SET id = 13 WHERE id = 1")
		cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":13,"v":0}`)
		x.Exec("TRUNCATE p_b1")
		cursor = x.WantDrain(f, cursor, suite.Gone(11), suite.Gone(12), suite.Gone(13))
		x.Exec("CREATE TABLE p_c (id bigint PRIMARY KEY, v int)", "INSERT INTO p_c VALUES (200, 0)",
			"ALTER TABLE p ATTACH PARTITION p_c FOR VALUES FROM (200) TO (300)")
		x.Exec("INSERT INTO p VALUES (201, 0)")
		cursor = x.WantDrain(f, cursor, `upsert {"id":201,"v":0}`)
		wantTold(x, f, "public.p_c")
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		// 201 comes again: a partition may be a rewritten copy, so that its keys with positions are recorded, too.
		cursor = x.WantDrain(f, cursor, `upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`)
		x.Exec("ALTER TABLE p DETACH PARTITION p_c")
		cursor = x.WantRepaired(f, cursor, suite.Gone(200), suite.Gone(201))
		x.Exec("TRUNCATE p_c") // no longer the feed's table: at most its old keys are said to be gone once more
		x.WantDrain(f, cursor, suite.Gone(200), suite.Gone(201))
	})
}

// TestForeignKeyCascades (H21): MySQL and MariaDB fire no trigger for them, so
// such a table is refused unless told otherwise; elsewhere they are captured.
func TestForeignKeyCascades(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE parent (id BIGINT NOT NULL PRIMARY KEY)",
			"CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)",
			"INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (7, 1)")
		spec := rowfeed.FeedSpec{Name: "child", Table: "child"}
		if x.Family() == "mysql" {
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			spec.AcceptUntriggered = true
		}
		f := x.Add(spec)
		cursor := x.WantDrain(f, "", `upsert {"id":7,"parent":1}`)
		if x.Family() == "sqlite" {
			conn, err := x.DB.Admin().Conn(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			for _, s := range []string{"PRAGMA foreign_keys = ON", "DELETE FROM parent"} {
				if _, err := conn.ExecContext(x.Ctx, s); err != nil {
					x.Fatal(err)
				}
			}
		} else {
			x.Exec("DELETE FROM parent")
		}
		if x.Family() == "mysql" {
			x.WantRepaired(f, cursor, suite.Gone(7))
			return
		}
		x.WantDrain(f, cursor, suite.Gone(7))
	})
}

// TestStrictWriters (H12): writers in REPEATABLE READ and SERIALIZABLE whose snapshot is
// older than a publication of their own keys do not fail because of it (section 5
// of the hazards): they share no row with the publisher.
func TestStrictWriters(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		if x.Family() == "sqlite" {
			return // one writer at a time, no snapshot to be older than
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		for _, isolation := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			tx := x.Begin(isolation)
			x.In(tx, "SELECT * FROM kv WHERE id = 2") // takes the snapshot
			_, cursor = x.Drain(f, cursor)            // publishes under it
			x.In(tx, "UPDATE kv SET v = v + 1 WHERE id = 2", fmt.Sprintf("INSERT INTO kv VALUES (%d, 'n', 0)", 100+int(isolation)))
			if lines, _ := x.Drain(f, cursor); len(lines) != 0 {
				x.Errorf("uncommitted: %q", lines)
			}
			x.Commit(tx)
			lines, next := x.Drain(f, cursor)
			if cursor = next; len(lines) != 2 {
				x.Errorf("%v: %q", isolation, lines)
			}
		}
		x.WantSound(f)
	})
}

// TestAppCapture: without triggers the writer records what it wrote, in its own
// transaction, through the library or with one INSERT.
func TestAppCapture(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "INSERT INTO kv VALUES (1, 'a', 0)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureApp})
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0)) // rows that were there are recorded by feed add
		x.Exec("UPDATE kv SET v = 1")
		cursor = x.WantDrain(f, cursor) // nothing said so
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

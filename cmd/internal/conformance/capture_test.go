package conformance

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestCaptureEveryStatement (H4): whatever writes the table is captured, in whatever
// form the database has it (M12 to M14 for trigger capture; hazards 4 and 6).
func TestCaptureEveryStatement(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100) UNIQUE, v BIGINT)")
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		cursor := rowfeed.Beginning
		step := func(statement string, want ...string) {
			x.Helper()
			x.exec(statement)
			cursor = x.wantDrain(f, cursor, want...)
		}
		step("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)", kv(1, "a", 1), kv(2, "b", 2))
		step("UPDATE kv SET v = v + 10", kv(1, "a", 11), kv(2, "b", 12))
		step("UPDATE kv SET v = v", kv(1, "a", 11), kv(2, "b", 12)) // no value changes; captured all the same
		step("UPDATE kv SET id = 3 WHERE id = 2", gone(2), kv(3, "b", 12))
		step("INSERT INTO kv SELECT id + 10, NULL, v FROM kv", `upsert {"id":11,"k":null,"v":11}`, `upsert {"id":13,"k":null,"v":12}`)
		step("DELETE FROM kv WHERE id > 10", gone(11), gone(13))
		upsert := map[string]string{
			"sqlite":   "INSERT INTO kv VALUES (1, 'a', 20) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
			"postgres": "INSERT INTO kv VALUES (1, 'a', 20) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
			"mysql":    "INSERT INTO kv VALUES (1, 'a', 20) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		}
		step(x.by(upsert), kv(1, "a", 20))
		ignore := map[string]string{
			"sqlite":   "INSERT OR IGNORE INTO kv VALUES (1, 'a', 99), (5, 'e', 5)",
			"postgres": "INSERT INTO kv VALUES (1, 'a', 99), (5, 'e', 5) ON CONFLICT DO NOTHING",
			"mysql":    "INSERT IGNORE INTO kv VALUES (1, 'a', 99), (5, 'e', 5)",
		}
		x.exec(x.by(ignore))
		lines, next := x.drain(f, cursor)
		if cursor = next; !slices.Contains(lines, kv(5, "e", 5)) || slices.Contains(lines, kv(1, "a", 99)) {
			x.Fatalf("after ignore: %q", lines)
		}
		x.exec("DELETE FROM kv", "INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.wantDrain(f, cursor, gone(3), gone(5), kv(1, "again", 1))
		if x.family() == "postgres" && x.capture == feedtype.CaptureTrigger {
			step("TRUNCATE kv", gone(1))
			step("INSERT INTO kv VALUES (1, 'a', 1); COPY kv (id) FROM PROGRAM 'echo 9'; MERGE INTO kv USING (VALUES (1), (8)) s(id) ON kv.id = s.id WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL, 8)",
				`upsert {"id":9,"k":null,"v":null}`, kv(1, "a", 2), `upsert {"id":8,"k":null,"v":8}`)
		}
		x.wantSound(f)
	})
}

// TestCaptureReplace (H6): statements that remove other rows on their way (hazard 6).
// SQLite fires no DELETE trigger for them.
func TestCaptureReplace(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite, testdb.MariaDB, testdb.MySQL) // PostgreSQL has no REPLACE
	each(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "CREATE UNIQUE INDEX kv_k ON kv (k)", "CREATE UNIQUE INDEX kv_v ON kv (v)")
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
		_, cursor := x.drain(f, "")
		live := func(after rowfeed.Cursor) ([]string, rowfeed.Cursor) {
			lines, next := x.drain(f, after)
			slices.Sort(lines)
			return lines, next
		}
		x.exec("REPLACE INTO kv VALUES (5, 'a', 2)") // removes 1 and 2
		lines, cursor := live(cursor)
		if want := []string{gone(1), gone(2), kv(5, "a", 2)}; !slices.Equal(lines, want) {
			x.Errorf("got %q, want %q", lines, want)
		}
		if x.family() == "sqlite" {
			x.exec("UPDATE OR REPLACE kv SET k = 'c' WHERE id = 4") // removes 3
			lines, cursor = live(cursor)
			if want := []string{gone(3), kv(4, "c", 4)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
			x.exec("UPDATE OR REPLACE kv SET id = 4 WHERE id = 5") // removes the old 4
			lines, _ = live(cursor)
			if want := []string{gone(5), kv(4, "a", 2)}; !slices.Equal(lines, want) {
				x.Errorf("got %q, want %q", lines, want)
			}
		}
		x.wantSound(f)
	})
}

// TestUniqueIndexAddedLater (M63, H6): on SQLite the triggers depend on the unique indexes;
// verification sees that one was added, and upgrade mends it.
func TestUniqueIndexAddedLater(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("CREATE UNIQUE INDEX kv_k ON kv (k)")
		problems, err := f.Admin().Verify(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		if (len(problems) > 0) != (x.family() == "sqlite") {
			x.Errorf("problems: %q", problems)
		}
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Fatal(err)
		}
		if problems, _ = f.Admin().Verify(x.ctx); len(problems) > 0 {
			x.Errorf("after upgrade: %q", problems)
		}
		if x.family() != "sqlite" {
			return
		}
		x.exec("INSERT INTO kv VALUES (1, 'a', 1)")
		_, cursor := x.drain(f, "")
		x.exec("REPLACE INTO kv VALUES (2, 'a', 2)")
		x.wantDrain(f, cursor, gone(1), kv(2, "a", 2))
		_, err = x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "other", Table: "kv"}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.exec("CREATE UNIQUE INDEX kv_expression ON kv (v + 1)")
		_, err = x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "refused", Table: "kv"}, nil)
		x.wantCode(err, rowfeed.Refused)
	})
}

// TestColumnsAddedLater: a column added
// after the feed is captured and delivered, at once.
func TestColumnsAddedLater(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 1)")
		cursor := x.wantDrain(f, "", kv(1, "a", 1))
		x.exec("ALTER TABLE kv ADD COLUMN late VARCHAR(10)", "UPDATE kv SET late = 'x'")
		cursor = x.wantDrain(f, cursor, `upsert {"id":1,"k":"a","v":1,"late":"x"}`)
		x.exec("ALTER TABLE kv DROP COLUMN v", "UPDATE kv SET late = 'y'")
		x.wantDrain(f, cursor, `upsert {"id":1,"k":"a","late":"y"}`)
		x.wantSound(f)
	})
}

// TestEqualValues (H4): an update that changes nothing for "=" is a change.
func TestEqualValues(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		x.exec(x.by(map[string]string{
			"sqlite":   "CREATE TABLE kv (id INTEGER PRIMARY KEY, k TEXT COLLATE NOCASE, v NUMERIC)",
			"postgres": "CREATE TABLE kv (id bigint PRIMARY KEY, k json, v numeric)",
			"mysql":    "CREATE TABLE kv (id BIGINT PRIMARY KEY, k VARCHAR(20), v JSON)",
		}))
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		first, second := "INSERT INTO kv VALUES (1, 'fred', NULL)", "UPDATE kv SET k = 'FRED '"
		want := `upsert {"id":1,"k":"FRED ","v":null}`
		if x.family() == "postgres" {
			first, second = `INSERT INTO kv VALUES (1, '{"a":1}', 1.0)`, `UPDATE kv SET v = 1.00`
			want = `upsert {"id":1,"k":{"a":1},"v":"1.00"}`
		}
		x.exec(first)
		_, cursor := x.drain(f, "")
		x.exec(second)
		x.wantDrain(f, cursor, want)
	})
}

// TestKeysOfEveryKind: composite keys of text, bytes and decimals, under names that are rowfeed's own.
func TestKeysOfEveryKind(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		x.exec(x.by(map[string]string{
			"sqlite":   `CREATE TABLE "odd ""ta.ble" ("seq" TEXT NOT NULL, "Größe %s" INTEGER NOT NULL, "bucket" BLOB NOT NULL, "a b" TEXT, PRIMARY KEY ("seq", "Größe %s", "bucket")) STRICT, WITHOUT ROWID`,
			"postgres": `CREATE TABLE "odd ""ta.ble" ("seq" text, "Größe %s" numeric(10,2), "bucket" bytea, "a b" text, PRIMARY KEY ("seq", "Größe %s", "bucket"))`,
			"mysql":    "CREATE TABLE `odd \"ta.ble` (`seq` CHAR(20) COLLATE utf8mb4_bin, `Größe %s` DECIMAL(10,2), `bucket` VARBINARY(10), `a b` TEXT, PRIMARY KEY (`seq`, `Größe %s`, `bucket`))",
		}))
		table := `"odd ""ta.ble"`
		quoted := dialect.Qualified(x.dialect, feedtype.TableName{Name: `odd "ta.ble`})
		binary := x.by(map[string]string{"sqlite": "x'00ff'", "postgres": `'\x00ff'`, "mysql": "x'00ff'"})
		x.exec("INSERT INTO " + quoted + " VALUES ('it''s', 1, " + binary + ", 'x')")
		f := x.add(rowfeed.FeedSpec{Name: "odd", Table: table})
		number := x.by(map[string]string{"sqlite": "1", "postgres": `"1.00"`, "mysql": `"1.00"`})
		key := `{"seq":"it's","Größe %s":` + number + `,"bucket":"AP8="}`
		cursor := x.wantDrain(f, "", "upsert "+strings.TrimSuffix(key, "}")+`,"a b":"x"}`)
		x.exec("UPDATE " + quoted + " SET " + x.dialect.Quote("seq") + " = 'moved'")
		cursor = x.wantDrain(f, cursor, "delete "+key, strings.Replace("upsert "+strings.TrimSuffix(key, "}")+`,"a b":"x"}`, "it's", "moved", 1))
		// A key as entries show it is taken back.
		parsed, err := f.ParseKey(strings.Replace(key, "it's", "moved", 1))
		if err != nil {
			x.Fatal(err)
		}
		stranger := append(rowfeed.Key{"stranger"}, parsed[1:]...)
		if unknown, err := f.Admin().UnknownKeys(x.ctx, parsed, stranger); err != nil || len(unknown) != 1 || unknown[0][0] != "stranger" {
			x.Errorf("unknown keys: %v (%v)", unknown, err)
		}
		if err := f.InOwnTx(x.ctx, func(tx rowfeed.Tx) error { return f.Republish(x.ctx, tx, parsed) }); err != nil {
			x.Fatal(err)
		}
		lines, _ := x.drain(f, cursor)
		if len(lines) != 1 {
			x.Errorf("republished: %q", lines)
		}
		x.wantSound(f)
	})
}

// TestPartitions (H11, H21): writes to the partitioned table, to a partition and
// to one attached later; rows that ATTACH brings are found by check.
func TestPartitions(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no partitions
	each(t, func(x *env) {
		if x.family() == "mysql" {
			x.exec("CREATE TABLE p (id BIGINT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (100))")
			f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p"})
			x.exec("INSERT INTO p VALUES (1, 0), (11, 0)")
			cursor := x.wantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`)
			x.exec("UPDATE p SET id = 12 WHERE id = 1")
			cursor = x.wantDrain(f, cursor, gone(1), `upsert {"id":12,"v":0}`)
			x.exec("ALTER TABLE p TRUNCATE PARTITION b") // fires nothing: left out, found, repaired
			x.wantRepaired(f, cursor, gone(11), gone(12))
			return
		}
		x.exec("CREATE TABLE p (id bigint, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
			"CREATE TABLE p_a PARTITION OF p FOR VALUES FROM (0) TO (10)",
			"CREATE TABLE p_b PARTITION OF p FOR VALUES FROM (10) TO (100) PARTITION BY RANGE (id)",
			"CREATE TABLE p_b1 PARTITION OF p_b FOR VALUES FROM (10) TO (50)")
		f := x.add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.exec("INSERT INTO p VALUES (1, 0), (11, 0)", "INSERT INTO p_b1 VALUES (12, 0)")
		cursor := x.wantDrain(f, "", `upsert {"id":1,"v":0}`, `upsert {"id":11,"v":0}`, `upsert {"id":12,"v":0}`)
		x.exec("UPDATE p SET id = 13 WHERE id = 1")
		cursor = x.wantDrain(f, cursor, gone(1), `upsert {"id":13,"v":0}`)
		x.exec("TRUNCATE p_b1")
		cursor = x.wantDrain(f, cursor, gone(11), gone(12), gone(13))
		x.exec("CREATE TABLE p_c (id bigint PRIMARY KEY, v int)", "INSERT INTO p_c VALUES (200, 0)",
			"ALTER TABLE p ATTACH PARTITION p_c FOR VALUES FROM (200) TO (300)")
		x.exec("INSERT INTO p VALUES (201, 0)")
		cursor = x.wantDrain(f, cursor, `upsert {"id":201,"v":0}`)
		x.wantTold(f, "public.p_c")
		if _, err := f.Admin().Upgrade(x.ctx); err != nil {
			x.Fatal(err)
		}
		// 201 comes again: a partition may be a rewritten copy, so that its keys with positions are recorded, too.
		cursor = x.wantDrain(f, cursor, `upsert {"id":200,"v":0}`, `upsert {"id":201,"v":0}`)
		x.exec("ALTER TABLE p DETACH PARTITION p_c")
		cursor = x.wantRepaired(f, cursor, gone(200), gone(201))
		x.exec("TRUNCATE p_c") // no longer the feed's table: at most its old keys are said to be gone once more
		x.wantDrain(f, cursor, gone(200), gone(201))
	})
}

// wantRepaired asserts that check finds keys at fault, that repair records them and
// that the entries follow, in any order.
func (x *env) wantRepaired(f *rowfeed.Feed, after rowfeed.Cursor, want ...string) rowfeed.Cursor {
	x.Helper()
	findings, err := f.Admin().Check(x.ctx)
	if err != nil || len(findings) != len(want) {
		x.Fatalf("check: %+v %v, want %d findings", findings, err, len(want))
	}
	if lines, _ := x.drain(f, after); len(lines) != 0 {
		x.Fatalf("before repair: %q", lines)
	}
	if n, err := f.Admin().Repair(x.ctx); err != nil || n != int64(len(want)) {
		x.Fatalf("repair: %d %v", n, err)
	}
	lines, cursor := x.drain(f, after)
	slices.Sort(lines)
	if !slices.Equal(lines, want) {
		x.Fatalf("after repair: %q, want %q", lines, want)
	}
	x.wantSound(f)
	return cursor
}

// TestForeignKeyCascades (H21): MySQL and MariaDB fire no trigger for them, so
// such a table is refused unless told otherwise; elsewhere they are captured.
func TestForeignKeyCascades(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.exec("CREATE TABLE parent (id BIGINT NOT NULL PRIMARY KEY)",
			"CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)",
			"INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (7, 1)")
		spec := rowfeed.FeedSpec{Name: "child", Table: "child"}
		if x.family() == "mysql" {
			_, err := x.rf.AddFeed(x.ctx, spec, nil)
			x.wantCode(err, rowfeed.Refused)
			spec.AcceptUntriggered = true
		}
		f := x.add(spec)
		cursor := x.wantDrain(f, "", `upsert {"id":7,"parent":1}`)
		if x.family() == "sqlite" {
			conn, err := x.db.Admin().Conn(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			for _, s := range []string{"PRAGMA foreign_keys = ON", "DELETE FROM parent"} {
				if _, err := conn.ExecContext(x.ctx, s); err != nil {
					x.Fatal(err)
				}
			}
		} else {
			x.exec("DELETE FROM parent")
		}
		if x.family() == "mysql" {
			x.wantRepaired(f, cursor, gone(7))
			return
		}
		x.wantDrain(f, cursor, gone(7))
	})
}

// TestStrictWriters (H12): writers in REPEATABLE READ and SERIALIZABLE whose snapshot is
// older than a publication of their own keys do not fail because of it (section 5
// of the hazards): they share no row with the publisher.
func TestStrictWriters(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		if x.family() == "sqlite" {
			return // one writer at a time, no snapshot to be older than
		}
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.drain(f, "")
		for _, isolation := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			tx := x.begin(isolation)
			x.in(tx, "SELECT * FROM kv WHERE id = 2") // takes the snapshot
			_, cursor = x.drain(f, cursor)            // publishes under it
			x.in(tx, "UPDATE kv SET v = v + 1 WHERE id = 2", fmt.Sprintf("INSERT INTO kv VALUES (%d, 'n', 0)", 100+int(isolation)))
			if lines, _ := x.drain(f, cursor); len(lines) != 0 {
				x.Errorf("uncommitted: %q", lines)
			}
			x.commit(tx)
			lines, next := x.drain(f, cursor)
			if cursor = next; len(lines) != 2 {
				x.Errorf("%v: %q", isolation, lines)
			}
		}
		x.wantSound(f)
	})
}

// TestAppCapture: without triggers the writer records what it wrote, in its own
// transaction, through the library or with one INSERT.
func TestAppCapture(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "INSERT INTO kv VALUES (1, 'a', 0)")
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureApp})
		cursor := x.wantDrain(f, "", kv(1, "a", 0)) // rows that were there are recorded by feed add
		x.exec("UPDATE kv SET v = 1")
		cursor = x.wantDrain(f, cursor) // nothing said so
		tx := x.begin(sql.LevelDefault)
		x.in(tx, "INSERT INTO kv VALUES (2, 'b', 0)")
		if err := f.Record(x.ctx, rowfeed.InTx(tx), rowfeed.Key{2}, rowfeed.Key{1}); err != nil {
			x.Fatal(err)
		}
		x.commit(tx)
		cursor = x.wantDrain(f, cursor, kv(2, "b", 0), kv(1, "a", 1))
		tx = x.begin(sql.LevelDefault)
		x.in(tx, "DELETE FROM kv WHERE id = 2", "INSERT INTO rowfeed_changes_kv (id) VALUES (2)")
		x.commit(tx)
		cursor = x.wantDrain(f, cursor, gone(2))
		tx = x.begin(sql.LevelDefault)
		x.in(tx, "UPDATE kv SET v = 5")
		if err := f.Record(x.ctx, rowfeed.InTx(tx), rowfeed.Key{1}); err != nil {
			x.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.wantDrain(f, cursor)
		err := f.InOwnTx(x.ctx, func(tx rowfeed.Tx) error { return f.Record(x.ctx, tx, rowfeed.Key{1, 2}) })
		x.wantCode(err, rowfeed.InvalidRequest)
		x.wantSound(f)
	})
}

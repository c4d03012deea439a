package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Every way to write a row makes a change of its key.
func TestTriggersSeeEveryStatement(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE kv (id int PRIMARY KEY, k varchar(20) NOT NULL UNIQUE, v varchar(20))")
		h.sql("INSERT INTO kv VALUES (1, 'a', 'before'), (2, 'b', 'before')")
		f := h.add(h.open(), "kv")
		at := h.expect(f, "", `1 upsert {"id":1} {"id":1,"k":"a","v":"before"}`,
			`2 upsert {"id":2} {"id":2,"k":"b","v":"before"}`)
		h.sql("REPLACE INTO kv VALUES (3, 'a', 'replaced')") // deletes the row with id 1
		at = h.expect(f, at, `3 delete {"id":1}`, `4 upsert {"id":3} {"id":3,"k":"a","v":"replaced"}`)
		h.sql("INSERT INTO kv VALUES (9, 'b', 'x') ON DUPLICATE KEY UPDATE v = 'merged'")
		at = h.expect(f, at, `5 upsert {"id":2} {"id":2,"k":"b","v":"merged"}`)
		h.sql("INSERT IGNORE INTO kv VALUES (2, 'z', 'ignored'), (4, 'c', 'new')")
		at = h.expect(f, at, `6 upsert {"id":4} {"id":4,"k":"c","v":"new"}`)
		h.sql("UPDATE kv SET id = 5 WHERE id = 4") // a changed key records the old and the new key
		at = h.expect(f, at, `7 delete {"id":4}`, `8 upsert {"id":5} {"id":5,"k":"c","v":"new"}`)
		h.sql("UPDATE kv SET id = id + 10 ORDER BY id DESC")
		at = h.expect(f, at, `9 delete {"id":5}`, `10 upsert {"id":15} {"id":15,"k":"c","v":"new"}`,
			`11 delete {"id":3}`,
			`12 upsert {"id":13} {"id":13,"k":"a","v":"replaced"}`, `13 delete {"id":2}`,
			`14 upsert {"id":12} {"id":12,"k":"b","v":"merged"}`)
		h.sql("UPDATE kv SET v = v WHERE id = 15")
		h.sql("DELETE FROM kv WHERE id = 13")
		h.sql("ALTER TABLE kv ADD COLUMN late int")
		h.sql("UPDATE kv SET late = 1 WHERE id = 12")
		h.expect(f, at, `15 upsert {"id":15} {"id":15,"k":"c","v":"new","late":null}`, `16 delete {"id":13}`,
			`17 upsert {"id":12} {"id":12,"k":"b","v":"merged","late":1}`)
	})
}

// Hazard 4: a change between values that a collation regards as equal is recorded. A key whose text changes, while the
// collation regards it as equal, is the same key, and keeps its first text (V1).
func TestChangesOfEqualCollatedValuesAreRecorded(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE names (k varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v varchar(20) COLLATE " +
			"utf8mb4_general_ci)")
		h.sql("INSERT INTO names VALUES ('fred', 'Müller')")
		f := h.add(h.open(), "names")
		at := h.expect(f, "", `1 upsert {"k":"fred"} {"k":"fred","v":"Müller"}`)
		h.sql("UPDATE names SET v = 'MULLER '")
		at = h.expect(f, at, `2 upsert {"k":"fred"} {"k":"fred","v":"MULLER "}`)
		h.sql("UPDATE names SET k = 'FRED '")
		at = h.expect(f, at, `3 upsert {"k":"fred"} {"k":"FRED ","v":"MULLER "}`)
		h.sql("UPDATE names SET k = 'Frëd'; UPDATE names SET k = 'fred'; UPDATE names SET v = 'x'")
		// two texts took two positions, the last one remains
		at = h.expect(f, at, `5 upsert {"k":"fred"} {"k":"fred","v":"x"}`)
		h.sql("DELETE FROM names")
		at = h.expect(f, at, `6 delete {"k":"fred"}`)
		h.sql("INSERT INTO names VALUES ('FREd', '')")
		h.expect(f, at, `7 upsert {"k":"fred"} {"k":"FREd","v":""}`)
	})
}

// The triggers do not change what the application reads of its session.
func TestTriggersLeaveTheSessionAlone(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int) AUTO_INCREMENT = 1000")
		h.add(h.open(), "t")
		conn, err := h.pool().Conn(h.ctx())
		h.must(err)
		defer conn.Close()
		for i := range 3 {
			res, err := conn.ExecContext(h.ctx(), "INSERT INTO t (v) VALUES (1), (2)")
			h.must(err)
			id, _ := res.LastInsertId()
			n, _ := res.RowsAffected()
			var last, identity int64
			h.must(conn.QueryRowContext(h.ctx(), "SELECT LAST_INSERT_ID(), @@identity").Scan(&last, &identity))
			if want := int64(1000 + 2*i); id != want || last != want || identity != want || n != 2 {
				t.Errorf("driver %d, LAST_INSERT_ID %d, @@identity %d, rows %d; want %d and 2 rows", id, last,
					identity, n, want)
			}
		}
		_, err = conn.ExecContext(h.ctx(), "UPDATE t SET v = v + 1 WHERE id = 1000")
		h.must(err)
		var last int64
		h.must(conn.QueryRowContext(h.ctx(), "SELECT LAST_INSERT_ID()").Scan(&last))
		if last != 1004 {
			t.Errorf("LAST_INSERT_ID after an UPDATE is %d, want 1004", last)
		}
	})
}

// Hazard 22: a session without rights on rowfeed's tables can still write, and so can a session with a less strict
// sql_mode than rowfeed's.
func TestWritersNeedNoRightsOnRowfeedTables(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (day date NOT NULL, v int, PRIMARY KEY (day))")
		f := h.add(h.open(), "t")
		user := "w_" + h.Name
		h.sql("CREATE USER " + user + "@'%' IDENTIFIED BY 'secret'")
		t.Cleanup(func() { h.sql("DROP USER " + user) })
		h.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON " + h.Name + ".t TO " + user)
		db := h.as(user, "secret", "sql_mode=%27%27")
		for _, q := range []string{"INSERT INTO t VALUES ('0000-00-00', 1), ('2026-01-01', 1)", "UPDATE t SET v = 2",
			"DELETE FROM t WHERE day = '2026-01-01'"} {
			if _, err := db.ExecContext(h.ctx(), q); err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
		_, err := db.ExecContext(h.ctx(), "SELECT 1 FROM rowfeed_changes_t")
		if mysql.New().Classify(err) != dialect.ClassPermission {
			t.Errorf("reading rowfeed's table answered %v", err)
		}
		h.expect(f, "", `1 upsert {"day":"0000-00-00"} {"day":"0000-00-00","v":2}`)
	})
}

// rowfeed's tables may be in another database than the source. Two instances of rowfeed on one table share no trigger.
func TestRowfeedTablesMayBeInAnotherDatabase(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE `odd ``name.✓` (`the key` int PRIMARY KEY, seq int)")
		var feeds []*rowfeed.Feed
		for _, schema := range []string{h.Name + "_a", h.Name + "_b", h.Name} {
			if schema != h.Name {
				h.sql("CREATE DATABASE " + schema)
				t.Cleanup(func() { h.sql("DROP DATABASE " + schema) })
			}
			db, err := rowfeed.Open(h.ctx(), h.pool(), mysql.New(), &rowfeed.Config{Schema: schema})
			h.must(err)
			_, err = db.Migrate(h.ctx())
			h.must(err)
			f, err := db.AddFeed(h.ctx(), rowfeed.FeedSpec{Name: "f", Table: `"odd ` + "`" + `name.✓"`}, nil)
			h.must(err)
			feeds = append(feeds, f)
		}
		if n := h.one("SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?", h.Name); n != "9" {
			t.Errorf("%s triggers, want 9", n)
		}
		h.sql("INSERT INTO `odd ``name.✓` VALUES (1, 2)")
		for _, f := range feeds {
			h.expect(f, "", `1 upsert {"the key":1} {"the key":1,"seq":2}`)
			if problems, err := f.Admin().Verify(h.ctx()); err != nil || len(problems) > 0 {
				t.Errorf("verify: %v %v", problems, err)
			}
		}
	})
}

// The column names of rowfeed's tables do not collide with those of key columns, and the longest names fit.
func TestColumnNamesNeverCollide(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE DATABASE " + h.Name + "_x")
		t.Cleanup(func() { h.sql("DROP DATABASE " + h.Name + "_x") })
		h.sql("CREATE TABLE t (seq int, kind varchar(10), `select` int, PRIMARY KEY (seq, kind, `select`))")
		name := strings.Repeat("n", 39)
		for _, schema := range []string{"", h.Name + "_x"} {
			db, err := rowfeed.Open(h.ctx(), h.pool(), mysql.New(),
				&rowfeed.Config{Prefix: "prefix_of_12", Schema: schema})
			h.must(err)
			_, err = db.Migrate(h.ctx())
			h.must(err)
			f, err := db.AddFeed(h.ctx(), rowfeed.FeedSpec{Name: name, Table: h.Name + ".t"}, nil)
			h.must(err)
			h.sql("REPLACE INTO t VALUES (1, 'a', 2)")
			got, _ := func() ([]string, rowfeed.Cursor) { h.publish(f); return h.drain(f, "") }()
			if len(got) != 1 || !strings.HasSuffix(got[0], `upsert {"seq":1,"kind":"a","select":2} {"seq":1,`+
				`"kind":"a","select":2}`) {
				t.Errorf("got %q", got)
			}
		}
	})
}

// If FeedUp is interrupted after any statement, running it again completes it. The same holds for FeedDown, also if the
// source table no longer exists. Afterwards nothing of the feed is left.
func TestUpAndDownCanBeRepeated(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (a int, b varchar(700) COLLATE utf8mb4_bin, v int, PRIMARY KEY (a, b)) " +
			"ROW_FORMAT=DYNAMIC")
		before := h.Dump(t)
		d := mysql.New()
		f, table := h.feed("t")
		up, err := d.FeedUp(f, table)
		h.must(err)
		verify := func() []string {
			problems, err := d.Verify(h.ctx(), dialect.On(h.Admin()), f, table)
			h.must(err)
			return problems
		}
		for n := range up {
			h.steps(up[:n], nil)
			h.steps(up, nil)
			if problems := verify(); len(problems) > 0 {
				t.Errorf("after %d statements and a second run: %v", n, problems)
			}
			down := d.FeedDown(f, nil)
			h.steps(down[:n%len(down)], nil)
			h.steps(down, nil)
			if after := h.Dump(t); after != before {
				t.Fatalf("after a drop the schema is\n%s\nand was\n%s", after, before)
			}
		}
		if len(verify()) != 5 {
			t.Errorf("verify of a feed without triggers and tables: %q", verify())
		}
		h.steps(up, nil)
		h.sql("DROP TABLE t")
		h.steps(d.FeedDown(f, nil), nil)
		if n := h.one("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", h.Name); n != "0" {
			t.Errorf("%s tables left", n)
		}
	})
}

// Verify describes each problem in one sentence. Repair fixes it, and never removes a working trigger of an event
// before there is a new one.
func TestRepairFixesWhatVerifyFinds(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		create := "CREATE TABLE t (k varchar(10) COLLATE utf8mb4_general_ci PRIMARY KEY, v int)"
		h.sql(create)
		d := mysql.New()
		q := dialect.On(h.Admin())
		f, table := h.feed("t")
		stale := func(name, event string) string {
			return "CREATE TRIGGER " + name + " AFTER " + event + " ON t FOR EACH ROW INSERT INTO rowfeed_changes_t " +
				"(k, kind) VALUES ('stale', 0)"
		}
		for name, c := range map[string]struct {
			damage, want string
			steps        int // statements of Repair that create or drop a trigger
		}{
			"missing": {"DROP TRIGGER rowfeed_t_update", "table " +
				table.Name.String() + " has no trigger rowfeed_t_update: its UPDATEs are not recorded", 1},
			"all missing": {"DROP TRIGGER rowfeed_t_insert; DROP TRIGGER rowfeed_t_update; DROP TRIGGER " +
				"rowfeed_t_delete", "table " + table.Name.String() +
				" has no trigger rowfeed_t_update: its UPDATEs are not recorded, or this login has not the right " +
				"TRIGGER on the table, without which it sees none", 3},
			"stale": {"DROP TRIGGER rowfeed_t_delete; " + stale("rowfeed_t_delete", "DELETE"),
				"trigger rowfeed_t_delete on table " + table.Name.String() + " is not the one that rowfeed makes", 2},
			"stale twice": {"DROP TRIGGER rowfeed_t_delete; " + stale("rowfeed_t_delete", "DELETE") + "; " +
				stale("rowfeed_t_delete_2", "DELETE"), "trigger rowfeed_t_delete on table " +
				table.Name.String() + " is not the one that rowfeed makes", 3},
			"left over": {stale("rowfeed_t_insert_2", "INSERT"),
				"trigger rowfeed_t_insert_2 on table t is left over", 1},
			"swapped": {"RENAME TABLE t TO t_old; CREATE TABLE t LIKE t_old",
				"trigger rowfeed_t_insert is on table t_old instead of t", 6},
			"lost table": {"DROP TABLE rowfeed_positions_t", "table " + f.Positions().String() + " is missing", 0},
			"wider key": {"ALTER TABLE t MODIFY k varchar(20) COLLATE utf8mb4_general_ci",
				"column k of table " + f.Changes().String() + " is not varchar(20) CHARACTER SET utf8mb4 COLLATE " +
					"utf8mb4_general_ci, as in table " + table.Name.String(), 0},
			"other rules": {"ALTER TABLE t MODIFY k varchar(20) COLLATE utf8mb4_bin",
				"column k of table " + f.Changes().String() + " is not varchar(20) CHARACTER SET utf8mb4 COLLATE " +
					"utf8mb4_bin, as in table " + table.Name.String(), 0},
			"wrong timing": {"DROP TRIGGER rowfeed_t_insert; CREATE TRIGGER rowfeed_t_insert BEFORE INSERT ON t FOR " +
				"EACH ROW INSERT INTO `rowfeed_changes_t` (`k`) VALUES (NEW.`k`)", "trigger rowfeed_t_insert on " +
				"table " + table.Name.String() + " is not the one that rowfeed makes", 2},
		} {
			t.Run(name, func(t *testing.T) {
				h := &harness{T: t, Database: h.Database}
				h.sql("DROP TABLE IF EXISTS t, t_old; " + create)
				h.steps(d.FeedDown(f, nil), nil)
				h.steps(d.FeedUp(f, table))
				h.sql(c.damage)
				now, err := d.Describe(h.ctx(), q, feedtype.TableName{Name: "t"})
				h.must(err)
				problems, err := d.Verify(h.ctx(), q, f, now)
				h.must(err)
				if !slices.Contains(problems, c.want) {
					t.Errorf("Verify returned %q, want %q", problems, c.want)
				}
				steps, err := d.Repair(h.ctx(), q, f, now)
				h.must(err)
				events := func() string {
					return h.one("SELECT GROUP_CONCAT(DISTINCT EVENT_MANIPULATION ORDER BY 1) FROM "+
						"information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = "+
						"'t'", h.Name)
				}
				had, n := events(), 0
				for _, s := range steps {
					h.sql(s.SQL)
					if strings.Contains(s.SQL, "TRIGGER") {
						n++
					}
					if now := events(); len(now) < len(had) {
						t.Errorf("after %s only %s are recorded, before %s", s.SQL, now, had)
					}
				}
				if n != c.steps {
					t.Errorf("%d steps with triggers, want %d: %v", n, c.steps, steps)
				}
				if problems, err = d.Verify(h.ctx(), q, f, now); err != nil || len(problems) > 0 {
					t.Errorf("after the repair: %q %v", problems, err)
				}
				h.sql("INSERT INTO t VALUES ('x', 1); UPDATE t SET v = 2; DELETE FROM t")
				if n := h.one("SELECT COUNT(*) FROM rowfeed_changes_t WHERE k = 'x'"); n != "3" {
					t.Errorf("%s changes, want 3", n)
				}
			})
		}
	})
}

// Keys that a trigger could not record exactly are refused. So is a script for a table in another database if it does
// not name the database of rowfeed's tables.
func TestFeedUpRefusesInexactKeys(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int, at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id, at))")
		_, err := h.open().AddFeed(h.ctx(), rowfeed.FeedSpec{Name: "t", Table: "t"}, nil)
		if !errors.Is(err, rowfeed.Refused) || !strings.Contains(err.Error(), "TIMESTAMP") {
			t.Errorf("a TIMESTAMP as key: %v", err)
		}
		_, err = rowfeed.PrintFeed(mysql.New(), nil, rowfeed.FeedSpec{Name: "t", Table: "other.t",
			Key: []string{"id:bigint"}})
		if err == nil || !strings.Contains(err.Error(), "--schema") {
			t.Errorf("print: %v", err)
		}
	})
}

// A printed script makes the same feed as AddFeed.
func TestPrintedScriptMakesSameFeed(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id bigint PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
		db := h.open()
		steps, err := rowfeed.PrintFeed(mysql.New(), nil, rowfeed.FeedSpec{Name: "t", Table: "t",
			Key: []string{"id:bigint"}})
		h.must(err)
		conn, err := h.pool().Conn(h.ctx())
		h.must(err)
		defer conn.Close()
		for _, s := range steps {
			if _, err := conn.ExecContext(h.ctx(), s.SQL); err != nil {
				t.Fatalf("%v\n%s", err, s.SQL)
			}
		}
		f, err := db.Feed(h.ctx(), "t")
		h.must(err)
		h.sql("UPDATE t SET v = 2")
		h.expect(f, "", `1 upsert {"id":1} {"id":1,"v":2}`)
	})
}

// as opens a pool as another user.
func (h *harness) as(user, password string, params ...string) *sql.DB {
	h.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/%s?allowNativePasswords=true&%s", user,
		password, h.Server().Port, h.Name, strings.Join(params, "&")))
	h.must(err)
	h.Cleanup(func() { _ = db.Close() })
	return db
}

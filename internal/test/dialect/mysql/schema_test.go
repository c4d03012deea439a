package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// DDL waits a second for a long transaction, and then lets the writers behind it continue.
func TestSchemaLockIsBounded(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY)")
		d := mysql.New()
		names := dialect.Names{Schema: h.Name, Prefix: "rowfeed_"}
		pool := h.pool()
		pool.SetMaxOpenConns(2)
		open, err := h.pool().BeginTx(h.ctx(), nil)
		h.must(err)
		defer open.Rollback()
		_, err = open.ExecContext(h.ctx(), "INSERT INTO t VALUES (1)")
		h.must(err)
		err = d.WithSchemaLock(h.ctx(), pool, names, func(q dialect.Querier) error {
			_, err := q.Exec(h.ctx(), "CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW SET @x = 1")
			return err
		})
		if d.Classify(err) != dialect.ClassLockTimeout {
			t.Errorf("behind a long transaction: %v", err)
		}
		h.sql("INSERT INTO t VALUES (2)")
	})
}

// There is one schema change at a time for a database and prefix. The lock is released when the function returns,
// fails, or its context ends.
func TestSchemaLockIsExclusive(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d := mysql.New()
		names := dialect.Names{Schema: h.Name, Prefix: "rowfeed_"}
		pool := h.pool()
		lock := func(n dialect.Names, fn func(dialect.Querier) error) error {
			return d.WithSchemaLock(h.ctx(), h.pool(), n, fn) // a session can acquire a lock more than once
		}
		nothing := func(dialect.Querier) error { return nil }
		h.must(lock(names, func(dialect.Querier) error {
			if err := lock(names, nothing); d.Classify(err) != dialect.ClassLockTimeout {
				t.Errorf("a second holder: %v", err)
			}
			return errors.Join(lock(dialect.Names{Schema: h.Name, Prefix: "other_"}, nothing),
				lock(dialect.Names{Schema: "elsewhere", Prefix: "rowfeed_"}, nothing))
		}))
		h.must(lock(names, nothing))
		failure := errors.New("failure")
		if err := lock(names, func(dialect.Querier) error { return failure }); err != failure {
			t.Errorf("got %v", err)
		}
		h.must(lock(names, nothing))
		ctx, cancel := context.WithCancel(h.ctx())
		err := d.WithSchemaLock(ctx, pool, names, func(q dialect.Querier) error {
			cancel()
			_, err := q.Exec(ctx, "DO 1")
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		h.must(lock(names, nothing))
		if err := d.WithSchemaLock(h.ctx(), h.pool("autocommit=0"), names, nothing); err == nil ||
			!strings.Contains(err.Error(), "autocommit") {
			t.Errorf("without autocommit: %v", err)
		}
	})
}

// Down removes what Up made. Both can be repeated after an interruption anywhere. A version that is recorded is not
// repeated.
func TestMigrationsCanBeRepeated(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d := mysql.New()
		names := dialect.Names{Schema: h.Name, Prefix: "p_"}
		before := h.Dump(t)
		var up, down []string
		for _, m := range d.Migrations(names) {
			up, down = append(up, m.Up...), append(slices.Clone(m.Down), down...)
		}
		run := func(list []string) {
			for _, s := range list {
				h.sql(s)
			}
		}
		for n := range up {
			run(up[:n])
			recorded, err := d.SchemaVersion(h.ctx(), dialect.On(h.Admin()), names)
			h.must(err)
			for _, m := range d.Migrations(names) {
				if m.Version > recorded {
					run(m.Up)
				}
			}
			run(down[:n%len(down)])
			run(down)
			if v, err := d.SchemaVersion(h.ctx(), dialect.On(h.Admin()), names); v != 0 || err != nil {
				t.Errorf("version %d, %v", v, err)
			}
		}
		if after := h.Dump(t); after != before {
			t.Errorf("left over: %s", after)
		}
	})
}

func TestDescribeReadsStructureOfTables(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		d := mysql.New()
		maria := h.Engine == testdb.MariaDB
		for _, q := range []string{
			"CREATE TABLE parent (id int PRIMARY KEY)",
			"CREATE TABLE t (b int NOT NULL, a varchar(20) CHARACTER SET latin1 COLLATE latin1_bin, n varchar(20) " +
				"NOT NULL, p int, UNIQUE KEY u (n, b), UNIQUE KEY half (n(5)), PRIMARY KEY (b), KEY plain (a))",
			"CREATE TABLE child (id int PRIMARY KEY, a int, b int, c int, d int, FOREIGN KEY one (a) REFERENCES " +
				"parent (id) ON DELETE CASCADE, FOREIGN KEY two (b) REFERENCES parent (id) ON UPDATE SET NULL, " +
				"FOREIGN KEY three (c) REFERENCES parent (id), FOREIGN KEY four (d) REFERENCES parent (id) ON " +
				"DELETE RESTRICT)",
			"CREATE VIEW v AS SELECT * FROM t",
			"CREATE TABLE m (id int PRIMARY KEY) ENGINE=MyISAM",
			"CREATE TABLE parts (id int, r int, PRIMARY KEY (id, r)) PARTITION BY RANGE (r) (PARTITION a VALUES LESS " +
				"THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
			"CREATE TABLE made (id int PRIMARY KEY, v varchar(20), g varchar(20) GENERATED ALWAYS AS (UPPER(v)) " +
				"VIRTUAL NOT NULL, UNIQUE KEY (g))",
		} {
			if maria {
				q = strings.Replace(q, "VIRTUAL NOT NULL", "VIRTUAL", 1)
			}
			h.sql(q)
		}
		describe := func(name string) *dialect.Table {
			t.Helper()
			table, err := d.Describe(h.ctx(), dialect.On(h.Admin()), feedtype.TableName{Name: name})
			h.must(err)
			return table
		}
		table := describe("t")
		if table.Name != (feedtype.TableName{Schema: h.Name, Name: "t"}) {
			t.Errorf("name %v", table.Name)
		}
		var unique []string
		for _, ix := range table.Unique {
			names, ok := ix.Names()
			unique = append(unique, fmt.Sprintf("%s %v %v %v", ix.Name, ix.Primary, names, ok))
		}
		if !slices.Equal(unique, []string{"PRIMARY true [b] true", "half false [] false", "u false [n b] true"}) {
			t.Errorf("unique %q", unique)
		}
		a := table.Column("a")
		if a.Decl != "varchar(20) CHARACTER SET latin1 COLLATE latin1_bin" || !a.Nullable || a.Exact ||
			table.Columns[0].Name != "b" || !table.Columns[0].Exact {
			t.Errorf("columns %+v", table.Columns)
		}
		if u := describe("child").Untriggered; len(u) != 2 || !strings.Contains(u[0], "ON DELETE CASCADE") ||
			!strings.Contains(u[1], "ON UPDATE SET NULL") {
			t.Errorf("untriggered %q", u)
		}
		for name, want := range map[string]string{"v": "view", "m": "MyISAM", "t": "", "parts": "", "parent": "",
			"child": ""} {
			if got := describe(name).Refusals; want == "" && got != nil || want != "" &&
				(len(got) != 1 || !strings.Contains(got[0], want)) {
				t.Errorf("%s: refusals %q", name, got)
			}
		}
		_, err := d.Describe(h.ctx(), dialect.On(h.Admin()), feedtype.TableName{Name: "none"})
		if !errors.Is(err, dialect.ErrNoTable) {
			t.Errorf("a missing table: %v", err)
		}
		h.sql("CREATE TABLE accents (id int PRIMARY KEY, é int)")
		latin1 := dialect.On(h.pool("charset=latin1"))
		if plain, err := d.Describe(h.ctx(), latin1, feedtype.TableName{Name: "t"}); err != nil ||
			plain.Signature != table.Signature {
			t.Errorf("over a connection in latin1: %v, %v", plain, err)
		}
		if _, err := d.Describe(h.ctx(), latin1, feedtype.TableName{Name: "accents"}); err == nil ||
			!strings.Contains(err.Error(), "utf8mb4") {
			t.Errorf("names beyond ASCII over a connection in latin1: %v", err)
		}
		if maria {
			h.sql("CREATE SEQUENCE s; CREATE TABLE long_key (k text NOT NULL, UNIQUE KEY (k))")
			if got := describe("s").Refusals; len(got) != 1 || !strings.Contains(got[0], "sequence") {
				t.Errorf("a sequence: %q", got)
			}
			if _, ok := describe("long_key").Unique[0].Names(); ok {
				t.Error("an index over hashes counts as an index of columns")
			}
		} else {
			h.sql("CREATE UNIQUE INDEX f ON t ((UPPER(n)))")
			if i := slices.IndexFunc(describe("t").Unique, func(
				ix dialect.Index) bool {
				return ix.Name == "f"
			}); i < 0 ||
				describe("t").Unique[i].Columns[0].Name != "" {
				t.Error("an index over an expression counts as an index of columns")
			}
		}
	})
}

// Tables of every kind that is not refused make working feeds.
func TestEveryAcceptedKindOfTableMakesAFeed(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		db := h.open()
		notNull := " NOT NULL"
		if h.Engine == testdb.MariaDB {
			notNull = "" // a generated column cannot be declared NOT NULL there
		}
		for name, c := range map[string]struct {
			create string
			key    []string
			only   testdb.Engine
		}{
			"partitioned": {"(id int, v int, PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 4", nil,
				testdb.Engine{}},
			"compressed": {"(id int, v int, PRIMARY KEY (id)) ROW_FORMAT=COMPRESSED", nil, testdb.Engine{}},
			"made": {"(x int PRIMARY KEY, v int, id int GENERATED ALWAYS AS (x) VIRTUAL" +
				notNull + ", UNIQUE KEY (id))", []string{"id"}, testdb.MySQL},
			"kept": {"(x int PRIMARY KEY, v int, id int GENERATED ALWAYS AS (x) STORED" +
				notNull + ", UNIQUE KEY (id))", []string{"id"}, testdb.MySQL},
			"invisible": {"(id int INVISIBLE DEFAULT 1, v int, PRIMARY KEY (id))", nil, testdb.Engine{}},
			"versioned": {"(id int PRIMARY KEY, v int) WITH SYSTEM VERSIONING", nil, testdb.MariaDB},
			"periods": {"(id int PRIMARY KEY, v int, s timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE, e " +
				"timestamp(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM " +
				"VERSIONING", nil, testdb.MariaDB},
		} {
			if c.only.Name != "" && c.only != h.Engine {
				continue
			}
			t.Run(name, func(t *testing.T) {
				h := &harness{T: t, Database: h.Database}
				h.sql("CREATE TABLE " + name + " " + c.create)
				f, err := db.AddFeed(h.ctx(), rowfeed.FeedSpec{Name: name, Table: name, Key: c.key,
					Columns: []string{"id", "v"}}, nil)
				h.must(err)
				id := "id"
				if c.key != nil {
					id = "x"
				}
				h.sql("INSERT INTO " + name + " (" + id + ", v) VALUES (1, 1), (2, 2)")
				at := h.expect(f, "", `1 upsert {"id":1} {"id":1,"v":1}`, `2 upsert {"id":2} {"id":2,"v":2}`)
				h.sql("UPDATE " + name + " SET v = 9, " + id + " = 3 WHERE " + id + " = 1")
				at = h.expect(f, at, `3 delete {"id":1}`, `4 upsert {"id":3} {"id":3,"v":9}`)
				h.sql("REPLACE INTO " + name + " (" + id + ", v) VALUES (2, 7)")
				at = h.expect(f, at, `5 upsert {"id":2} {"id":2,"v":7}`)
				h.sql("DELETE FROM " + name)
				h.publish(f)
				if got, _ := h.drain(f, at); len(got) != 2 {
					t.Errorf("got %q", got)
				}
				if findings, err := f.Admin().Check(h.ctx()); err != nil || len(findings) > 0 {
					t.Errorf("check: %v %v", findings, err)
				}
			})
		}
	})
}

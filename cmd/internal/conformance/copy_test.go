package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachMySQL runs f on MariaDB and MySQL. No other database has logins whose rights objects keep when the login is
// gone, or dumps that are loaded under another name.
func eachMySQL(t *testing.T, f func(x *env)) {
	t.Helper()
	testdb.Only(t, testdb.InnoDB...)
	each(t, f)
}

// ofEachKind makes a feed of every kind that has triggers or routines, each with a row.
func (x *env) ofEachKind() {
	x.Helper()
	x.exec(x.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)",
		"CREATE TABLE box (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)")
	x.add(eventsSpec())
	x.add(rowfeed.FeedSpec{Name: "box", Table: "box", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard"})
	x.add(rowfeed.FeedSpec{Name: "plain", Table: "plain"})
	x.writeEachKind(1)
}

// writeEachKind inserts a row with this id into the table of every feed.
func (x *env) writeEachKind(id int) {
	x.Helper()
	x.exec(fmt.Sprintf("INSERT INTO plain VALUES (%d)", id), fmt.Sprintf("INSERT INTO box VALUES (%d, 0)", id))
	(&events{x, x.feedNamed("events")}).write(0, id, id)
}

func (x *env) feedNamed(name string) *rowfeed.Feed {
	x.Helper()
	f, err := x.rf.Feed(x.ctx, name)
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// wantEachKind asserts that readers of every feed are shown these ids, and that check finds nothing.
func (x *env) wantEachKind(ids ...int) {
	x.Helper()
	for _, name := range []string{"plain", "box", "events"} {
		f := x.feedNamed(name)
		req := rowfeed.Request{Limit: 100}
		if name != "events" { // its writers give the positions
			x.publish(f)
		}
		if name != "plain" {
			req.Shards = rowfeed.One(0)
		}
		page, err := f.Fetch(x.ctx, req)
		if err != nil {
			x.Fatal(err)
		}
		var got, want []string
		for _, e := range page.Entries {
			got = append(got, string(e.Key.AppendJSON(nil)))
		}
		for _, id := range ids {
			want = append(want, fmt.Sprintf(`{"id":%d}`, id))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			x.Errorf("%s in %s: %v, want %v", name, x.db.Name, got, want)
		}
		x.wantSound(f)
	}
}

// copied loads a dump of the database into another one of the same server.
func (x *env) copied() *env {
	x.Helper()
	other := x.db.Server().NewDatabase(x.T)
	other.Load(x.T, x.db.SaveAsIs(x.T))
	return openEnv(x.T, other, nil)
}

// TestDumpLoadedBeside (V5): a dump of a database with feeds that is loaded into another one of the same server
// is a copy by itself: writes to both succeed, and no change of one reaches the other. Printed scripts make
// such feeds, too.
func TestDumpLoadedBeside(t *testing.T) {
	testdb.Quick(t)
	for _, printed := range []bool{false, true} {
		t.Run(fmt.Sprintf("printed=%v", printed), func(t *testing.T) {
			eachMySQL(t, func(x *env) {
				x.exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
				if printed {
					x.printedWithNames()
				}
				x.ofEachKind()
				copied := x.copied()
				x.writeEachKind(2)
				copied.writeEachKind(3)
				x.wantEachKind(1, 2)
				copied.wantEachKind(1, 3)
				// A copy of the copy, too: loading has kept no name.
				again := copied.copied()
				again.writeEachKind(4)
				again.wantEachKind(1, 3, 4)
				copied.wantEachKind(1, 3)
			})
		})
	}
}

// printedWithNames makes the feed plain by the script that names the database wherever it can.
func (x *env) printedWithNames() {
	x.Helper()
	spec := rowfeed.FeedSpec{Name: "plain", Table: x.db.Name + ".plain", Key: []string{"id:bigint"}}
	steps, err := rowfeed.PrintFeed(x.dialect, &rowfeed.Config{Schema: x.db.Name}, spec)
	if err != nil {
		x.Fatal(err)
	}
	conn, err := x.pool.Conn(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(x.ctx, "USE mysql"); err != nil { // wherever the script is run
		x.Fatal(err)
	}
	for _, s := range steps {
		if _, err := conn.ExecContext(x.ctx, s.SQL); err != nil {
			x.Fatalf("%v\n%s", err, s.SQL)
		}
	}
	if _, err := conn.ExecContext(x.ctx, "USE "+x.dialect.Quote(x.db.Name)); err != nil {
		x.Fatal(err)
	}
}

// TestFormerTriggersNameTheirDatabase (V5): triggers that an older rowfeed made, and its record, name their
// database. check says so, which is no reason not to be ready, and Upgrade makes them anew.
func TestFormerTriggersNameTheirDatabase(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *env) {
		f := x.addKV()
		schema := x.dialect.Quote(x.db.Name)
		for _, event := range []string{"insert", "update", "delete"} {
			var body string
			name := "rowfeed_kv_" + event
			err := x.db.Admin().QueryRow("SELECT ACTION_STATEMENT FROM information_schema.TRIGGERS "+
				"WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME = ?", name).Scan(&body)
			if err != nil {
				x.Fatal(err)
			}
			x.exec("DROP TRIGGER "+name, "CREATE TRIGGER "+schema+".`"+name+"` AFTER "+strings.ToUpper(event)+
				" ON "+schema+".`kv` FOR EACH ROW\n"+body)
		}
		if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) > 0 {
			x.Errorf("ready: %q, %v", problems, err)
		}
		findings, err := f.Admin().Check(x.ctx)
		want := 0
		if x.engine == testdb.MariaDB { // MySQL keeps no name
			want = 3
		}
		if err != nil || len(findings) != want {
			x.Errorf("before: %+v, %v", findings, err)
		}
		for _, p := range findings {
			if !strings.Contains(p.Problem, "feed upgrade kv") || !strings.Contains(p.Problem, "dump") {
				x.Error(p.Problem)
			}
		}
		if mended, err := f.Admin().Upgrade(x.ctx); err != nil || len(mended) != want {
			x.Errorf("mended %q, %v", mended, err)
		}
		if mended, err := f.Admin().Upgrade(x.ctx); err != nil || len(mended) != 0 {
			x.Errorf("mended again %q, %v", mended, err)
		}
		x.exec("INSERT INTO kv VALUES (1, 'a', 1)")
		copied := x.copied()
		x.exec("INSERT INTO kv VALUES (2, 'b', 2)")
		copied.exec("INSERT INTO kv VALUES (3, 'c', 3)")
		x.wantDrain(f, "", kv(1, "a", 1), kv(2, "b", 2))
		copied.wantDrain(copied.feedNamed("kv"), "", kv(1, "a", 1), kv(3, "c", 3))
	})
}

// TestDumpOfTableAlone (V5): where rowfeed's tables are in another database than the feed's table, the triggers in a
// copy of that table's database write to them. check in the original names the table, and what to run.
func TestDumpOfTableAlone(t *testing.T) {
	eachMySQL(t, func(x *env) {
		home := x.db.Server().NewDatabase(x.T)
		away := openEnv(x.T, x.db, &rowfeed.Config{Schema: home.Name})
		away.migrate()
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := away.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		away.wantSound(f)
		copied := x.copied()
		copied.exec("INSERT INTO kv VALUES (3, 'c', 3)")
		x.exec("INSERT INTO kv VALUES (1, 'a', 1)")
		away.wantDrain(f, "", kv(1, "a", 1))
		findings, err := f.Admin().Check(x.ctx)
		if err != nil || len(findings) != 3 {
			x.Fatalf("%+v, %v", findings, err)
		}
		for _, finding := range findings {
			_, drop, told := strings.Cut(finding.Problem, "run `DROP TRIGGER")
			if !told || finding.ByRepair() || !strings.Contains(finding.Problem, copied.db.Name+".kv") {
				x.Fatalf("%+v", finding)
			}
			x.exec("DROP TRIGGER" + strings.TrimSuffix(drop, "`"))
		}
		away.wantSound(f)
		if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) > 0 {
			x.Errorf("%q, %v", problems, err)
		}
	})
}

// TestTableMovedToAnotherDatabase (V10): MariaDB and MySQL refuse to move a table with triggers into another
// database. A table without triggers moves: of one of rowfeed's Verify says that it is missing, and of a feed's
// that it is gone.
func TestTableMovedToAnotherDatabase(t *testing.T) {
	eachMySQL(t, func(x *env) {
		other := x.db.Server().NewDatabase(x.T).Name
		f := x.addKV()
		_, err := x.db.Admin().Exec("RENAME TABLE kv TO " + other + ".kv")
		if number, _ := dialect.CodeField(err, "Number"); number != 1435 {
			x.Errorf("the table with triggers: %v", err)
		}
		x.exec("RENAME TABLE rowfeed_changes_kv TO " + other + ".rowfeed_changes_kv")
		x.mustFail("INSERT INTO kv VALUES (1, 'a', 1)")
		problems, err := f.Admin().Verify(x.ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "rowfeed_changes_kv is missing") {
			x.Errorf("%q, %v", problems, err)
		}
		x.exec("RENAME TABLE "+other+".rowfeed_changes_kv TO rowfeed_changes_kv", "INSERT INTO kv VALUES (1, 'a', 1)")
		x.wantDrain(f, "", kv(1, "a", 1))
		x.exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		plain := x.add(rowfeed.FeedSpec{Name: "plain", Table: "plain", Capture: "app"})
		x.exec("RENAME TABLE plain TO " + other + ".plain")
		_, err = plain.Admin().Check(x.ctx)
		if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "is gone") {
			x.Error(err)
		}
	})
}

package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachInnoDB runs f on MariaDB and MySQL. On other databases no object runs with the rights of a login that was
// dropped, and no dump can be loaded under another name.
func eachInnoDB(t *testing.T, f func(x *suite.Env)) {
	t.Helper()
	testdb.Only(t, testdb.InnoDB...)
	suite.Each(t, f)
}

// ofEachKind makes a feed of every kind that has triggers or routines, each with a row.
func ofEachKind(x *suite.Env) {
	x.Helper()
	x.Exec(x.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)",
		"CREATE TABLE box (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)")
	x.Add(suite.EventsSpec())
	x.Add(rowfeed.FeedSpec{
		Name: "box", Table: "box", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard",
	})
	x.Add(rowfeed.FeedSpec{Name: "plain", Table: "plain"})
	writeEachKind(x, 1)
}

// writeEachKind inserts a row with this id into the table of every feed.
func writeEachKind(x *suite.Env, id int) {
	x.Helper()
	x.Exec(fmt.Sprintf("INSERT INTO plain VALUES (%d)", id), fmt.Sprintf("INSERT INTO box VALUES (%d, 0)", id))
	(&suite.Events{Env: x, Feed: feedNamed(x, "events")}).Write(0, id, id)
}

func feedNamed(x *suite.Env, name string) *rowfeed.Feed {
	x.Helper()
	f, err := x.RF.Feed(x.Ctx, name)
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// wantEachKind asserts that readers of every feed get these ids, and that check finds nothing.
func wantEachKind(x *suite.Env, ids ...int) {
	x.Helper()
	for _, name := range []string{"plain", "box", "events"} {
		f := feedNamed(x, name)
		req := rowfeed.Request{Limit: 100}
		if name != "events" { // writers of events give the positions
			x.Publish(f)
		}
		if name != "plain" {
			req.Shards = rowfeed.One(0)
		}
		page, err := f.Fetch(x.Ctx, req)
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
			x.Errorf("feed %s in %s has %v, want %v", name, x.DB.Name, got, want)
		}
		x.WantSound(f)
	}
}

// loadCopy loads a dump of the database into a new database of the same server.
func loadCopy(x *suite.Env) *suite.Env {
	x.Helper()
	other := x.DB.Server().NewDatabase(x.T)
	other.Load(x.T, x.DB.SaveAsIs(x.T))
	return suite.OpenEnv(x.T, other, nil)
}

// TestLoadedDumpIsIndependent (V5): a dump of a database with feeds is loaded into another database of the same server.
// Both can be written, and no change of one reaches the other. The same holds for feeds of printed scripts.
func TestLoadedDumpIsIndependent(t *testing.T) {
	testdb.Quick(t)
	for _, printed := range []bool{false, true} {
		t.Run(fmt.Sprintf("printed=%v", printed), func(t *testing.T) {
			eachInnoDB(t, func(x *suite.Env) {
				x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
				if printed {
					printedWithNames(x)
				}
				ofEachKind(x)
				copied := loadCopy(x)
				writeEachKind(x, 2)
				writeEachKind(copied, 3)
				wantEachKind(x, 1, 2)
				wantEachKind(copied, 1, 3)
				// A copy of the copy is independent, too, because loading keeps no name of a database.
				again := loadCopy(copied)
				writeEachKind(again, 4)
				wantEachKind(again, 1, 3, 4)
				wantEachKind(copied, 1, 3)
			})
		})
	}
}

// makeTriggersAgain makes the three triggers of kv with their present bodies by a text of the fixture. The text gets
// the trigger's name, its event, its body, and further.
func makeTriggersAgain(x *suite.Env, text, further string) {
	x.Helper()
	for _, event := range []string{"insert", "update", "delete"} {
		name := "rowfeed_kv_" + event
		var body string
		if err := x.DB.Admin().QueryRow(x.Text("capture.body_of_trigger", name)).Scan(&body); err != nil {
			x.Fatal(err)
		}
		x.Exec("DROP TRIGGER "+name, x.Text(text, name, strings.ToUpper(event), body, further))
	}
}

// printedWithNames makes the feed plain by the printed script, which names the database wherever it can.
func printedWithNames(x *suite.Env) {
	x.Helper()
	spec := rowfeed.FeedSpec{Name: "plain", Table: x.DB.Name + ".plain", Key: []string{"id:bigint"}}
	steps, err := rowfeed.PrintFeed(x.Dialect, &rowfeed.Config{Schema: x.DB.Name}, spec)
	if err != nil {
		x.Fatal(err)
	}
	conn, err := x.Pool.Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	// The script names its database, so that it can be run in any.
	if _, err := conn.ExecContext(x.Ctx, x.Text("capture.use_another_database")); err != nil {
		x.Fatal(err)
	}
	for _, s := range steps {
		if _, err := conn.ExecContext(x.Ctx, s.SQL); err != nil {
			x.Fatalf("%v\n%s", err, s.SQL)
		}
	}
	if _, err := conn.ExecContext(x.Ctx, x.Text("capture.use_database", x.DB.Name)); err != nil {
		x.Fatal(err)
	}
}

// TestUpgradeMendsTriggersThatNameTheirDatabase (V5): the triggers name their database, so that a loaded dump would
// write to the original. Check says so, verify does not, and upgrade makes the triggers anew.
func TestUpgradeMendsTriggersThatNameTheirDatabase(t *testing.T) {
	testdb.Quick(t)
	eachInnoDB(t, func(x *suite.Env) {
		f := x.AddKV()
		makeTriggersAgain(x, "capture.make_trigger_with_schema", x.DB.Name)
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
			x.Errorf("verify found %q, %v", problems, err)
		}
		findings, err := f.Admin().Check(x.Ctx)
		want := 0
		if x.Has.QualifiedTriggers {
			want = 3
		}
		if err != nil || len(findings) != want {
			x.Errorf("check found %+v, %v", findings, err)
		}
		for _, p := range findings {
			if !strings.Contains(p.Problem, "feed upgrade kv") || !strings.Contains(p.Problem, "dump") {
				x.Error(p.Problem)
			}
		}
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != want {
			x.Errorf("upgrade mended %q, %v", mended, err)
		}
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 0 {
			x.Errorf("the second upgrade mended %q, %v", mended, err)
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		copied := loadCopy(x)
		x.Exec("INSERT INTO kv VALUES (2, 'b', 2)")
		copied.Exec("INSERT INTO kv VALUES (3, 'c', 3)")
		x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
		copied.WantDrain(feedNamed(copied, "kv"), "", suite.KV(1, "a", 1), suite.KV(3, "c", 3))
	})
}

// TestCheckFindsTriggersInACopy (V5): rowfeed's tables are in another database than the feed's table, so the triggers
// in a copy of the table's database write to them, too. Check in the original names the copy, and the statements that
// drop the triggers.
func TestCheckFindsTriggersInACopy(t *testing.T) {
	eachInnoDB(t, func(x *suite.Env) {
		home := x.DB.Server().NewDatabase(x.T)
		away := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Schema: home.Name})
		away.Migrate()
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		f := away.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		away.WantSound(f)
		copied := loadCopy(x)
		copied.Exec("INSERT INTO kv VALUES (3, 'c', 3)")
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		away.WantDrain(f, "", suite.KV(1, "a", 1))
		findings, err := f.Admin().Check(x.Ctx)
		if err != nil || len(findings) != 3 {
			x.Fatalf("check found %+v, %v", findings, err)
		}
		for _, finding := range findings {
			_, drop, told := strings.Cut(finding.Problem, "run `DROP TRIGGER")
			if !told || finding.ByRepair() || !strings.Contains(finding.Problem, copied.DB.Name+".kv") {
				x.Fatalf("check found %+v, want a DROP TRIGGER for the copy", finding)
			}
			x.Exec("DROP TRIGGER" + strings.TrimSuffix(drop, "`"))
		}
		away.WantSound(f)
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) > 0 {
			x.Errorf("verify found %q, %v", problems, err)
		}
	})
}

// TestMovedTableIsReported (V10): MariaDB and MySQL refuse to move a table with triggers into another database.
// If a table without triggers moves, verify says that a table of rowfeed is missing, and check that a table of a feed
// is gone.
func TestMovedTableIsReported(t *testing.T) {
	eachInnoDB(t, func(x *suite.Env) {
		other := x.DB.Server().NewDatabase(x.T).Name
		f := x.AddKV()
		_, err := x.DB.Admin().Exec(x.Text("capture.move_table", "kv", other+".kv"))
		number, _ := dialect.CodeField(err, "Number")
		if want := x.Text("capture.number_of_trigger_in_wrong_schema"); fmt.Sprint(number) != want {
			x.Errorf("moving a table with triggers failed with %v, want error %s", err, want)
		}
		x.Exec(x.Text("capture.move_table", "rowfeed_changes_kv", other+".rowfeed_changes_kv"))
		x.MustFail("INSERT INTO kv VALUES (1, 'a', 1)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "rowfeed_changes_kv is missing") {
			x.Errorf("verify found %q, %v", problems, err)
		}
		x.Exec(x.Text("capture.move_table", other+".rowfeed_changes_kv", "rowfeed_changes_kv"),
			"INSERT INTO kv VALUES (1, 'a', 1)")
		x.WantDrain(f, "", suite.KV(1, "a", 1))
		x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		plain := x.Add(rowfeed.FeedSpec{Name: "plain", Table: "plain", Capture: "app"})
		x.Exec(x.Text("capture.move_table", "plain", other+".plain"))
		_, err = plain.Admin().Check(x.Ctx)
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "is gone") {
			x.Error(err)
		}
	})
}

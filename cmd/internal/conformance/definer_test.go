package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ownerRights are those of the owner in docs/PRIVILEGES.md: it is not told of other accounts.
const ownerRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER, " +
	"CREATE ROUTINE, ALTER ROUTINE, EXECUTE"

// newOwner makes a login that may make feeds, and is not told of other accounts.
func (x *env) newOwner(user string) *login {
	x.Helper()
	l := x.newLogin(user, nil)
	x.exec("GRANT " + ownerRights + " ON " + x.db.Name + ".* TO " + l.sql)
	l.env = openEnv(x.T, l.db, nil) // a session has the rights on its database of when it began
	return l
}

// kinds are the feeds of ofEachKind.
var kinds = []string{"plain", "box", "events"}

// madeBy has a login make a feed of each kind.
func (x *env) madeBy(l *login) {
	x.Helper()
	x.exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
	rf := x.rf
	x.rf = l.rf
	x.ofEachKind()
	x.rf = rf
}

// verified is what Verify finds of all feeds, as a login sees them.
func (x *env) verified() (all []string) {
	x.Helper()
	for _, name := range kinds {
		problems, err := x.feedNamed(name).Admin().Verify(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, problems...)
	}
	return all
}

// upgraded is what Upgrade mends of all feeds.
func (x *env) upgraded() (all []string) {
	x.Helper()
	for _, name := range kinds {
		mended, err := x.feedNamed(name).Admin().Upgrade(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, mended...)
	}
	return all
}

// wantAll asserts that there are so many texts, each with these words.
func (x *env) wantAll(what string, texts []string, n int, words ...string) {
	x.Helper()
	if len(texts) != n {
		x.Errorf("%s: %d, want %d: %q", what, len(texts), n, texts)
	}
	for _, text := range texts {
		for _, word := range words {
			if !strings.Contains(text, word) {
				x.Errorf("%s: no %q in %q", what, word, text)
			}
		}
	}
}

// ofTriggers and ofRoutines are how many objects of ofEachKind run with the rights of another: three triggers of plain
// and two of box, three procedures of events.
const ofTriggers, ofRoutines = 5, 3

// TestDefinerDropped (V3): the login that made feeds is dropped. A login that may read accounts says so; feed
// upgrade as another login takes triggers and procedures over, whether that login is told of accounts or not,
// and says so.
func TestDefinerDropped(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *env) {
		gone, next := x.newOwner("gone"), x.newOwner("next")
		x.madeBy(gone)
		x.wantAll("root, all is well", x.verified(), 0)
		x.wantAll("root mends nothing", x.upgraded(), 0) // nor takes over what is in order
		x.wantAll("who is not told", next.verified(), 0)
		x.wantAll("its own", gone.upgraded(), 0)

		x.exec("DROP USER "+gone.sql, "CREATE USER "+gone.sql) // for newLogin's end
		x.exec("RENAME USER " + gone.sql + " TO 'away " + x.db.Name + "'@'127.0.0.1'")
		x.Cleanup(func() { x.exec("RENAME USER 'away " + x.db.Name + "'@'127.0.0.1' TO " + gone.sql) })
		x.mustFail("INSERT INTO plain VALUES (2)")
		x.wantAll("root", x.verified(), ofTriggers+ofRoutines, gone.name, "does not exist", "rowfeed feed upgrade")
		x.wantAll("who is not told", next.verified(), 0)
		findings, err := x.feedNamed("plain").Admin().Check(x.ctx)
		if err != nil || len(findings) != 3 || findings[0].ByRepair() {
			x.Errorf("check: %+v, %v", findings, err)
		}

		x.wantAll("taken over", next.upgraded(), ofTriggers+ofRoutines, gone.name, "is not told")
		x.writeEachKind(2)
		x.wantEachKind(1, 2)
		x.wantAll("root", x.verified(), 0)
		x.wantAll("taken over again", next.upgraded(), 0)
		x.wantAll("root leaves it", x.upgraded(), 0)
		x.writeEachKind(3)
		x.wantEachKind(1, 2, 3)
	})
}

// TestDefinerDroppedUpgradedByRoot (V3): the same where the login that upgrades is told of accounts.
func TestDefinerDroppedUpgradedByRoot(t *testing.T) {
	eachMySQL(t, func(x *env) {
		gone := x.newOwner("gone")
		x.madeBy(gone)
		x.exec("RENAME USER " + gone.sql + " TO 'away " + x.db.Name + "'@'127.0.0.1'")
		x.Cleanup(func() { x.exec("RENAME USER 'away " + x.db.Name + "'@'127.0.0.1' TO " + gone.sql) })
		x.wantAll("mended", x.upgraded(), ofTriggers+ofRoutines, gone.name, "does not exist")
		x.writeEachKind(2)
		x.wantEachKind(1, 2)
		// An account whose host takes in the former one's stands for it.
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		back := x.newOwner("back")
		f, err := back.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		if err != nil {
			x.Fatal(err)
		}
		wider := strings.Replace(back.sql, "127.0.0.1", "127.0.0.%", 1)
		x.exec("RENAME USER " + back.sql + " TO " + wider)
		x.exec("GRANT "+ownerRights+" ON "+x.db.Name+".* TO "+wider, "INSERT INTO kv VALUES (1, 'a', 1)")
		problems, err := x.feedNamed("kv").Admin().Verify(x.ctx)
		if err != nil || len(problems) > 0 {
			x.Errorf("%q, %v", problems, err)
		}
		x.exec("RENAME USER " + wider + " TO " + back.sql)
		_ = f
	})
}

// TestDefinerWithoutRights (V3): the login that made feeds keeps its account, and loses rights. Verify says
// which to a login that is told of rights, and to that login itself. feed upgrade as another login takes over;
// as one that lacks rights, too, it is refused, and leaves alone what is in order.
func TestDefinerWithoutRights(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *env) {
		poor, rich := x.newOwner("poor"), x.newOwner("rich")
		x.madeBy(poor)
		every := "SELECT, TRIGGER, INSERT, UPDATE"
		x.exec("REVOKE "+ownerRights+" ON "+x.db.Name+".* FROM "+poor.sql,
			"GRANT ALTER ROUTINE, CREATE ROUTINE, EXECUTE ON "+x.db.Name+".* TO "+poor.sql)
		tables := []string{"plain", "box", "events", "rowfeed_shards", "rowfeed_feeds",
			"rowfeed_schema_version", "rowfeed_changes_plain", "rowfeed_outbox_box"}
		for _, table := range tables {
			x.exec("GRANT " + every + " ON " + table + " TO " + poor.sql)
		}
		x.wantAll("by rights on tables", x.verified(), 0)
		for _, step := range []struct{ lost, from, problem string }{
			{"INSERT", "rowfeed_changes_plain", "plain"}, {"SELECT", "plain", "plain"}, {"TRIGGER", "plain", "plain"},
			{"INSERT", "rowfeed_outbox_box", "box"}, {"UPDATE", "rowfeed_shards", "events"}, {"SELECT", "events", "events"},
			{"SELECT", "rowfeed_feeds", "events"},
		} {
			x.exec("REVOKE " + step.lost + " ON " + step.from + " FROM " + poor.sql)
			n := map[string]int{"plain": 3, "box": 2, "events": 3}[step.problem]
			x.wantAll("without "+step.lost+" on "+step.from, x.verified(), n,
				poor.name, "lacks "+step.lost+" on "+x.db.Name+"."+step.from, "feed upgrade "+step.problem)
			x.exec("GRANT " + step.lost + " ON " + step.from + " TO " + poor.sql)
		}
		x.exec("REVOKE INSERT ON rowfeed_changes_plain FROM "+poor.sql,
			"GRANT INSERT (id) ON rowfeed_changes_plain TO "+poor.sql)
		x.wantAll("by rights on columns", x.verified(), 0)
		x.exec("INSERT INTO plain VALUES (2)")
		x.exec("REVOKE INSERT (id) ON rowfeed_changes_plain FROM " + poor.sql)
		x.mustFail("INSERT INTO plain VALUES (3)")

		// Itself it is told, and cannot help it.
		problems, err := poor.feedNamed("plain").Admin().Verify(x.ctx)
		if err != nil || len(problems) != 3 || !strings.Contains(problems[0], "lacks INSERT") {
			x.Errorf("%q, %v", problems, err)
		}
		before := x.db.Dump(x.T)
		_, err = poor.feedNamed("plain").Admin().Upgrade(x.ctx)
		var e *rowfeed.Error
		x.wantCode(err, rowfeed.Refused)
		if !errors.As(err, &e) || !strings.Contains(e.Cause, "lacks INSERT") || e.Next == "" {
			x.Error(err)
		}
		x.sameDump(before, "refused")
		x.exec("CREATE TABLE more (id BIGINT NOT NULL PRIMARY KEY)")
		if _, err := rich.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "more", Table: "more"}, nil); err != nil {
			x.Fatal(err)
		}
		x.exec("GRANT SELECT, TRIGGER ON more TO "+poor.sql, "GRANT SELECT ON rowfeed_changes_more TO "+poor.sql,
			"GRANT SELECT ON rowfeed_positions_more TO "+poor.sql, "GRANT UPDATE ON rowfeed_feeds TO "+poor.sql)
		before = x.db.Dump(x.T)
		if mended, err := poor.feedNamed("more").Admin().Upgrade(x.ctx); err != nil || len(mended) > 0 { // that is in order
			x.Errorf("%q, %v", mended, err)
		}
		x.sameDump(before, "left alone")

		if mended, err := rich.feedNamed("plain").Admin().Upgrade(x.ctx); err != nil || len(mended) != 3 {
			x.Errorf("%q, %v", mended, err)
		}
		x.wantAll("after all", x.verified(), 0)
		x.exec("INSERT INTO plain VALUES (4)")
	})
}

// TestDefinerIsRole (V3): a role may be the definer. What it has counts; when it is dropped it is missing.
func TestDefinerIsRole(t *testing.T) {
	eachMySQL(t, func(x *env) {
		f := x.addKV()
		role, inner := "role_"+x.db.Name, "inner_"+x.db.Name
		x.exec("CREATE ROLE "+role, "CREATE ROLE "+inner)
		x.Cleanup(func() { x.exec("DROP ROLE IF EXISTS "+role, "DROP ROLE "+inner) })
		for _, event := range []string{"insert", "update", "delete"} {
			var body, mode string
			name := "rowfeed_kv_" + event
			err := x.db.Admin().QueryRow("SELECT ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS "+
				"WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME = ?", name).Scan(&body, &mode)
			if err != nil {
				x.Fatal(err)
			}
			x.exec("DROP TRIGGER "+name, "CREATE DEFINER="+role+" TRIGGER `"+name+"` AFTER "+strings.ToUpper(event)+
				" ON `kv` FOR EACH ROW\n"+body)
		}
		verify := func(what string, n int, words ...string) {
			x.Helper()
			problems, err := f.Admin().Verify(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			x.wantAll(what, problems, n, words...)
		}
		verify("a role without rights", 3, role, "lacks INSERT")
		x.mustFail("INSERT INTO kv VALUES (1, 'a', 1)")
		x.exec("GRANT SELECT, TRIGGER ON kv TO "+role, "GRANT INSERT ON rowfeed_changes_kv TO "+role)
		verify("a role with rights", 0)
		x.exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.exec("REVOKE INSERT ON rowfeed_changes_kv FROM "+role, "GRANT INSERT ON rowfeed_changes_kv TO "+inner,
			"GRANT "+inner+" TO "+role)
		verify("a role that has them of another role", 0)
		x.exec("DROP ROLE " + role)
		verify("a role that is gone", 3, role, "does not exist")
		if mended, err := f.Admin().Upgrade(x.ctx); err != nil || len(mended) != 3 {
			x.Errorf("%q, %v", mended, err)
		}
		x.exec("INSERT INTO kv VALUES (2, 'b', 2)")
		x.wantDrain(f, "", kv(1, "a", 1), kv(2, "b", 2))
	})
}

// TestNewDefinerMissesNoWrite (V3, V5): feed upgrade takes triggers over that work. A change is made behind
// each of its statements, and each is captured. Afterwards the session is in the database in which it was.
func TestNewDefinerMissesNoWrite(t *testing.T) {
	eachMySQL(t, func(x *env) {
		one, two := x.newOwner("one"), "two_"+x.db.Name
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"CREATE USER "+two+"@'127.0.0.1'", "GRANT "+ownerRights+" ON "+x.db.Name+".* TO "+two+"@'127.0.0.1'")
		x.Cleanup(func() { x.exec("DROP USER " + two + "@'127.0.0.1'") })
		if _, err := one.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil); err != nil {
			x.Fatal(err)
		}
		x.exec("CREATE DATABASE other_"+x.db.Name, "GRANT CREATE ON other_"+x.db.Name+".* TO "+two+"@'127.0.0.1'")
		x.Cleanup(func() { x.exec("DROP DATABASE other_" + x.db.Name) })
		for _, home := range []string{x.db.Name, "other_" + x.db.Name} {
			rows, watched := 0, false
			url := strings.Replace(strings.Replace(x.db.URL, "root@", two+"@", 1), "/"+x.db.Name, "/"+home, 1)
			pool, err := testdb.OpenURL(url,
				testdb.Hooks{After: func(_ context.Context, _ testdb.TapEvent, err error) error {
					if watched {
						rows++
						if _, err := x.db.Admin().Exec("INSERT INTO kv VALUES (?, ?, 0)", rows, home); err != nil {
							x.Error(err)
						}
					}
					return err
				}})
			if err != nil {
				x.Fatal(err)
			}
			defer pool.Close()
			pool.SetMaxOpenConns(2)
			rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{Schema: x.db.Name})
			if err != nil {
				x.Fatal(err)
			}
			f, err := rf.Feed(x.ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			watched = true
			mended, err := f.Admin().Upgrade(x.ctx)
			watched = false
			if err != nil || len(mended) != 3 || rows < 10 {
				x.Fatalf("%q, %d rows, %v", mended, rows, err)
			}
			if n := x.scalar("SELECT count(*) FROM kv WHERE id NOT IN (SELECT id FROM rowfeed_changes_kv)"); n != 0 {
				x.Errorf("%d of %d changes were not captured", n, rows)
			}
			var in string
			for range 4 {
				if err := pool.QueryRow("SELECT DATABASE()").Scan(&in); err != nil || in != home {
					x.Errorf("the session is in %s, %v", in, err)
				}
			}
			if mended, err = one.feedOf("kv").Admin().Upgrade(x.ctx); err != nil || len(mended) != 3 { // for the next round
				x.Fatalf("%q, %v", mended, err)
			}
			x.exec("DELETE FROM kv", "DELETE FROM rowfeed_changes_kv")
		}
	})
}

// TestLoginWithRightsByRole (V3): MariaDB counts no roles of a definer that is a user. feed upgrade as a login
// that has its rights by a role leaves triggers alone that are in order; MySQL counts default roles, and it
// takes them over.
func TestLoginWithRightsByRole(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *env) {
		owner, roled, role := x.newOwner("owner"), x.newLogin("roled", nil), "all_"+x.db.Name
		x.madeBy(owner)
		x.exec("CREATE ROLE "+role, "GRANT "+ownerRights+" ON "+x.db.Name+".* TO "+role, "GRANT "+role+" TO "+roled.sql)
		x.Cleanup(func() { x.exec("DROP ROLE " + role) })
		if x.engine == testdb.MariaDB {
			x.exec("SET DEFAULT ROLE " + role + " FOR " + roled.sql)
		} else {
			x.exec("ALTER USER " + roled.sql + " DEFAULT ROLE " + role)
		}
		roled.env = openEnv(x.T, roled.db, nil)
		mended, err := roled.feedNamed("plain").Admin().Upgrade(x.ctx)
		if want := map[bool]int{true: 0, false: 3}[x.engine == testdb.MariaDB]; err != nil || len(mended) != want {
			x.Errorf("mended %q, %v", mended, err)
		}
		x.exec("INSERT INTO plain VALUES (7)")
		x.wantDrain(x.feedNamed("plain"), "", `upsert {"id":1}`, `upsert {"id":7}`)
	})
}

package capture

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ownerRights are those of the owner in docs/PRIVILEGES.md: it is not told of other accounts.
const ownerRights = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER, " +
	"CREATE ROUTINE, ALTER ROUTINE, EXECUTE"

// newOwner makes a login that may make feeds, and is not told of other accounts.
func newOwner(x *suite.Env, user string) *suite.Login {
	x.Helper()
	l := x.NewLogin(user, nil)
	x.Exec("GRANT " + ownerRights + " ON " + x.DB.Name + ".* TO " + l.SQL)
	l.Env = suite.OpenEnv(x.T, l.DB, nil) // a session has the rights on its database of when it began
	return l
}

// kinds are the feeds of ofEachKind.
var kinds = []string{"plain", "box", "events"}

// madeBy has a login make a feed of each kind.
func madeBy(x *suite.Env, l *suite.Login) {
	x.Helper()
	x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
	rf := x.RF
	x.RF = l.RF
	ofEachKind(x)
	x.RF = rf
}

// verified is what Verify finds of all feeds, as a login sees them.
func verified(x *suite.Env) (all []string) {
	x.Helper()
	for _, name := range kinds {
		problems, err := feedNamed(x, name).Admin().Verify(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, problems...)
	}
	return all
}

// upgraded is what Upgrade mends of all feeds.
func upgraded(x *suite.Env) (all []string) {
	x.Helper()
	for _, name := range kinds {
		mended, err := feedNamed(x, name).Admin().Upgrade(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, mended...)
	}
	return all
}

// wantAll asserts that there are so many texts, each with these words.
func wantAll(x *suite.Env, what string, texts []string, n int, words ...string) {
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
	eachMySQL(t, func(x *suite.Env) {
		gone, next := newOwner(x, "gone"), newOwner(x, "next")
		madeBy(x, gone)
		wantAll(x, "root, all is well", verified(x), 0)
		wantAll(x, "root mends nothing", upgraded(x), 0) // nor takes over what is in order
		wantAll(x, "who is not told", verified(next.Env), 0)
		wantAll(x, "its own", upgraded(gone.Env), 0)

		x.Exec("DROP USER "+gone.SQL, "CREATE USER "+gone.SQL) // for newLogin's end
		x.Exec("RENAME USER " + gone.SQL + " TO 'away " + x.DB.Name + "'@'127.0.0.1'")
		x.Cleanup(func() { x.Exec("RENAME USER 'away " + x.DB.Name + "'@'127.0.0.1' TO " + gone.SQL) })
		x.MustFail("INSERT INTO plain VALUES (2)")
		wantAll(x, "root", verified(x), ofTriggers+ofRoutines, gone.Name, "does not exist", "rowfeed feed upgrade")
		wantAll(x, "who is not told", verified(next.Env), 0)
		findings, err := feedNamed(x, "plain").Admin().Check(x.Ctx)
		if err != nil || len(findings) != 3 || findings[0].ByRepair() {
			x.Errorf("check: %+v, %v", findings, err)
		}

		wantAll(x, "taken over", upgraded(next.Env), ofTriggers+ofRoutines, gone.Name, "is not told")
		writeEachKind(x, 2)
		wantEachKind(x, 1, 2)
		wantAll(x, "root", verified(x), 0)
		wantAll(x, "taken over again", upgraded(next.Env), 0)
		wantAll(x, "root leaves it", upgraded(x), 0)
		writeEachKind(x, 3)
		wantEachKind(x, 1, 2, 3)
	})
}

// TestDefinerDroppedUpgradedByRoot (V3): the same where the login that upgrades is told of accounts.
func TestDefinerDroppedUpgradedByRoot(t *testing.T) {
	eachMySQL(t, func(x *suite.Env) {
		gone := newOwner(x, "gone")
		madeBy(x, gone)
		x.Exec("RENAME USER " + gone.SQL + " TO 'away " + x.DB.Name + "'@'127.0.0.1'")
		x.Cleanup(func() { x.Exec("RENAME USER 'away " + x.DB.Name + "'@'127.0.0.1' TO " + gone.SQL) })
		wantAll(x, "mended", upgraded(x), ofTriggers+ofRoutines, gone.Name, "does not exist")
		writeEachKind(x, 2)
		wantEachKind(x, 1, 2)
		// An account whose host takes in the former one's stands for it.
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		back := newOwner(x, "back")
		f, err := back.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		if err != nil {
			x.Fatal(err)
		}
		wider := strings.Replace(back.SQL, "127.0.0.1", "127.0.0.%", 1)
		x.Exec("RENAME USER " + back.SQL + " TO " + wider)
		x.Exec("GRANT "+ownerRights+" ON "+x.DB.Name+".* TO "+wider, "INSERT INTO kv VALUES (1, 'a', 1)")
		problems, err := feedNamed(x, "kv").Admin().Verify(x.Ctx)
		if err != nil || len(problems) > 0 {
			x.Errorf("%q, %v", problems, err)
		}
		x.Exec("RENAME USER " + wider + " TO " + back.SQL)
		_ = f
	})
}

// TestDefinerWithoutRights (V3): the login that made feeds keeps its account, and loses rights. Verify says
// which to a login that is told of rights, and to that login itself. feed upgrade as another login takes over;
// as one that lacks rights, too, it is refused, and leaves alone what is in order.
func TestDefinerWithoutRights(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *suite.Env) {
		poor, rich := newOwner(x, "poor"), newOwner(x, "rich")
		madeBy(x, poor)
		every := "SELECT, TRIGGER, INSERT, UPDATE"
		x.Exec("REVOKE "+ownerRights+" ON "+x.DB.Name+".* FROM "+poor.SQL,
			"GRANT ALTER ROUTINE, CREATE ROUTINE, EXECUTE ON "+x.DB.Name+".* TO "+poor.SQL)
		tables := []string{"plain", "box", "events", "rowfeed_shards", "rowfeed_feeds",
			"rowfeed_schema_version", "rowfeed_changes_plain", "rowfeed_outbox_box"}
		for _, table := range tables {
			x.Exec("GRANT " + every + " ON " + table + " TO " + poor.SQL)
		}
		wantAll(x, "by rights on tables", verified(x), 0)
		for _, step := range []struct{ lost, from, problem string }{
			{"INSERT", "rowfeed_changes_plain", "plain"}, {"SELECT", "plain", "plain"}, {"TRIGGER", "plain", "plain"},
			{"INSERT", "rowfeed_outbox_box", "box"}, {"UPDATE", "rowfeed_shards", "events"}, {"SELECT", "events", "events"},
			{"SELECT", "rowfeed_feeds", "events"},
		} {
			x.Exec("REVOKE " + step.lost + " ON " + step.from + " FROM " + poor.SQL)
			n := map[string]int{"plain": 3, "box": 2, "events": 3}[step.problem]
			wantAll(x, "without "+step.lost+" on "+step.from, verified(x), n,
				poor.Name, "lacks "+step.lost+" on "+x.DB.Name+"."+step.from, "feed upgrade "+step.problem)
			x.Exec("GRANT " + step.lost + " ON " + step.from + " TO " + poor.SQL)
		}
		x.Exec("REVOKE INSERT ON rowfeed_changes_plain FROM "+poor.SQL,
			"GRANT INSERT (id) ON rowfeed_changes_plain TO "+poor.SQL)
		wantAll(x, "by rights on columns", verified(x), 0)
		x.Exec("INSERT INTO plain VALUES (2)")
		x.Exec("REVOKE INSERT (id) ON rowfeed_changes_plain FROM " + poor.SQL)
		x.MustFail("INSERT INTO plain VALUES (3)")

		// Itself it is told, and cannot help it.
		problems, err := feedNamed(poor.Env, "plain").Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 3 || !strings.Contains(problems[0], "lacks INSERT") {
			x.Errorf("%q, %v", problems, err)
		}
		before := x.DB.Dump(x.T)
		_, err = feedNamed(poor.Env, "plain").Admin().Upgrade(x.Ctx)
		var e *rowfeed.Error
		x.WantCode(err, rowfeed.Refused)
		if !errors.As(err, &e) || !strings.Contains(e.Cause, "lacks INSERT") || e.Next == "" {
			x.Error(err)
		}
		x.SameDump(before, "refused")
		x.Exec("CREATE TABLE more (id BIGINT NOT NULL PRIMARY KEY)")
		if _, err := rich.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "more", Table: "more"}, nil); err != nil {
			x.Fatal(err)
		}
		x.Exec("GRANT SELECT, TRIGGER ON more TO "+poor.SQL, "GRANT SELECT ON rowfeed_changes_more TO "+poor.SQL,
			"GRANT SELECT ON rowfeed_positions_more TO "+poor.SQL, "GRANT UPDATE ON rowfeed_feeds TO "+poor.SQL)
		before = x.DB.Dump(x.T)
		if mended, err := feedNamed(poor.Env, "more").Admin().Upgrade(x.Ctx); err != nil || len(mended) > 0 { // that is in order
			x.Errorf("%q, %v", mended, err)
		}
		x.SameDump(before, "left alone")

		if mended, err := feedNamed(rich.Env, "plain").Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 {
			x.Errorf("%q, %v", mended, err)
		}
		wantAll(x, "after all", verified(x), 0)
		x.Exec("INSERT INTO plain VALUES (4)")
	})
}

// TestDefinerIsRole (V3): a role may be the definer. What it has counts; when it is dropped it is missing.
func TestDefinerIsRole(t *testing.T) {
	eachMySQL(t, func(x *suite.Env) {
		f := x.AddKV()
		role, inner := "role_"+x.DB.Name, "inner_"+x.DB.Name
		x.Exec("CREATE ROLE "+role, "CREATE ROLE "+inner)
		x.Cleanup(func() { x.Exec("DROP ROLE IF EXISTS "+role, "DROP ROLE "+inner) })
		for _, event := range []string{"insert", "update", "delete"} {
			var body, mode string
			name := "rowfeed_kv_" + event
			err := x.DB.Admin().QueryRow("SELECT ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS "+
				"WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME = ?", name).Scan(&body, &mode)
			if err != nil {
				x.Fatal(err)
			}
			x.Exec("DROP TRIGGER "+name, "CREATE DEFINER="+role+" TRIGGER `"+name+"` AFTER "+strings.ToUpper(event)+
				" ON `kv` FOR EACH ROW\n"+body)
		}
		verify := func(what string, n int, words ...string) {
			x.Helper()
			problems, err := f.Admin().Verify(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			wantAll(x, what, problems, n, words...)
		}
		verify("a role without rights", 3, role, "lacks INSERT")
		x.MustFail("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Exec("GRANT SELECT, TRIGGER ON kv TO "+role, "GRANT INSERT ON rowfeed_changes_kv TO "+role)
		verify("a role with rights", 0)
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Exec("REVOKE INSERT ON rowfeed_changes_kv FROM "+role, "GRANT INSERT ON rowfeed_changes_kv TO "+inner,
			"GRANT "+inner+" TO "+role)
		verify("a role that has them of another role", 0)
		x.Exec("DROP ROLE " + role)
		verify("a role that is gone", 3, role, "does not exist")
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 {
			x.Errorf("%q, %v", mended, err)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'b', 2)")
		x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
	})
}

// TestNewDefinerMissesNoWrite (V3, V5): feed upgrade takes triggers over that work. A change is made behind
// each of its statements, and each is captured. Afterwards the session is in the database in which it was.
func TestNewDefinerMissesNoWrite(t *testing.T) {
	eachMySQL(t, func(x *suite.Env) {
		one, two := newOwner(x, "one"), "two_"+x.DB.Name
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"CREATE USER "+two+"@'127.0.0.1'", "GRANT "+ownerRights+" ON "+x.DB.Name+".* TO "+two+"@'127.0.0.1'")
		x.Cleanup(func() { x.Exec("DROP USER " + two + "@'127.0.0.1'") })
		if _, err := one.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil); err != nil {
			x.Fatal(err)
		}
		x.Exec("CREATE DATABASE other_"+x.DB.Name, "GRANT CREATE ON other_"+x.DB.Name+".* TO "+two+"@'127.0.0.1'")
		x.Cleanup(func() { x.Exec("DROP DATABASE other_" + x.DB.Name) })
		for _, home := range []string{x.DB.Name, "other_" + x.DB.Name} {
			rows, watched := 0, false
			url := strings.Replace(strings.Replace(x.DB.URL, "root@", two+"@", 1), "/"+x.DB.Name, "/"+home, 1)
			pool, err := testdb.OpenURL(url,
				testdb.Hooks{After: func(_ context.Context, _ testdb.TapEvent, err error) error {
					if watched {
						rows++
						if _, err := x.DB.Admin().Exec("INSERT INTO kv VALUES (?, ?, 0)", rows, home); err != nil {
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
			rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Schema: x.DB.Name})
			if err != nil {
				x.Fatal(err)
			}
			f, err := rf.Feed(x.Ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			watched = true
			mended, err := f.Admin().Upgrade(x.Ctx)
			watched = false
			if err != nil || len(mended) != 3 || rows < 10 {
				x.Fatalf("%q, %d rows, %v", mended, rows, err)
			}
			if n := x.Scalar("SELECT count(*) FROM kv WHERE id NOT IN (SELECT id FROM rowfeed_changes_kv)"); n != 0 {
				x.Errorf("%d of %d changes were not captured", n, rows)
			}
			var in string
			for range 4 {
				if err := pool.QueryRow("SELECT DATABASE()").Scan(&in); err != nil || in != home {
					x.Errorf("the session is in %s, %v", in, err)
				}
			}
			if mended, err = one.FeedOf("kv").Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 { // for the next round
				x.Fatalf("%q, %v", mended, err)
			}
			x.Exec("DELETE FROM kv", "DELETE FROM rowfeed_changes_kv")
		}
	})
}

// TestLoginWithRightsByRole (V3): MariaDB counts no roles of a definer that is a user. feed upgrade as a login
// that has its rights by a role leaves triggers alone that are in order; MySQL counts default roles, and it
// takes them over.
func TestLoginWithRightsByRole(t *testing.T) {
	testdb.Quick(t)
	eachMySQL(t, func(x *suite.Env) {
		owner, roled, role := newOwner(x, "owner"), x.NewLogin("roled", nil), "all_"+x.DB.Name
		madeBy(x, owner)
		x.Exec("CREATE ROLE "+role, "GRANT "+ownerRights+" ON "+x.DB.Name+".* TO "+role, "GRANT "+role+" TO "+roled.SQL)
		x.Cleanup(func() { x.Exec("DROP ROLE " + role) })
		if x.Engine == testdb.MariaDB {
			x.Exec("SET DEFAULT ROLE " + role + " FOR " + roled.SQL)
		} else {
			x.Exec("ALTER USER " + roled.SQL + " DEFAULT ROLE " + role)
		}
		roled.Env = suite.OpenEnv(x.T, roled.DB, nil)
		mended, err := feedNamed(roled.Env, "plain").Admin().Upgrade(x.Ctx)
		if want := map[bool]int{true: 0, false: 3}[x.Engine == testdb.MariaDB]; err != nil || len(mended) != want {
			x.Errorf("mended %q, %v", mended, err)
		}
		x.Exec("INSERT INTO plain VALUES (7)")
		x.WantDrain(feedNamed(x, "plain"), "", `upsert {"id":1}`, `upsert {"id":7}`)
	})
}

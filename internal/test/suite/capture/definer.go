package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// newOwner makes a login that may make feeds and cannot read which other logins exist.
func newOwner(x *suite.Env, user string) *suite.Login {
	x.Helper()
	l := x.NewLogin(user, nil)
	x.Exec(x.Text("capture.grant_owner_rights", x.DB.Name, l.SQL))
	l.Env = suite.OpenEnv(x.T, l.DB, nil) // a session keeps the rights on its database with which it began
	return l
}

// kinds are the feeds of ofEachKind.
var kinds = []string{"plain", "box", "events"}

// madeBy makes a feed of each kind as the login.
func madeBy(x *suite.Env, l *suite.Login) {
	x.Helper()
	x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
	rf := x.RF
	x.RF = l.RF
	ofEachKind(x)
	x.RF = rf
}

// renameAway gives a login another name until the test ends.
func renameAway(x *suite.Env, l *suite.Login) {
	x.Helper()
	away := x.Text("capture.login", x.Dialect.Quote("away "+x.DB.Name))
	x.Exec(x.Text("capture.rename_login", l.SQL, away))
	x.Cleanup(func() { x.Exec(x.Text("capture.rename_login", away, l.SQL)) })
}

// verified returns what verify finds of all feeds, as the login of x reads it.
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

// upgraded returns what upgrade mends of all feeds, as the login of x.
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

// wantAll asserts that there are n texts, each with these words.
func wantAll(x *suite.Env, what string, texts []string, n int, words ...string) {
	x.Helper()
	if len(texts) != n {
		x.Errorf("%s: %d texts, want %d: %q", what, len(texts), n, texts)
	}
	for _, text := range texts {
		for _, word := range words {
			if !strings.Contains(text, word) {
				x.Errorf("%s: %q is not in %q", what, word, text)
			}
		}
	}
}

// ofTriggers and ofRoutines are how many objects of ofEachKind run with the rights of their definer: three triggers of
// plain and two of box, three procedures of events.
const ofTriggers, ofRoutines = 5, 3

// TestUpgradeReplacesDroppedDefiner (V3): the login that made the feeds is dropped. Verify says so to a login that can
// read which logins exist. Upgrade makes another login the definer of triggers and procedures, whether or not that
// login can read this.
func TestUpgradeReplacesDroppedDefiner(t *testing.T) {
	testdb.Quick(t)
	eachInnoDB(t, func(x *suite.Env) {
		gone, next := newOwner(x, "gone"), newOwner(x, "next")
		madeBy(x, gone)
		wantAll(x, "verify as root, in order", verified(x), 0)
		wantAll(x, "upgrade as root, in order", upgraded(x), 0)
		wantAll(x, "verify as another owner, in order", verified(next.Env), 0)
		wantAll(x, "upgrade as the definer, in order", upgraded(gone.Env), 0)

		x.Exec("DROP USER "+gone.SQL, "CREATE USER "+gone.SQL) // NewLogin drops it at the end of the test
		renameAway(x, gone)
		x.MustFail("INSERT INTO plain VALUES (2)")
		wantAll(x, "verify as root", verified(x), ofTriggers+ofRoutines,
			gone.Name, "does not exist", "rowfeed feed upgrade")
		wantAll(x, "verify as another owner", verified(next.Env), 0)
		findings, err := feedNamed(x, "plain").Admin().Check(x.Ctx)
		if err != nil || len(findings) != 3 || findings[0].ByRepair() {
			x.Errorf("check found %+v, %v", findings, err)
		}

		wantAll(x, "upgrade as another owner", upgraded(next.Env), ofTriggers+ofRoutines, gone.Name,
			"cannot see whether")
		writeEachKind(x, 2)
		wantEachKind(x, 1, 2)
		wantAll(x, "verify as root, mended", verified(x), 0)
		wantAll(x, "second upgrade as another owner", upgraded(next.Env), 0)
		wantAll(x, "upgrade as root, mended", upgraded(x), 0)
		writeEachKind(x, 3)
		wantEachKind(x, 1, 2, 3)
	})
}

// TestUpgradeByRootReplacesDroppedDefiner (V3): the login that made the feeds is dropped, and root upgrades them. If
// another account matches the host of the definer, verify finds nothing.
func TestUpgradeByRootReplacesDroppedDefiner(t *testing.T) {
	eachInnoDB(t, func(x *suite.Env) {
		gone := newOwner(x, "gone")
		madeBy(x, gone)
		renameAway(x, gone)
		wantAll(x, "upgrade as root", upgraded(x), ofTriggers+ofRoutines, gone.Name, "does not exist")
		writeEachKind(x, 2)
		wantEachKind(x, 1, 2)
		// An account whose host matches the definer's is the definer.
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		back := newOwner(x, "back")
		if _, err := back.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil); err != nil {
			x.Fatal(err)
		}
		wider := strings.Replace(back.SQL, "127.0.0.1", "127.0.0.%", 1)
		x.Exec(x.Text("capture.rename_login", back.SQL, wider))
		x.Exec(x.Text("capture.grant_owner_rights", x.DB.Name, wider), "INSERT INTO kv VALUES (1, 'a', 1)")
		problems, err := feedNamed(x, "kv").Admin().Verify(x.Ctx)
		if err != nil || len(problems) > 0 {
			x.Errorf("verify found %q, %v", problems, err)
		}
		x.Exec(x.Text("capture.rename_login", wider, back.SQL))
	})
}

// TestVerifyFindsRightsThatDefinerLacks (V3): the login that made the feeds loses rights. Verify names them to a login
// that can read rights, and to that login itself. Upgrade by another login makes that the definer. Upgrade by a login
// that lacks rights, too, is refused, and changes nothing that is in order.
func TestVerifyFindsRightsThatDefinerLacks(t *testing.T) {
	testdb.Quick(t)
	eachInnoDB(t, func(x *suite.Env) {
		poor, rich := newOwner(x, "poor"), newOwner(x, "rich")
		madeBy(x, poor)
		every := "SELECT, TRIGGER, INSERT, UPDATE"
		x.Exec(x.Statements("capture.revoke_all_but_routines", x.DB.Name, poor.SQL)...)
		tables := []string{"plain", "box", "events", "rowfeed_shards", "rowfeed_feeds",
			"rowfeed_schema_version", "rowfeed_changes_plain", "rowfeed_outbox_box"}
		for _, table := range tables {
			x.Exec("GRANT " + every + " ON " + table + " TO " + poor.SQL)
		}
		wantAll(x, "with rights on tables", verified(x), 0)
		for _, step := range []struct{ lost, from, problem string }{
			{"INSERT", "rowfeed_changes_plain", "plain"}, {"SELECT", "plain", "plain"}, {"TRIGGER", "plain", "plain"},
			{"INSERT", "rowfeed_outbox_box", "box"}, {"UPDATE", "rowfeed_shards", "events"},
			{"SELECT", "events", "events"}, {"SELECT", "rowfeed_feeds", "events"},
		} {
			x.Exec("REVOKE " + step.lost + " ON " + step.from + " FROM " + poor.SQL)
			n := map[string]int{"plain": 3, "box": 2, "events": 3}[step.problem]
			wantAll(x, "without "+step.lost+" on "+step.from, verified(x), n,
				poor.Name, "lacks "+step.lost+" on "+x.DB.Name+"."+step.from, "feed upgrade "+step.problem)
			x.Exec("GRANT " + step.lost + " ON " + step.from + " TO " + poor.SQL)
		}
		x.Exec("REVOKE INSERT ON rowfeed_changes_plain FROM "+poor.SQL,
			"GRANT INSERT (id) ON rowfeed_changes_plain TO "+poor.SQL)
		wantAll(x, "with rights on columns", verified(x), 0)
		x.Exec("INSERT INTO plain VALUES (2)")
		x.Exec("REVOKE INSERT (id) ON rowfeed_changes_plain FROM " + poor.SQL)
		x.MustFail("INSERT INTO plain VALUES (3)")

		// The definer itself can read that it lacks a right, and cannot upgrade.
		problems, err := feedNamed(poor.Env, "plain").Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 3 || !strings.Contains(problems[0], "lacks INSERT") {
			x.Errorf("verify as the definer found %q, %v", problems, err)
		}
		before := x.DB.Dump(x.T)
		_, err = feedNamed(poor.Env, "plain").Admin().Upgrade(x.Ctx)
		var e *rowfeed.Error
		x.WantCode(err, rowfeed.Refused)
		if !errors.As(err, &e) || !strings.Contains(e.Cause, "lacks INSERT") || e.Next == "" {
			x.Error(err)
		}
		x.SameDump(before, "after the refused upgrade")
		x.Exec("CREATE TABLE more (id BIGINT NOT NULL PRIMARY KEY)")
		if _, err := rich.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "more", Table: "more"}, nil); err != nil {
			x.Fatal(err)
		}
		x.Exec("GRANT SELECT, TRIGGER ON more TO "+poor.SQL, "GRANT SELECT ON rowfeed_changes_more TO "+poor.SQL,
			"GRANT SELECT ON rowfeed_positions_more TO "+poor.SQL, "GRANT UPDATE ON rowfeed_feeds TO "+poor.SQL)
		before = x.DB.Dump(x.T)
		if mended, err := feedNamed(poor.Env, "more").Admin().Upgrade(x.Ctx); err != nil || len(mended) > 0 {
			x.Errorf("upgrade of a feed that is in order mended %q, %v", mended, err)
		}
		x.SameDump(before, "after an upgrade of a feed that is in order")

		if mended, err := feedNamed(rich.Env, "plain").Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 {
			x.Errorf("upgrade as another owner mended %q, %v", mended, err)
		}
		wantAll(x, "verify, mended", verified(x), 0)
		x.Exec("INSERT INTO plain VALUES (4)")
	})
}

// TestRoleCanBeDefiner (V3): a role is the definer of the triggers. Verify counts its rights and those of its own
// roles, and finds that it was dropped. Upgrade then makes another definer.
func TestRoleCanBeDefiner(t *testing.T) {
	eachInnoDB(t, func(x *suite.Env) {
		f := x.AddKV()
		role, inner := newRole(x, "role"), newRole(x, "inner")
		makeTriggersAgain(x, "capture.make_trigger_of_definer", role)
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
		verify("a role with rights of another role", 0)
		x.Exec("DROP ROLE " + role)
		verify("a role that is gone", 3, role, "does not exist")
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 {
			x.Errorf("upgrade mended %q, %v", mended, err)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'b', 2)")
		x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
	})
}

// TestNewDefinerMissesNoWrite (V3, V5): upgrade changes the definer of triggers that work. A row is written after each
// of its statements, and each is captured. Afterwards the session is in its former database.
func TestNewDefinerMissesNoWrite(t *testing.T) {
	eachInnoDB(t, func(x *suite.Env) {
		one, two := newOwner(x, "one"), "two_"+x.DB.Name
		login := x.Text("capture.login", two)
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "CREATE USER "+login,
			x.Text("capture.grant_owner_rights", x.DB.Name, login))
		x.Cleanup(func() { x.Exec("DROP USER " + login) })
		if _, err := one.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil); err != nil {
			x.Fatal(err)
		}
		x.Exec("CREATE DATABASE other_"+x.DB.Name, x.Text("capture.grant_create_in_database", "other_"+x.DB.Name,
			login))
		x.Cleanup(func() { x.Exec("DROP DATABASE other_" + x.DB.Name) })
		for _, home := range []string{x.DB.Name, "other_" + x.DB.Name} {
			rows, watched := 0, false
			url := strings.Replace(strings.Replace(x.DB.URL, "root@", two+"@", 1), "/"+x.DB.Name, "/"+home, 1)
			pool, err := testdb.OpenURL(url,
				testdb.Hooks{After: func(_ context.Context, _ testdb.TapEvent, err error) error {
					if watched {
						rows++
						insert := fmt.Sprintf("INSERT INTO kv VALUES (%d, '%s', 0)", rows, home)
						if _, err := x.DB.Admin().Exec(insert); err != nil {
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
				x.Fatalf("upgrade mended %q with %d statements, %v", mended, rows, err)
			}
			if n := x.Scalar("SELECT count(*) FROM kv WHERE id NOT IN (SELECT id FROM rowfeed_changes_kv)"); n != 0 {
				x.Errorf("%d of %d changes were not captured", n, rows)
			}
			var in string
			for range 4 {
				if err := pool.QueryRow(x.Text("capture.database_of_session")).Scan(&in); err != nil || in != home {
					x.Errorf("the session is in %s, %v", in, err)
				}
			}
			// In the next round the definer is to change again.
			if mended, err = one.FeedOf("kv").Admin().Upgrade(x.Ctx); err != nil || len(mended) != 3 {
				x.Fatalf("upgrade mended %q, %v", mended, err)
			}
			x.Exec("DELETE FROM kv", "DELETE FROM rowfeed_changes_kv")
		}
	})
}

// TestUpgradeCountsRolesOfDefiner (V3): a login has its rights by a role only, and upgrades a feed that is in order.
// MySQL counts default roles of a definer, so upgrade makes that login the definer. MariaDB does not, so upgrade
// changes nothing.
func TestUpgradeCountsRolesOfDefiner(t *testing.T) {
	testdb.Quick(t)
	eachInnoDB(t, func(x *suite.Env) {
		owner, roled, role := newOwner(x, "owner"), x.NewLogin("roled", nil), newRole(x, "all")
		madeBy(x, owner)
		x.Exec(x.Text("capture.grant_owner_rights", x.DB.Name, role), "GRANT "+role+" TO "+roled.SQL,
			x.Text("capture.set_default_role", role, roled.SQL))
		roled.Env = suite.OpenEnv(x.T, roled.DB, nil)
		mended, err := feedNamed(roled.Env, "plain").Admin().Upgrade(x.Ctx)
		want := 0
		if x.Has.DefinerRoles {
			want = 3
		}
		if err != nil || len(mended) != want {
			x.Errorf("upgrade mended %q, %v; want %d triggers", mended, err, want)
		}
		x.Exec("INSERT INTO plain VALUES (7)")
		x.WantDrain(feedNamed(x, "plain"), "", `upsert {"id":1}`, `upsert {"id":7}`)
	})
}

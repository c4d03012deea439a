package install

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// locks opens rowfeed as a writer of the login does, and locks a shard of the feed.
func locks(l *suite.Login, feed string) error {
	l.Helper()
	rf, err := rowfeed.Open(l.Ctx, l.Pool, l.Dialect, nil)
	if err != nil {
		return err
	}
	f, err := rf.Feed(l.Ctx, feed)
	if err != nil {
		return err
	}
	tx, err := l.Pool.BeginTx(l.Ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = f.Lock(l.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
	return err
}

// TestOwnersKeepTheirRights (M29, M63): PostgreSQL lists an owner's rights, and revokes them, as those of any login.
// The owner of rowfeed's tables is granted nothing. A login that became the owner after its grant keeps its rights if
// it is revoked, or if the granted feed is dropped.
func TestOwnersKeepTheirRights(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...)
	eachWithRoles(t, func(x *suite.Events) {
		owner := x.NewLogin("owner", nil)
		both := rowfeed.Grants{Writers: []string{owner.Name}, Readers: []string{owner.Name}}
		x.Grant(x.Feed, both)
		x.Exec("GRANT ALL ON SCHEMA public TO " + owner.SQL)
		for _, name := range x.List("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'") {
			x.Exec("ALTER TABLE " + name + " OWNER TO " + owner.SQL)
		}
		for _, name := range x.List("SELECT oid::regprocedure::text FROM pg_proc WHERE proname LIKE 'rowfeed%'") {
			x.Exec("ALTER FUNCTION " + name + " OWNER TO " + owner.SQL)
		}
		try := func(when string, feeds ...string) {
			t.Helper()
			for _, feed := range feeds {
				if err := locks(owner, feed); err != nil {
					t.Fatalf("%s: %s: %v", when, feed, err)
				}
			}
		}
		try("as the owner", "events", "others")
		for _, g := range []rowfeed.Grants{{Writers: []string{owner.Name}}, {Readers: []string{owner.Name}}} {
			before := x.DB.Dump(t)
			err := owner.FeedOf("others").Admin().Grant(x.Ctx, g)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "it owns ") {
				t.Error(err)
			}
			_, err = owner.FeedOf("others").Admin().PrintGrants(x.Ctx, g, false)
			x.WantCode(err, rowfeed.Refused)
			x.SameDump(before, "refused")
		}
		// The login had its grant for events before it became the owner. Upgrade creates the function and grants it.
		x.Exec("DROP FUNCTION rowfeed_ulid_events")
		if _, err := owner.FeedOf("events").Admin().Upgrade(x.Ctx); err != nil {
			t.Fatal(err)
		}
		steps, err := owner.FeedOf("events").Admin().PrintGrants(x.Ctx, both, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if strings.HasPrefix(s.SQL, "REVOKE") {
				t.Errorf("the script revokes rights of the owner: %s", s.SQL)
			}
		}
		if err := owner.FeedOf("events").Admin().Revoke(x.Ctx, rowfeed.Grants{Writers: both.Writers}); err != nil {
			t.Fatal(err)
		}
		try("revoked", "events", "others")
		if err := owner.RF.DropFeed(x.Ctx, "events"); err != nil {
			t.Fatal(err)
		}
		try("the other feed dropped", "others")
	})
}

// TestGrantsForEveryoneAreNotPrinted (M29): grants for everybody (public) or for an empty name are not printed, because
// nothing checks a printed script.
func TestGrantsForEveryoneAreNotPrinted(t *testing.T) {
	eachWithRoles(t, func(x *suite.Events) {
		for _, login := range []string{"public", "PUBLIC", "none", ""} {
			for _, revoke := range []bool{false, true} {
				_, err := x.Feed.Admin().PrintGrants(x.Ctx, rowfeed.Grants{Writers: []string{login}}, revoke)
				x.WantCode(err, rowfeed.InvalidRequest)
			}
		}
	})
}

// TestAccountIsKnownInAnySpelling (M29, M63): an account of MariaDB or MySQL is the same account in every spelling. It
// keeps rights for a feed that was granted in another spelling, and any spelling revokes it. A role of MariaDB is no
// account.
func TestAccountIsKnownInAnySpelling(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...)
	eachWithRoles(t, func(x *suite.Events) {
		others, err := x.RF.Feed(x.Ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		bare := "acc " + x.DB.Name
		shout, account := bare+"@LocalHost", x.Dialect.Literal(bare)
		x.Exec("CREATE USER "+account+"@'localhost'", "CREATE USER "+account)
		x.Cleanup(func() { x.Exec("DROP USER "+account+"@'localhost'", "DROP USER "+account) })
		before := x.DB.Dump(t)
		x.Grant(x.Feed, rowfeed.Grants{Writers: []string{bare, "'" + bare + "'@'%'", shout}})
		if g := x.Feed.Admin().Granted(); !slices.Equal(g.Writers, []string{bare + "@%", bare + "@localhost"}) {
			t.Errorf("noted: %q", g.Writers)
		}
		x.Grant(others, rowfeed.Grants{Writers: []string{bare + "@%", bare + "@localhost"}})
		one := x.DB.Dump(t)
		x.Grant(x.Feed, rowfeed.Grants{Writers: []string{"`" + bare + "`@%"}})
		x.SameDump(one, "granted again")
		if err := x.Feed.Admin().Revoke(x.Ctx, rowfeed.Grants{Writers: []string{bare + "@%", shout}}); err != nil {
			t.Fatal(err)
		}
		if g := x.Feed.Admin().Granted(); !g.IsZero() {
			t.Errorf("still noted: %q", g)
		}
		for _, host := range []string{"%", "localhost"} {
			grants := strings.Join(x.List("SHOW GRANTS FOR "+account+"@'"+host+"'"), "\n")
			if !strings.Contains(grants, "rowfeed_feeds") || !strings.Contains(grants, "rowfeed_lock_others") ||
				strings.Contains(grants, "rowfeed_lock_events") {
				t.Errorf("of the other feed %s has:\n%s", host, grants)
			}
		}
		if err := others.Admin().Revoke(x.Ctx, rowfeed.Grants{Writers: []string{bare, shout}}); err != nil {
			t.Fatal(err)
		}
		x.SameDump(before, "all revoked")

		if x.Has.HostlessRoles {
			role := "role_" + x.DB.Name
			x.Exec("CREATE ROLE " + role)
			x.Cleanup(func() { x.Exec("DROP ROLE " + role) })
			x.Grant(x.Feed, rowfeed.Grants{Readers: []string{role}})
			if g := x.Feed.Admin().Granted(); !slices.Equal(g.Readers, []string{role}) {
				t.Errorf("noted: %q", g.Readers)
			}
			if err := x.Feed.Admin().Revoke(x.Ctx, rowfeed.Grants{Readers: []string{role}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package conformance

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// locks tells whether a login may write to a feed as a Go writer does, from its start on.
func (l *login) locks(feed string) error {
	l.Helper()
	rf, err := rowfeed.Open(l.ctx, l.pool, l.dialect, nil)
	if err != nil {
		return err
	}
	f, err := rf.Feed(l.ctx, feed)
	if err != nil {
		return err
	}
	tx, err := l.pool.BeginTx(l.ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	_, err = f.Lock(l.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
	return err
}

// TestOwnersKeepTheirRights (M29, M63): PostgreSQL lists an owner's rights, and takes them away,
// like anybody's. Who owns rowfeed's tables is granted nothing, and loses nothing when a login
// that has become the owner is revoked, or a feed goes that it was granted.
func TestOwnersKeepTheirRights(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...)
	eachWithRoles(t, func(x *events) {
		owner := x.newLogin("owner", nil)
		both := rowfeed.Grants{Writers: []string{owner.name}, Readers: []string{owner.name}}
		x.grant(x.feed, both)
		x.exec("GRANT ALL ON SCHEMA public TO " + owner.sql)
		for _, name := range x.list("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'") {
			x.exec("ALTER TABLE " + name + " OWNER TO " + owner.sql)
		}
		for _, name := range x.list("SELECT oid::regprocedure::text FROM pg_proc WHERE proname LIKE 'rowfeed%'") {
			x.exec("ALTER FUNCTION " + name + " OWNER TO " + owner.sql)
		}
		try := func(when string, feeds ...string) {
			t.Helper()
			for _, feed := range feeds {
				if err := owner.locks(feed); err != nil {
					t.Fatalf("%s: %s: %v", when, feed, err)
				}
			}
		}
		try("as the owner", "events", "others")
		for _, g := range []rowfeed.Grants{{Writers: []string{owner.name}}, {Readers: []string{owner.name}}} {
			before := x.db.Dump(t)
			err := owner.feedOf("others").Admin().Grant(x.ctx, g)
			if x.wantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), "it owns ") {
				t.Error(err)
			}
			_, err = owner.feedOf("others").Admin().PrintGrants(x.ctx, g, false)
			x.wantCode(err, rowfeed.Refused)
			x.sameDump(before, "refused")
		}
		// The record of events has it from before. A function is made anew, with its rights.
		x.exec("DROP FUNCTION rowfeed_ulid_events")
		if _, err := owner.feedOf("events").Admin().Upgrade(x.ctx); err != nil {
			t.Fatal(err)
		}
		steps, err := owner.feedOf("events").Admin().PrintGrants(x.ctx, both, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if strings.HasPrefix(s.SQL, "REVOKE") {
				t.Errorf("the script takes an owner's rights: %s", s.SQL)
			}
		}
		if err := owner.feedOf("events").Admin().Revoke(x.ctx, rowfeed.Grants{Writers: both.Writers}); err != nil {
			t.Fatal(err)
		}
		try("revoked", "events", "others")
		if err := owner.rf.DropFeed(x.ctx, "events"); err != nil {
			t.Fatal(err)
		}
		try("the other feed dropped", "others")
	})
}

// TestGrantsPrinted (M29): a script that nobody has tried gives nothing to everybody.
func TestGrantsPrinted(t *testing.T) {
	eachWithRoles(t, func(x *events) {
		for _, login := range []string{"public", "PUBLIC", "none", ""} {
			for _, revoke := range []bool{false, true} {
				_, err := x.feed.Admin().PrintGrants(x.ctx, rowfeed.Grants{Writers: []string{login}}, revoke)
				x.wantCode(err, rowfeed.InvalidRequest)
			}
		}
	})
}

// TestAccountsAreOne (M29, M63): an account of MariaDB or MySQL is one, however it is written: it keeps
// what it needs for a feed that it was granted by another spelling, and is revoked by any. A role of MariaDB's
// is none of them.
func TestAccountsAreOne(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...)
	eachWithRoles(t, func(x *events) {
		others, err := x.rf.Feed(x.ctx, "others")
		if err != nil {
			t.Fatal(err)
		}
		bare := "acc " + x.db.Name
		shout, account := bare+"@LocalHost", x.dialect.Literal(bare)
		x.exec("CREATE USER "+account+"@'localhost'", "CREATE USER "+account)
		x.Cleanup(func() { x.exec("DROP USER "+account+"@'localhost'", "DROP USER "+account) })
		before := x.db.Dump(t)
		x.grant(x.feed, rowfeed.Grants{Writers: []string{bare, "'" + bare + "'@'%'", shout}})
		if g := x.feed.Admin().Granted(); !slices.Equal(g.Writers, []string{bare + "@%", bare + "@localhost"}) {
			t.Errorf("noted: %q", g.Writers)
		}
		x.grant(others, rowfeed.Grants{Writers: []string{bare + "@%", bare + "@localhost"}})
		one := x.db.Dump(t)
		x.grant(x.feed, rowfeed.Grants{Writers: []string{"`" + bare + "`@%"}})
		x.sameDump(one, "granted again")
		if err := x.feed.Admin().Revoke(x.ctx, rowfeed.Grants{Writers: []string{bare + "@%", shout}}); err != nil {
			t.Fatal(err)
		}
		if g := x.feed.Admin().Granted(); !g.IsZero() {
			t.Errorf("still noted: %q", g)
		}
		for _, host := range []string{"%", "localhost"} {
			grants := strings.Join(x.list("SHOW GRANTS FOR "+account+"@'"+host+"'"), "\n")
			if !strings.Contains(grants, "rowfeed_feeds") || !strings.Contains(grants, "rowfeed_lock_others") || strings.Contains(grants, "rowfeed_lock_events") {
				t.Errorf("of the other feed %s has:\n%s", host, grants)
			}
		}
		if err := others.Admin().Revoke(x.ctx, rowfeed.Grants{Writers: []string{bare, shout}}); err != nil {
			t.Fatal(err)
		}
		x.sameDump(before, "all revoked")

		if x.engine == testdb.MariaDB {
			role := "role_" + x.db.Name
			x.exec("CREATE ROLE " + role)
			x.Cleanup(func() { x.exec("DROP ROLE " + role) })
			x.grant(x.feed, rowfeed.Grants{Readers: []string{role}})
			if g := x.feed.Admin().Granted(); !slices.Equal(g.Readers, []string{role}) {
				t.Errorf("noted: %q", g.Readers)
			}
			if err := x.feed.Admin().Revoke(x.ctx, rowfeed.Grants{Readers: []string{role}}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

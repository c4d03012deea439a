package admin

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWhoHoldsItUp (M72): whose open transaction holds changes back is named, with connection, host, age and
// statement as far as the database knows them, and is not any more when it has ended.
func TestWhoHoldsItUp(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		writer := x.Begin(sql.LevelReadCommitted)
		id, name, statement := x.Connection(writer), "root", "INSERT INTO kv"
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)")
		ended := make(chan struct{})
		switch {
		case x.Family() == "sqlite":
			me, err := user.Current()
			if err != nil {
				x.Fatal(err)
			}
			id, name, statement = fmt.Sprint("pid ", os.Getpid()), me.Username, "process "
		case x.Family() == "postgres":
			id, name, statement = "pid "+id, "postgres", "idle in transaction: INSERT INTO kv"
		case x.Engine == testdb.MariaDB: // which tells of no statement but the current one
			statement = "DO SLEEP(600)"
			go func() {
				defer close(ended)
				writer.ExecContext(x.Ctx, statement)
			}()
		}
		var status *admin.Status
		var b admin.Blocker
		named := func() bool {
			var err error
			if status, err = f.Admin().Status(x.Ctx); err != nil {
				x.Fatal(err)
			}
			i := slices.IndexFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id && strings.Contains(b.Statement, statement) })
			if i >= 0 {
				b = status.Blockers[i]
			} else if x.Family() == "mysql" {
				suite.Rest(x.Ctx, 150*time.Millisecond) // what InnoDB tells is read anew only when nobody has asked for 100 ms
			}
			return i >= 0
		}
		x.Eventually("it is named", named)
		aged := b.AgeSeconds != nil && *b.AgeSeconds >= 0 && *b.AgeSeconds < 1200
		if b.User != name || b.Host == "" || aged == (x.Family() == "sqlite") || b.Scope == "" || status.BlockersUnseen != nil {
			x.Errorf("%+v, %+v", b, status.BlockersUnseen)
		}
		if x.Engine == testdb.MariaDB {
			x.Exec("KILL " + id)
			<-ended
		}
		writer.Rollback()
		x.Eventually("it is gone", func() bool {
			if x.Family() == "mysql" {
				suite.Rest(x.Ctx, 150*time.Millisecond)
			}
			return !named()
		})
	})
}

// TestBlockersByLogin (M72): to a login that may not see what others do it is said that not all is told of who
// holds changes back, and what to run, after which it is.
func TestBlockersByLogin(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		login := "ops_" + x.DB.Name
		at, err := url.Parse(x.DB.URL)
		if err != nil {
			x.Fatal(err)
		}
		if x.Family() == "postgres" {
			at.User = url.User(login)
			x.Exec("CREATE ROLE "+login+" LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+login)
			x.Cleanup(func() { x.Exec("DROP OWNED BY "+login, "DROP ROLE "+login) })
		} else {
			at.User = url.UserPassword(login, "secret")
			x.Exec("CREATE USER "+login+"@'%' IDENTIFIED BY 'secret'", "GRANT SELECT, TRIGGER ON "+x.DB.Name+".* TO "+login+"@'%'")
			x.Cleanup(func() { x.Exec("DROP USER " + login) })
		}
		writer := x.Begin(sql.LevelReadCommitted)
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)")
		id := x.Connection(writer)
		if x.Family() == "postgres" {
			id = "pid " + id
		}
		// look is what is told of the writer, nil where nothing is, to a session that begins now.
		look := func(at string) (*admin.Blocker, *admin.Unseen) {
			f, err := suite.OpenEnv(x.T, &testdb.Database{Engine: x.Engine, URL: at, Name: x.DB.Name}, nil).RF.Feed(x.Ctx, f.Name())
			if err != nil {
				x.Fatal(err)
			}
			status, err := f.Admin().Status(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			i := slices.IndexFunc(status.Blockers, func(b admin.Blocker) bool { return b.Session == id })
			if i < 0 {
				return nil, status.BlockersUnseen
			}
			return &status.Blockers[i], status.BlockersUnseen
		}
		all := func(at string) {
			x.Helper()
			x.Eventually("all is told", func() bool {
				b, unseen := look(at)
				return b != nil && b.AgeSeconds != nil && !strings.Contains(b.Statement, "insufficient") && unseen == nil
			})
		}
		all(x.DB.URL)
		b, unseen := look(at.String())
		switch {
		case unseen == nil || !strings.Contains(unseen.Cause, login):
			x.Fatalf("nothing is said of what is not told: %+v", unseen)
		case x.Family() == "postgres" && (b == nil || b.Statement != "<insufficient privilege>" || b.AgeSeconds != nil):
			x.Errorf("%+v", b)
		case x.Family() != "postgres" && b != nil:
			x.Errorf("%+v is told without the right", b)
		}
		grant, ok := strings.CutPrefix(unseen.Next, "run `")
		if !ok {
			x.Fatal(unseen.Next)
		}
		x.Exec(strings.TrimSuffix(grant, "`"))
		all(at.String())
		writer.Rollback()
	})
}

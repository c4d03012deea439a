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

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestStatusNamesBlockers (M72): status names the session whose open transaction delays changes, with host, age and
// statement as far as the database knows them, and no longer names it when that transaction has ended.
func TestStatusNamesBlockers(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		writer := x.Begin(sql.LevelReadCommitted)
		connection := x.Connection(writer)
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)")
		ended := make(chan struct{})
		var id, name, statement string
		if x.Has.OneWriter { // its lock belongs to a process
			me, err := user.Current()
			if err != nil {
				x.Fatal(err)
			}
			id, name, statement = fmt.Sprint("pid ", os.Getpid()), me.Username, "process "
		} else {
			id, name = x.Text("admin.session", connection), x.Text("admin.user")
			statement = x.Text("admin.shown_statement")
		}
		if x.Has.ShowsOnlyRunningStatement {
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
			i := slices.IndexFunc(status.Blockers, func(b admin.Blocker) bool {
				return b.Session == id && strings.Contains(b.Statement, statement)
			})
			if i >= 0 {
				b = status.Blockers[i]
			} else {
				x.RestForLockViews()
			}
			return i >= 0
		}
		x.Eventually("the writer is named", named)
		aged := b.AgeSeconds != nil && *b.AgeSeconds >= 0 && *b.AgeSeconds < 1200
		if b.User != name || b.Host == "" || aged == x.Has.OneWriter || b.Scope == "" || status.BlockersUnseen != nil {
			x.Errorf("%+v, %+v", b, status.BlockersUnseen)
		}
		if x.Has.ShowsOnlyRunningStatement {
			x.Exec(x.Text("admin.end_session", id))
			<-ended
		}
		writer.Rollback()
		x.Eventually("the writer is no longer named", func() bool {
			x.RestForLockViews()
			return !named()
		})
	})
}

// TestStatusSaysWhatALoginCannotSee (M72): a login without the right to see other sessions is told that the list of
// blockers is incomplete, and which statement to run. After that statement the list is complete.
func TestStatusSaysWhatALoginCannotSee(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		login := "ops_" + x.DB.Name
		at, err := url.Parse(x.DB.URL)
		if err != nil {
			x.Fatal(err)
		}
		at.User = operator(x, login)
		writer := x.Begin(sql.LevelReadCommitted)
		x.In(writer, "INSERT INTO kv VALUES (1, 'a', 1)")
		id := x.Text("admin.session", x.Connection(writer))
		// look returns what a new session is told about the writer, or nil.
		look := func(at string) (*admin.Blocker, *admin.Unseen) {
			y := suite.OpenEnv(x.T, &testdb.Database{Engine: x.Engine, URL: at, Name: x.DB.Name}, nil)
			f, err := y.RF.Feed(x.Ctx, f.Name())
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
			x.Eventually("the list is complete", func() bool {
				b, unseen := look(at)
				return b != nil && b.AgeSeconds != nil && !strings.Contains(b.Statement, "insufficient") &&
					unseen == nil
			})
		}
		all(x.DB.URL)
		b, unseen := look(at.String())
		switch {
		case unseen == nil || !strings.Contains(unseen.Cause, login):
			x.Fatalf("status does not say what the login cannot see: %+v", unseen)
		case x.Has.ShowsSessionsToAll && (b == nil || b.Statement != "<insufficient privilege>" || b.AgeSeconds != nil):
			x.Errorf("%+v", b)
		case !x.Has.ShowsSessionsToAll && b != nil:
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

// operator creates a login that can read status, and returns its part of a URL.
func operator(x *suite.Env, login string) *url.Userinfo {
	x.Helper()
	x.Exec(x.Statements("admin.create_operator", login, x.DB.Name)...)
	x.Cleanup(func() { x.Exec(x.Statements("admin.drop_operator", login)...) })
	if password := x.Text("admin.password"); password != "" {
		return url.UserPassword(login, password)
	}
	return url.User(login)
}

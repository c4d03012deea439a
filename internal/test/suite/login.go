package suite

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Login is a login of the database, with rowfeed opened as that login.
type Login struct {
	*Env
	Name string // as Grants takes it
	SQL  string // as statements spell it
}

// NewLogin creates a login without rights and opens rowfeed with it.
func (x *Env) NewLogin(user string, cfg *rowfeed.Config) *Login {
	x.Helper()
	const password = "p:w/d@1"
	user += " " + x.DB.Name
	l := &Login{
		Name: x.Text("suite.login_name", user),
		SQL:  x.Text("suite.quoted_login", x.Dialect.Quote(user), x.Dialect.Literal(user)),
	}
	x.Exec(x.Statements("suite.create_login", l.SQL, password)...)
	x.Cleanup(func() { x.Exec(x.Statements("suite.drop_login", l.SQL)...) })
	u, err := url.Parse(x.DB.URL)
	if err != nil {
		x.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	l.Env = OpenEnv(x.T, &testdb.Database{Engine: x.Engine, URL: u.String(), Name: x.DB.Name}, cfg)
	return l
}

// FeedOf returns the feed, opened with the login.
func (l *Login) FeedOf(name string) *rowfeed.Feed {
	l.Helper()
	f, err := l.RF.Feed(l.Ctx, name)
	if err != nil {
		l.Fatal(err)
	}
	return f
}

// BeginAs begins a transaction of the login.
func (l *Login) BeginAs() *sql.Tx {
	l.Helper()
	tx, err := l.Pool.BeginTx(l.Ctx, nil)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { tx.Rollback() })
	return tx
}

// Grant grants rights on the feed to logins.
func (x *Env) Grant(f *rowfeed.Feed, g rowfeed.Grants) {
	x.Helper()
	if err := f.Admin().Grant(x.Ctx, g); err != nil {
		x.Fatal(err)
	}
}

// RightsOn grants a login rights on a table that the test created.
func (x *Env) RightsOn(table, rights string, l *Login) {
	x.Helper()
	x.Exec(fmt.Sprintf("GRANT %s ON %s TO %s", rights, table, l.SQL))
}

// SameDump asserts that the schema did not change.
func (x *Env) SameDump(before, when string) {
	x.Helper()
	after := x.DB.Dump(x.T)
	if after == before {
		return
	}
	var lines []string
	was := strings.Split(before, "\n")
	for i, line := range strings.Split(after, "\n") {
		if i >= len(was) || was[i] != line {
			if lines = append(lines, line); len(lines) == 12 {
				break
			}
		}
	}
	x.Errorf("%s: the schema has changed:\n%s", when, strings.Join(lines, "\n"))
}

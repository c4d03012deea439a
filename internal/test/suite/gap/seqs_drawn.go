package gap

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestSeqsDrawnBeforeTheFirstRow (G2, H29): a transaction that has only read until now has no
// number, and its statement may have drawn already: it is waited for. One that only reads is not.
func TestSeqsDrawnBeforeTheFirstRow(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // a transaction of PostgreSQL has a lock by then
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		l := newLooker(x)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		l.wantNext("a row", 1)
		x.Exec("CREATE FUNCTION wait_kv(id BIGINT) RETURNS BIGINT BEGIN DO GET_LOCK('"+x.DB.Name+"', 600); RETURN id; END",
			"CREATE FUNCTION record_kv(id BIGINT) RETURNS BIGINT BEGIN INSERT INTO rowfeed_changes_kv (id) SELECT kv.id FROM kv WHERE kv.id = id AND GET_LOCK('"+x.DB.Name+"', 600) = 1; RETURN id; END")
		for round, c := range []struct {
			what, statement string
			waited          bool
		}{
			{"a reader", "SELECT GET_LOCK('" + x.DB.Name + "', 600) FROM kv WHERE id = 5", false},
			{"a writer", "INSERT INTO rowfeed_changes_kv (id) SELECT id FROM kv WHERE wait_kv(id) = 5", true},
			{"a function that writes", "SELECT record_kv(5)", true},
		} {
			release := l.waiting(c.statement)
			gap := x.Begin(sql.LevelReadCommitted)
			x.In(gap, "INSERT INTO kv VALUES (6, 'never', 0)")
			l.many(1000 + 2000*round)
			if err := gap.Rollback(); err != nil {
				x.Fatal(err)
			}
			if c.waited {
				l.askedAgain(1)
				l.many(2000 + 2000*round)
				l.mu.Lock()
				if !strings.Contains(l.last, " IN (") {
					x.Errorf("%s: not waited for: %s", c.what, l.last)
				}
				l.mu.Unlock()
			} else {
				l.gone()
			}
			release()
			l.Publish(l.feed)
			l.gone()
		}
		x.WantSound(l.feed)
	})
}

// waiting runs a statement that waits for a lock by the database's name, in a transaction that has
// read before.
func (x *looker) waiting(statement string) (release func()) {
	x.Helper()
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if _, err := conn.ExecContext(x.Ctx, "DO GET_LOCK('"+x.DB.Name+"', 600)"); err != nil {
		x.Fatal(err)
	}
	tx := x.Begin(sql.LevelReadCommitted)
	x.In(tx, "SELECT count(*) FROM kv")
	done := make(chan error, 1)
	go func() {
		_, err := tx.ExecContext(x.Ctx, statement)
		_, released := tx.ExecContext(x.Ctx, "DO RELEASE_ALL_LOCKS()") // the session may be used again
		done <- errors.Join(err, released, tx.Commit())
	}()
	x.Eventually("the statement waits", func() bool {
		return x.Scalar("SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND DB = '"+x.DB.Name+"'") == 1
	})
	return func() {
		x.Helper()
		if _, err := conn.ExecContext(x.Ctx, "DO RELEASE_LOCK('"+x.DB.Name+"')"); err != nil {
			x.Fatal(err)
		}
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		conn.Close()
	}
}

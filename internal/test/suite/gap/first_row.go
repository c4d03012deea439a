package gap

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestSeqDrawnBeforeFirstRowKeepsGapOpen (G2, H29): a transaction that has only read has no transaction number, but its
// current statement may already have drawn a seq. The publisher keeps the gap open for a statement that may write, and
// closes it for one that only reads.
func TestSeqDrawnBeforeFirstRowKeepsGapOpen(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // PostgreSQL's transactions have locked the table by then
	suite.Each(t, func(x *suite.Env) {
		p := newPublisher(x, rowfeed.ModeSequence, 0)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		p.wantNextPass("a row", 1)
		x.Exec(x.Statements("gap.waiting_functions", x.DB.Name)...)
		for round, c := range []struct {
			what, statement string
			keepsOpen       bool
		}{
			{"a reader", x.Text("gap.waiting_read", x.DB.Name), false},
			{"a writer", "INSERT INTO rowfeed_changes_kv (id) SELECT id FROM kv WHERE wait_kv(id) = 5", true},
			{"a function that writes", "SELECT record_kv(5)", true},
		} {
			release := p.runWaiting(c.statement)
			gap := x.Begin(sql.LevelReadCommitted)
			x.In(gap, "INSERT INTO kv VALUES (6, 'never', 0)")
			p.publishMany(1000 + 2000*round)
			if err := gap.Rollback(); err != nil {
				x.Fatal(err)
			}
			if c.keepsOpen {
				p.publishUntilAsked(1)
				p.publishMany(2000 + 2000*round)
				p.mu.Lock()
				if !strings.Contains(p.last, " IN (") {
					x.Errorf("%s: the gap was closed: %s", c.what, p.last)
				}
				p.mu.Unlock()
			} else {
				p.awaitNoGap()
			}
			release()
			p.Publish(p.feed)
			p.awaitNoGap()
		}
		x.WantSound(p.feed)
	})
}

// runWaiting runs a statement that waits for a user lock with the database's name, in a transaction that has read
// before. It returns when the statement waits.
func (p *publisher) runWaiting(statement string) (release func()) {
	p.Helper()
	conn, err := p.DB.Admin().Conn(p.Ctx)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := conn.ExecContext(p.Ctx, p.Text("gap.lock", p.DB.Name)); err != nil {
		p.Fatal(err)
	}
	unlock, unlockAll := p.Text("gap.unlock", p.DB.Name), p.Text("gap.unlock_all")
	tx := p.Begin(sql.LevelReadCommitted)
	p.In(tx, "SELECT count(*) FROM kv")
	done := make(chan error, 1)
	go func() {
		_, err := tx.ExecContext(p.Ctx, statement)
		_, released := tx.ExecContext(p.Ctx, unlockAll) // the pool may use the session again
		done <- errors.Join(err, released, tx.Commit())
	}()
	p.Eventually("the statement waits", func() bool { return p.Scalar(p.Text("gap.waits", p.DB.Name)) == 1 })
	return func() {
		p.Helper()
		if _, err := conn.ExecContext(p.Ctx, unlock); err != nil {
			p.Fatal(err)
		}
		if err := <-done; err != nil {
			p.Fatal(err)
		}
		conn.Close()
	}
}

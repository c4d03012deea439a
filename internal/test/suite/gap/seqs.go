package gap

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLateSeqsAreFoundAtOnce (G1, G2, H29): writers draw seqs early and commit late, in every way that the database
// offers, while changes with higher seqs are published. The publisher keeps their gaps open, and its first pass after
// each commit publishes the change. When all writers have ended, it closes the gaps.
func TestLateSeqsAreFoundAtOnce(t *testing.T) {
	testdb.Quick(t)
	testLate(t, rowfeed.ModeSequence)
}

// TestLateRecordsAreFoundAtOnce (H29) is TestLateSeqsAreFoundAtOnce for records of an outbox, in several shards.
func TestLateRecordsAreFoundAtOnce(t *testing.T) { testLate(t, rowfeed.ModeOutbox) }

func testLate(t *testing.T, mode string) {
	eachPublisher(t, mode, func(p *publisher) {
		x := p.Env
		if x.Has.OneWriter {
			return // no change is committed late
		}
		open := func(statements ...string) *sql.Tx {
			tx := x.Begin(sql.LevelReadCommitted)
			x.In(tx, statements...)
			return tx
		}
		insert := func(id int) string { return fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', %d)", id, id%2) }
		record := "INSERT INTO " + p.table + " (id) VALUES (5)"
		x.Exec(insert(5))
		p.wantNextPass("a row", 1)
		type writer struct {
			what string
			end  func()
			keys int
		}
		var writers []writer
		add := func(what string, tx *sql.Tx, keys int) {
			writers = append(writers, writer{what, func() { x.Commit(tx) }, keys})
		}
		add("a transaction", open(insert(1)), 1)
		add("under a savepoint", open("SAVEPOINT s", insert(2), "RELEASE SAVEPOINT s"), 1)
		add("after a savepoint", open("SAVEPOINT s", insert(3), "ROLLBACK TO SAVEPOINT s", insert(4)), 1)
		add("a transaction that inserts the change itself", open(record), 1)
		reader := open("SELECT count(*) FROM kv") // has written nothing yet
		rolled := open(insert(6))
		writers = append(writers, writer{"a transaction that is rolled back", func() {
			if err := rolled.Rollback(); err != nil {
				x.Error(err)
			}
		}, 0})
		if x.Has.Knows("suite.prepare") {
			writers = append(writers, writer{"a prepared transaction", prepared(x, insert(7)), 1})
		}
		if x.Has.Knows("gap.insert_two") { // others cannot hold it, or block other writers meanwhile
			writers = append(writers, writer{"during INSERT … SELECT", p.halfway(8, 9), 2})
		}
		p.publishMany(1000)
		p.publishUntilAsked(2)
		p.publishMany(2000)
		x.In(reader, insert(10))
		add("a transaction that only read at first", reader, 1)
		p.publishMany(3000)
		p.publishUntilAsked(2)
		for i, w := range writers {
			w.end()
			p.wantNextPass(w.what, w.keys)
			p.publishMany(4000 + 1000*i)
		}
		p.awaitNoGap()
		x.WantSound(p.feed)
	})
}

// prepared runs a statement in a transaction that is prepared, and ends its session. (MySQL detaches a prepared
// transaction from its session at once.)
func prepared(x *suite.Env, statement string) (commit func()) {
	x.Helper()
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	name := "of " + x.DB.Name
	statements := []string{x.Text("suite.begin_prepared", name), statement}
	for _, s := range append(statements, x.Statements("suite.prepare", name)...) {
		if _, err := conn.ExecContext(x.Ctx, s); err != nil {
			x.Fatalf("%s: %v", s, err)
		}
	}
	if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
		x.Fatal(err)
	}
	over := false
	x.Cleanup(func() {
		if !over { // the database cannot be dropped while it has a prepared transaction
			x.Exec(x.Text("suite.rollback_prepared", name))
		}
	})
	return func() { over = true; x.Exec(x.Text("suite.commit_prepared", name)) }
}

// TestPreparedTransactionKeepsGapOpen (G1, G2, H29): a late writer prepares its transaction while its gap is open. The
// gap stays open until the transaction is committed.
func TestPreparedTransactionKeepsGapOpen(t *testing.T) {
	testdb.Quick(t)
	// With one writer at a time, no change is committed late. SQL of the others prepares no transactions.
	testdb.Only(t, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL)
	suite.Each(t, func(x *suite.Env) {
		p := newPublisher(x, rowfeed.ModeSequence, 0)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		p.wantNextPass("a row", 1)
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		name := "late in " + x.DB.Name
		do := func(statements ...string) {
			x.Helper()
			for _, s := range statements {
				if _, err := conn.ExecContext(x.Ctx, s); err != nil {
					x.Fatalf("%s: %v", s, err)
				}
			}
		}
		do(x.Text("suite.begin_prepared", name), "INSERT INTO kv VALUES (1, 'late', 0)")
		p.publishMany(1000)
		p.publishUntilAsked(1)
		do(x.Statements("suite.prepare", name)...)
		p.publishUntilAsked(1)
		p.publishMany(2000)
		do(x.Text("suite.commit_prepared", name))
		p.wantNextPass("the prepared transaction", 1)
		p.awaitNoGap()
		x.WantSound(p.feed)
	})
}

// TestFailedCursorKeepsGapOpen (G2): a writer that has lost its table lock, but not its row, keeps its gap open.
func TestFailedCursorKeepsGapOpen(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere a transaction keeps its locks until it ends
	suite.Each(t, func(x *suite.Env) {
		p := newPublisher(x, rowfeed.ModeSequence, 0)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		p.wantNextPass("a row", 1)
		tx := failedCursor(x, 11)
		p.publishMany(1000)
		p.publishUntilAsked(1)
		p.publishMany(2000)
		x.Commit(tx)
		p.wantNextPass("a transaction whose cursor failed under a savepoint", 1)
		p.awaitNoGap()
	})
}

// failedCursor begins a transaction that inserts a row in a cursor. The cursor fails at its second row, under a
// savepoint that is rolled back. PostgreSQL then releases the cursor's locks and keeps the row.
func failedCursor(x *suite.Env, id int) *sql.Tx {
	x.Helper()
	x.Exec(x.Text("gap.writing_function"))
	fetch := x.Text("gap.fetch_next")
	tx := x.Begin(sql.LevelReadCommitted)
	x.In(tx, x.Text("gap.failing_cursor", id), fetch, "SAVEPOINT s")
	if _, err := tx.ExecContext(x.Ctx, fetch); err == nil {
		x.Fatal("the cursor did not fail")
	}
	x.In(tx, "ROLLBACK TO SAVEPOINT s")
	return tx
}

// halfway begins a statement that inserts changes of two keys, and waits for a lock between them.
func (p *publisher) halfway(first, second int) (end func()) {
	p.Helper()
	p.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', 0), (%d, 'late', 0)", first, second))
	p.wantNextPass("rows", 2)
	conn, err := p.DB.Admin().Conn(p.Ctx)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := conn.ExecContext(p.Ctx, p.Text("gap.lock")); err != nil {
		p.Fatal(err)
	}
	unlock, insert := p.Text("gap.unlock"), p.Text("gap.insert_two", p.table, first, second)
	done := make(chan error, 1)
	go func() {
		_, err := p.DB.Admin().ExecContext(p.Ctx, insert)
		done <- err
	}()
	p.Eventually("the statement waits", func() bool { return p.Scalar(p.Text("gap.waits")) == 1 })
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

// TestCachedSeqsKeepGapsOpen (H29): a session that has drawn seqs ahead may use them after its transaction has ended.
// The publisher never closes gaps of such seqs.
func TestCachedSeqsKeepGapsOpen(t *testing.T) {
	testdb.Quick(t)
	testCached(t, rowfeed.ModeSequence)
}

// TestCachedRecordNumbersKeepGapsOpen is TestCachedSeqsKeepGapsOpen for an outbox.
func TestCachedRecordNumbersKeepGapsOpen(t *testing.T) { testCached(t, rowfeed.ModeOutbox) }

func testCached(t *testing.T, mode string) {
	eachPublisher(t, mode, func(p *publisher) {
		x := p.Env
		if !x.Has.CachedSequences {
			return
		}
		x.Exec(x.Text("gap.draw_ahead", p.table, p.number))
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for id := range 2 {
			if _, err := conn.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id)); err != nil {
				x.Fatal(err)
			}
			p.wantNextPass("a session that has drawn seqs ahead", 1)
			p.publishMany(1000 * (id + 1))
			p.publishUntilAsked(2)
		}
	})
}

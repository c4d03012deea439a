package gap

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLateSeqs (G1, G2, H29): writers draw their seqs early and commit late, in every way that
// there is, while others' changes with higher ones are published. They are not given up as long
// as that may be, and found by the first look behind each commit. When all have ended no look
// goes back to them.
func TestLateSeqs(t *testing.T) {
	testdb.Quick(t)
	testLate(t, rowfeed.ModeSequence)
}

// TestLateRecords (H29) is TestLateSeqs for records of an outbox, in several shards, and its publisher.
func TestLateRecords(t *testing.T) { testLate(t, rowfeed.ModeOutbox) }

func testLate(t *testing.T, mode string) {
	eachLooker(t, mode, func(l *looker) {
		x := l.Env
		if !x.Engine.HasServer() {
			return // one writer at a time
		}
		open := func(statements ...string) *sql.Tx {
			tx := x.Begin(sql.LevelReadCommitted)
			x.In(tx, statements...)
			return tx
		}
		insert := func(id int) string { return fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', %d)", id, id%2) }
		record := "INSERT INTO " + l.table + " (id) VALUES (5)"
		x.Exec(insert(5))
		l.wantNext("a row", 1)
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
		add("behind a savepoint rolled back", open("SAVEPOINT s", insert(3), "ROLLBACK TO SAVEPOINT s", insert(4)), 1)
		add("one that records itself", open(record), 1)
		reader := open("SELECT count(*) FROM kv") // who has written nothing yet
		rolled := open(insert(6))
		writers = append(writers, writer{"one that is rolled back", func() {
			if err := rolled.Rollback(); err != nil {
				x.Error(err)
			}
		}, 0})
		what, end := prepared(x, insert(7))
		writers = append(writers, writer{what, end, 1})
		if x.Family() == "postgres" { // InnoDB lets nobody draw beside such a statement
			writers = append(writers, writer{"in the middle of INSERT … SELECT", l.halfway(8, 9), 2})
		}
		l.many(1000)
		l.askedAgain(2)
		l.many(2000)
		x.In(reader, insert(10))
		add("who had only read at first", reader, 1)
		l.many(3000)
		l.askedAgain(2)
		for i, w := range writers {
			w.end()
			l.wantNext(w.what, w.keys)
			l.many(4000 + 1000*i)
		}
		l.gone()
		x.WantSound(l.feed)
	})
}

// prepared is a transaction that outlives its session. (MySQL detaches one from it at once.)
func prepared(x *suite.Env, statement string) (what string, commit func()) {
	x.Helper()
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	name := "of " + x.DB.Name
	do, commitIt := []string{"BEGIN", statement, "PREPARE TRANSACTION '" + name + "'"}, "COMMIT PREPARED '"+name+"'"
	if x.Family() == "mysql" {
		do, commitIt = []string{"XA START '" + name + "'", statement, "XA END '" + name + "'", "XA PREPARE '" + name + "'"}, "XA COMMIT '"+name+"'"
	}
	for _, s := range do {
		if _, err := conn.ExecContext(x.Ctx, s); err != nil {
			x.Fatalf("%s: %v", s, err)
		}
	}
	// The session ends.
	if err := conn.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
		x.Fatal(err)
	}
	over := false
	x.Cleanup(func() {
		if !over { // it would keep the database from being dropped
			x.Exec(strings.Replace(commitIt, "COMMIT", "ROLLBACK", 1))
		}
	})
	return "a prepared transaction", func() { over = true; x.Exec(commitIt) }
}

// TestLatePrepared (G1, G2, H29): a writer is prepared while he is waited for, and waited for still.
func TestLatePrepared(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		l := newLooker(x)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		l.wantNext("a row", 1)
		before, behind, commit := []string{"BEGIN"}, []string{"PREPARE TRANSACTION '%s'"}, "COMMIT PREPARED '%s'"
		if x.Family() == "mysql" {
			before, behind, commit = []string{"XA START '%s'"}, []string{"XA END '%s'", "XA PREPARE '%s'"}, "XA COMMIT '%s'"
		}
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		name := "late in " + x.DB.Name
		do := func(statements ...string) {
			x.Helper()
			for _, s := range statements {
				if _, err := conn.ExecContext(x.Ctx, strings.Replace(s, "%s", name, 1)); err != nil {
					x.Fatalf("%s: %v", s, err)
				}
			}
		}
		do(append(before, "INSERT INTO kv VALUES (1, 'late', 0)")...)
		l.many(1000)
		l.askedAgain(1)
		do(behind...)
		l.askedAgain(1)
		l.many(2000)
		do(commit)
		l.wantNext("who was prepared", 1)
		l.gone()
		x.WantSound(l.feed)
	})
}

// TestLateSeqOfAFailedCursor (G2): a writer that has lost its lock, and not its row, is
// waited for like any other.
func TestLateSeqOfAFailedCursor(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere a transaction keeps its number until its end
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		l := newLooker(x)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		l.wantNext("a row", 1)
		tx := failedCursor(x, 11)
		l.many(1000)
		l.askedAgain(1)
		l.many(2000)
		x.Commit(tx)
		l.wantNext("whose cursor failed under a savepoint", 1)
		l.gone()
	})
}

// failedCursor is a transaction that wrote a row in a cursor, which failed at its second row,
// under a savepoint that is rolled back: with the cursor go its locks, and the row stays.
func failedCursor(x *suite.Env, id int) *sql.Tx {
	x.Helper()
	x.Exec("CREATE FUNCTION write_kv(id bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN PERFORM 1 / id; INSERT INTO kv VALUES (id, ''late'', 0); RETURN id; END'")
	tx := x.Begin(sql.LevelReadCommitted)
	x.In(tx, fmt.Sprintf("DECLARE c CURSOR FOR SELECT write_kv(id) FROM (VALUES (%d), (0)) v (id)", id), "FETCH 1 FROM c", "SAVEPOINT s")
	if _, err := tx.ExecContext(x.Ctx, "FETCH 1 FROM c"); err == nil {
		x.Fatal("the cursor did not fail")
	}
	x.In(tx, "ROLLBACK TO SAVEPOINT s")
	return tx
}

// halfway begins a statement that records two keys and waits between them.
func (x *looker) halfway(first, second int) (end func()) {
	x.Helper()
	x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'late', 0), (%d, 'late', 0)", first, second))
	x.wantNext("rows", 2)
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	if _, err := conn.ExecContext(x.Ctx, "SELECT pg_advisory_lock(6)"); err != nil {
		x.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := x.DB.Admin().ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO "+x.table+" (id) SELECT id FROM kv WHERE id = %d OR id = %d AND pg_advisory_xact_lock(6)::text IS NOT NULL ORDER BY id", first, second))
		done <- err
	}()
	x.Eventually("the statement waits", func() bool {
		return x.Scalar("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 1
	})
	return func() {
		x.Helper()
		if _, err := conn.ExecContext(x.Ctx, "SELECT pg_advisory_unlock(6)"); err != nil {
			x.Fatal(err)
		}
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		conn.Close()
	}
}

// TestSeqsSetBack (H29): seqs that are drawn anew are below those that were published, where no look
// goes. A request that must be consistent finds them, and so does in time the look at the whole
// table; either says so.
func TestSeqsSetBack(t *testing.T) { testSetBack(t, rowfeed.ModeSequence) }

// TestRecordsSetBack (H29) is TestSeqsSetBack for an outbox.
func TestRecordsSetBack(t *testing.T) { testSetBack(t, rowfeed.ModeOutbox) }

func testSetBack(t *testing.T, mode string) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		if !e.HasServer() {
			return // there every look is at the whole table
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		l := lookerOf(x, mode, 0)
		setBack := x.By(map[string]string{
			"postgres": "SELECT setval(pg_get_serial_sequence('" + l.table + "', '" + l.number + "'), 1, false)",
			"mysql":    "TRUNCATE TABLE " + l.table,
		})
		const wholeEvery = 10 * time.Second // is how often the whole table is looked at
		from := 0
		for round, look := range []func(){
			func() {
				page, err := l.feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Consistent: true, Shards: l.part})
				if err != nil || x.Scalar("SELECT count(*) FROM "+l.table) != 0 {
					x.Errorf("after a consistent request a change is left: %v, %v", page, err)
				}
			},
			func() {
				x.Eventually("it is found", func() bool { return x.Publish(l.feed) == 1 })
			},
		} {
			var before int
			for found := true; found; {
				// The first look here is one at the whole table. On a busy machine the next one of them may be due by the
				// time it all is done: that finds what is to be found later, and it is done again.
				began := time.Now()
				from += 1000
				l.many(from)
				l.gone()
				x.Exec(setBack, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", from/1000))
				before = len(l.troubles())
				found = x.Publish(l.feed) != 0
				if took := time.Since(began); found && (took < wholeEvery/2 || from == 20_000) {
					x.Fatalf("round %d: it was found at once, after %s", round, took)
				}
			}
			look()
			if found := l.troubles(); len(found) != before+1 || !suite.IsCode(found[before], rowfeed.DatabaseChanged) {
				x.Errorf("round %d: told %v", round, found)
			}
		}
		x.WantSound(l.feed)
	})
}

// TestSeqsTakenBack (M8): a pass whose COMMIT fails has taken nothing, and the next one takes it.
func TestSeqsTakenBack(t *testing.T) { testTakenBack(t, rowfeed.ModeSequence) }

// TestRecordsTakenBack is TestSeqsTakenBack for an outbox.
func TestRecordsTakenBack(t *testing.T) { testTakenBack(t, rowfeed.ModeOutbox) }

func testTakenBack(t *testing.T, mode string) {
	eachLooker(t, mode, func(l *looker) {
		x := l.Env
		l.many(1000)
		l.gone()
		l.mu.Lock()
		l.failing, l.deleted = true, false
		l.mu.Unlock()
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if _, err := l.feed.Publish(x.Ctx); !errors.Is(err, testdb.ErrInjected) {
			x.Fatalf("its COMMIT did not fail: %v", err)
		}
		l.wantNext("what a failed pass had taken", 1)
	})
}

// TestSeqsOfAFeedMadeAnew (H29): a feed that was dropped and added again has a table of changes of its
// own, whose seqs begin anew; also for a publisher that has not heard of it.
func TestSeqsOfAFeedMadeAnew(t *testing.T) { testMadeAnew(t, rowfeed.ModeSequence) }

// TestRecordsOfAFeedMadeAnew is TestSeqsOfAFeedMadeAnew for an outbox.
func TestRecordsOfAFeedMadeAnew(t *testing.T) { testMadeAnew(t, rowfeed.ModeOutbox) }

func testMadeAnew(t *testing.T, mode string) {
	eachLooker(t, mode, func(l *looker) {
		x := l.Env
		l.many(1000)
		l.gone()
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv")
		addAgain(x, mode)
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		if _, err := l.feed.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Shards: l.part}); err != nil || x.Scalar("SELECT count(*) FROM "+l.table) != 0 {
			x.Errorf("after a consistent request a change is left, or %v", err)
		}
		if found := l.troubles(); len(found) > 0 {
			x.Error(found)
		}
	})
}

// TestCachedSeqs (H29): a session that has drawn seqs ahead uses them when it has no transaction open.
// Those are never given up.
func TestCachedSeqs(t *testing.T) {
	testdb.Quick(t)
	testCached(t, rowfeed.ModeSequence)
}

// TestCachedRecords is TestCachedSeqs for an outbox.
func TestCachedRecords(t *testing.T) { testCached(t, rowfeed.ModeOutbox) }

func testCached(t *testing.T, mode string) {
	eachLooker(t, mode, func(l *looker) {
		x := l.Env
		if x.Family() != "postgres" {
			return // the others' sessions draw none ahead
		}
		x.Exec("ALTER TABLE " + l.table + " ALTER COLUMN " + l.number + " SET CACHE 10")
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for id := range 2 {
			if _, err := conn.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id)); err != nil {
				x.Fatal(err)
			}
			l.wantNext("a session that draws ahead", 1)
			l.many(1000 * (id + 1))
			l.askedAgain(2)
		}
	})
}

package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// anotherProcess opens the feed kv as a process that starts now.
func anotherProcess(x *suite.Env) *rowfeed.Feed {
	x.Helper()
	f, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// insertKV inserts a row into kv and publishes it.
func insertKV(x *suite.Env, f *rowfeed.Feed, id int) {
	x.Helper()
	x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
	if n := x.Publish(f); n != 1 {
		x.Fatalf("row %d: %d keys published", id, n)
	}
}

// headIs waits until a publisher has raised the head to n.
func headIs(x *suite.Env, n int64) {
	x.Helper()
	x.Eventually(fmt.Sprint("the head is ", n),
		func() bool { return x.Scalar("SELECT value FROM rowfeed_sequences") == n })
}

// wantHistoryLost asserts that a cursor is refused because the database has lost what its reader has seen.
func wantHistoryLost(x *suite.Env, f *rowfeed.Feed, after rowfeed.Cursor) {
	x.Helper()
	x.WantRefused(f, after, rowfeed.HistoryLost)
}

// TestRestoreRefusesReadersOfWhatWasLost (M74, H15): an older backup is restored, and every process is started again.
// Publishing goes on at once. A reader that has seen a lost position is refused, also after the head has passed this
// position again. Readers that have seen nothing of what was lost go on at the backup's head or below, and miss
// nothing.
func TestRestoreRefusesReadersOfWhatWasLost(t *testing.T) {
	onRestorableServer(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		x.Publish(f)
		settled, behind := x.Recorder(f, 10), x.Recorder(f, 2)
		settled.Read()
		behind.Page()
		restore := x.DB.Backup(x.T)
		f = anotherProcess(x)
		insertKV(x, f, 4)
		insertKV(x, f, 5)
		lost := x.Fetch(f, "", 0).Cursor
		restore()
		f = anotherProcess(x)
		wantHistoryLost(x, f, lost)
		for id := 6; id < 10; id++ { // at positions 4 to 7
			insertKV(x, f, id)
			wantHistoryLost(x, f, lost)
			wantHistoryLost(x, anotherProcess(x), lost)
		}
		for _, k := range []*suite.Recorder{settled, behind} {
			k.Source = f
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
		}
		x.WantSound(f)
	})
}

// onRestorableServer runs f with each capture on every engine, on a server of its own, so that Backup may restore it.
func onRestorableServer(t *testing.T, f func(x *suite.Env)) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, capture := range suite.Captures {
			if capture == feedtype.CaptureColumn && (e == testdb.Postgres18 || e == testdb.MySQL) {
				continue // their servers stop slowly
			}
			t.Run(string(capture), func(t *testing.T) {
				var x *suite.Env
				if e.HasServer() {
					x = suite.OpenEnv(t, e.Dedicated(t).NewDatabase(t), nil)
				} else {
					x = suite.NewEnv(t, e, nil)
				}
				x.Capture = capture
				x.Migrate()
				f(x)
			})
		}
	})
}

// TestLoadedDumpWakesAndRefusesReaders (M74, H15): an older state is loaded into the running server. No connection
// ends, and no process is told. The publisher goes on. Readers that have seen what was lost are refused: one that
// waits, one that polls, and one that comes back later. A reader that had seen nothing of it gets what is new.
func TestLoadedDumpWakesAndRefusesReaders(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		publisher, consumer := x.RunPublisher(), newReader(x)
		x.Fill(3)
		x.Eventually("three entries", consumer.has(3))
		settled := x.Recorder(f, 10)
		settled.Read()
		dump := x.Save()
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0), (5, 'k', 0), (6, 'k', 0)")
		x.Eventually("six entries", consumer.has(6))
		lost := x.Fetch(f, "", 0).Cursor
		waiting := waiter(x, anotherProcess(x), lost)
		alike := waiter(x, publisher.Feed, lost) // in the process of the publisher
		x.Load(dump)
		for _, w := range []<-chan suite.Fetched{waiting, alike} {
			got := <-w
			x.WantCode(got.Err, rowfeed.HistoryLost)
		}
		x.Eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		x.WantCode(consumer.refusal(), rowfeed.HistoryLost)
		x.Exec("INSERT INTO kv VALUES (7, 'k', 0), (8, 'k', 0), (9, 'k', 0), (10, 'k', 0)")
		headIs(x, 7)
		if problems := publisher.Feed.Problems(); len(problems) > 0 {
			x.Errorf("problems %q", problems)
		}
		for _, reader := range []*rowfeed.Feed{f, publisher.Feed, anotherProcess(x)} {
			wantHistoryLost(x, reader, lost)
		}
		settled.Read()
		settled.Check(x.KVRows(), suite.ByID)
		consumer.startOver()
		x.Eventually("seven entries", consumer.has(7))
		x.WantSound(f)
	})
}

// TestPublisherStartsNewTermAfterLoadedDump (M74, H15): one publisher gives a lost position again. It remembers its
// last state, so it takes another term. The same holds if another publisher has begun with the restored state.
func TestPublisherStartsNewTermAfterLoadedDump(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f, other := x.AddKV(), anotherProcess(x)
		x.Fill(1)
		x.Publish(f)
		for round := range 2 {
			dump := x.Save()
			insertKV(x, f, 2)
			lost := x.Fetch(f, "", 0).Cursor
			insertKV(x, f, 3)
			x.Load(dump)
			if round == 1 {
				insertKV(x, other, 4)
			}
			insertKV(x, f, 5)
			wantHistoryLost(x, f, lost)
			wantHistoryLost(x, other, lost)
			x.Load(dump)
		}
		// A publisher whose term has ended at a lower head than it left must not take this term back.
		dump := x.Save()
		insertKV(x, f, 6)
		lost := x.Fetch(f, "", 0).Cursor
		x.Load(dump)
		insertKV(x, other, 7)
		insertKV(x, f, 8)
		insertKV(x, f, 9)
		wantHistoryLost(x, f, lost)
	})
}

// TestLostNumbersArePublishedInOnePass (G1, H15): a loaded dump sets the numbers of changes back, too. A publisher that
// lives on publishes all changes in its first pass, although it has published changes with these numbers before.
func TestLostNumbersArePublishedInOnePass(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Has.OneWriter {
			return // there every scan is of the whole table
		}
		f := x.AddKV()
		dump := x.Save()
		x.Fill(3)
		x.Publish(f)
		x.Load(dump)
		x.Exec(x.Text("gap.restart_numbers", "rowfeed_changes_kv", "seq"))
		x.Fill(4)
		if n := x.Publish(f); n != 4 {
			x.Errorf("%d keys published, want 4", n)
		}
		x.WantSound(f)
	})
}

// TestLaggingReaderOfWhatWasLostIsRefused (M74, H15): a reader that lags reads the feed after the backup, up to a
// position that the backup has, too. A key that it did not meet any more stands below this position after the restore.
// So the reader is refused. It goes on if all that it has read was before the backup.
func TestLaggingReaderOfWhatWasLostIsRefused(t *testing.T) {
	testdb.Quick(t)
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			suite.EachCapture(t, func(x *suite.Env) {
				f := x.AddKV()
				insertKV(x, f, 1)
				insertKV(x, f, 2)
				before := x.Recorder(f, 1)
				before.Page() // row 1 at position 1
				update := func(id int) {
					x.Exec(fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", id))
					x.Publish(f)
				}
				update(1) // to position 3
				dump := x.Save()
				update(2) // to position 4
				page := x.Fetch(f, before.Cursor, 1)
				if len(page.Entries) != 1 || page.Entries[0].Position != "3" {
					x.Fatalf("the page is %s", suite.Show(page))
				}
				x.Load(dump) // row 2 is at position 2 again
				if restarted {
					f = anotherProcess(x)
				}
				wantHistoryLost(x, f, page.Cursor)
				insertKV(x, f, 3)
				insertKV(x, f, 4)
				wantHistoryLost(x, f, page.Cursor)
				before.Source = f
				before.Read()
				before.Check(x.KVRows(), suite.ByID)
			})
		})
	}
}

// TestCopyRefusesCursorOfOtherCopy (M74, H15): a proxy connects a publisher to a copy of its database, and back
// again. Both copies continue from the same state. A copy refuses a cursor of the other copy if it lacks entries that
// the reader has seen there.
func TestCopyRefusesCursorOfOtherCopy(t *testing.T) {
	t.Parallel() // a full scan finds the numbers of changes that the publisher has seen in the other copy, every 10 s
	// On MariaDB and MySQL statements name their database, so two copies of one server are two databases.
	testdb.Only(t, testdb.SQLite, testdb.Postgres15, testdb.Postgres18)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x, y := suite.NewEnv(t, e, nil), suite.NewEnv(t, e, nil)
		for _, copied := range []*suite.Env{x, y} {
			copied.Migrate()
			copied.AddKV()
		}
		pool, lead := x.DB.OpenSwitched(t, testdb.Hooks{})
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			t.Fatal(err)
		}
		insertKV(x, f, 1)
		before := x.Fetch(f, "", 0).Cursor
		y.Load(x.Save())
		insertKV(x, f, 2)
		there := x.Fetch(f, before, 0).Cursor
		lead(y.DB)
		first := func(copied *suite.Env, id int) {
			copied.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
			copied.Eventually("the publisher finds the row", func() bool { return copied.Publish(f) == 1 })
		}
		first(y, 3) // at position 2 of this copy
		wantHistoryLost(y, f, there)
		insertKV(y, f, 4)
		wantHistoryLost(y, f, there)
		here := y.Fetch(f, before, 0).Cursor
		lead(x.DB)
		wantHistoryLost(x, f, here)
		if page := x.Fetch(f, there, 0); len(page.Entries) != 0 {
			t.Errorf("nothing was lost here, and the page is %s", suite.Show(page))
		}
		first(x, 5)
		insertKV(x, f, 6)
		wantHistoryLost(x, f, here)
		if page := x.Fetch(f, there, 0); len(page.Entries) != 2 {
			t.Errorf("nothing was lost here, and the page is %s", suite.Show(page))
		}
		lead(y.DB)
		wantHistoryLost(y, f, there)
		if page := y.Fetch(f, before, 0); len(page.Entries) != 2 {
			t.Errorf("the page is %s", suite.Show(page))
		}
	})
}

// TestPromotedStandbyRefusesReadersOfWhatWasLost (M74, H15): the primary is lost with commits that the standby never
// got, and the standby is promoted in its place. Publishing goes on without an operator. A reader that has seen a lost
// commit is refused, before and after new positions pass it; a reader that has not goes on.
func TestPromotedStandbyRefusesReadersOfWhatWasLost(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		_, there := x.On(rowfeed.Config{Replica: true})
		x.Fill(3)
		x.Publish(x.Feed)
		settled := x.Fetch(x.Feed, "", 0).Cursor
		x.Eventually("the standby shows the head", func() bool {
			page, err := there.Fetch(x.Ctx, rowfeed.Request{After: ""})
			return err == nil && len(page.Entries) == 3
		})
		x.Replica.CutReplication(t)
		x.Exec("INSERT INTO kv VALUES (4, 'lost', 0), (5, 'lost', 0)")
		x.Publish(x.Feed)
		lost := x.Fetch(x.Feed, "", 0).Cursor
		consumer := newReader(x.Env)
		x.Eventually("five entries", consumer.has(5))
		publisher := x.RunPublisher()
		if page := x.Fetch(there, lost, 0); len(page.Entries) != 0 || page.Cursor != lost {
			x.Errorf("the standby, which may lag, answers %s", suite.Show(page))
		}
		primary := x.DB.Server()
		primary.Kill(t)
		x.Replica.Promote(t)
		x.Replica.TakePlace(t, primary)
		x.Eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		x.WantCode(consumer.refusal(), rowfeed.HistoryLost)

		fresh := suite.OpenEnv(t, x.DB, nil) // a process that starts after the failover
		f, err := fresh.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		wantHistoryLost(fresh, f, lost)
		_, err = fresh.Pool.Exec("INSERT INTO kv VALUES (6, 'new', 0), (7, 'new', 0), (8, 'new', 0)")
		if err != nil {
			x.Fatal(err)
		}
		x.Eventually("the publisher goes on", func() bool {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: settled})
			return err == nil && len(page.Entries) == 3
		})
		wantHistoryLost(fresh, f, lost)
		consumer.startOver()
		x.Eventually("six entries", consumer.has(6))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`, `4 {"id":6}`, `5 {"id":7}`, `6 {"id":8}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		for _, p := range publisher.Feed.Problems() {
			if strings.Contains(p, "feed bump") {
				x.Errorf("problem %q", p)
			}
		}
		fresh.WantSound(f)
		// ULID feeds have no terms. They compare the identity of the database, which is now another one.
		if _, err := fresh.Pool.Exec("CREATE TABLE later (id BIGINT NOT NULL PRIMARY KEY)"); err != nil {
			x.Fatal(err)
		}
		fresh.Add(rowfeed.FeedSpec{Name: "later", Table: "later"})
		var identities int
		err = fresh.Pool.QueryRow("SELECT count(DISTINCT database_identity) FROM rowfeed_feeds").Scan(&identities)
		if err != nil || identities != 2 {
			x.Errorf("%d identities, %v", identities, err)
		}
	})
}

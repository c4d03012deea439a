package conformance

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRunPublisher: it publishes what comes while it runs, wakes at once when told,
// and ends without an error when its context does.
func TestRunPublisher(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		published := make(chan rowfeed.PublishEvent, 100)
		// An hour between looks: it looks by itself when it looks at the whole table, and when it is woken.
		x := newEnv(t, e, &rowfeed.Config{IdlePoll: time.Hour, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { published <- e },
			Trouble:   func(e rowfeed.TroubleEvent) { t.Errorf("trouble: %v", e.Err) },
		}})
		x.migrate()
		f := x.addKV()
		ctx, cancel := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		for i := 1; i <= 3; i++ {
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			f.Wake()
			if e := <-published; e.Keys != 1 || e.Head != int64(i) {
				t.Errorf("published %+v", e)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("RunPublisher: %v", err)
		}
		x.wantDrain(f, "", kv(1, "k", 0), kv(2, "k", 0), kv(3, "k", 0))
	})
}

// TestPublisherOfDroppedFeed: going on makes no sense, and it says why.
func TestPublisherOfDroppedFeed(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.wantCode(f.RunPublisher(x.ctx), rowfeed.UnknownFeed)
		_, err := f.Publish(x.ctx)
		x.wantCode(err, rowfeed.UnknownFeed)
		_, err = f.Fetch(x.ctx, rowfeed.Request{})
		x.wantCode(err, rowfeed.UnknownFeed)
	})
}

// TestMissingTriggers (M72, H21): a publisher notices that its triggers are gone, says which,
// and upgrade mends them; what was written meanwhile is found and repaired.
func TestMissingTriggers(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.drain(f, "")
		x.exec(x.by(map[string]string{
			"sqlite": "DROP TRIGGER rowfeed_kv_delete", "postgres": "ALTER TABLE kv DISABLE TRIGGER rowfeed_kv_capture", "mysql": "DROP TRIGGER rowfeed_kv_delete",
		}))
		x.exec("DELETE FROM kv WHERE id = 1")
		trouble := make(chan rowfeed.TroubleEvent, 1)
		y := openEnv(x.T, x.db, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			select {
			case trouble <- e:
			default:
			}
		}}})
		g, err := y.rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		ctx, cancel := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- g.RunPublisher(ctx) }()
		e := <-trouble
		cancel()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if problems := g.Problems(); len(problems) == 0 || !strings.Contains(e.Err.Error(), "feed upgrade kv") {
			x.Errorf("problems %q, trouble %v", problems, e.Err)
		}
		if mended, err := g.Admin().Upgrade(x.ctx); err != nil || len(mended) == 0 {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		if len(g.Problems()) != 0 {
			x.Errorf("after upgrade: %q", g.Problems())
		}
		var status *admin.Status
		x.eventually("status counts the rows that have vanished", func() bool { // for two seconds it tries to
			if status, err = f.Admin().Status(x.ctx); err != nil {
				x.Fatal(err)
			}
			return status.Vanished != nil
		})
		if *status.Vanished != 1 {
			x.Errorf("status: %+v", status)
		}
		cursor = x.wantRepaired(f, cursor, gone(1))
		x.exec("DELETE FROM kv WHERE id = 2")
		x.wantDrain(f, cursor, gone(2))
	})
}

// TestClockGoesBack (H19): publication times never decrease from one position to a higher
// one, whatever the database's clock does, so that at:TIME misses nothing.
func TestClockGoesBack(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.publish(f)
		// The last batch was published by a clock that was an hour ahead.
		later := time.Now().Add(time.Hour).UnixMicro()
		x.exec(fmt.Sprintf("UPDATE rowfeed_sequences SET updated_at = %d", later), fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = %d", later))
		x.exec("INSERT INTO kv VALUES (2, 'b', 0)")
		x.publish(f)
		if n := x.scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_positions_kv WHERE published_at >= %d", later)); n != 2 {
			x.Errorf("%d of 2 positions keep the order of times", n)
		}
		page, err := f.Fetch(x.ctx, rowfeed.Request{After: rowfeed.At(time.UnixMicro(later))})
		if err != nil || len(page.Entries) != 2 {
			x.Errorf("at that time: %d entries, %v", len(page.Entries), err)
		}
	})
}

// TestFullDisk: a publisher on a full disk publishes nothing, says so, and goes on
// when there is room. SQLite's page limit gives the real error without a real disk.
func TestFullDisk(t *testing.T) {
	testdb.SQLite.Require(t)
	x := newEnv(t, testdb.SQLite, nil)
	x.migrate()
	x.addKV()
	x.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO kv SELECT i, 'some text that takes some room', 0 FROM n")
	pages := x.scalar("PRAGMA page_count")
	full := x.db.OpenTapped(t, testdb.Hooks{}, fmt.Sprintf("_pragma=max_page_count(%d)", pages))
	rf, err := rowfeed.Open(x.ctx, full, x.dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Publish(x.ctx)
	x.wantCode(err, rowfeed.Unavailable)
	if !strings.Contains(err.Error(), "free space") {
		t.Errorf("error %v", err)
	}
	roomy, err := x.rf.Feed(x.ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	if n := x.publish(roomy); n == 0 {
		t.Error("nothing was left to publish: the disk was not full")
	}
	x.wantSound(roomy)
	if n := x.scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 3000 {
		t.Errorf("%d positions for 3000 rows", n)
	}
}

// TestBatchThatTakesTooLong: batches above a certain size run into a bound of the
// database. A publisher that tried the same size again and again would never get on.
func TestBatchThatTakesTooLong(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		x.fill(15)
		var tooLarge atomic.Int64
		f := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if !takes(ev) {
				return nil
			}
			size := regexp.MustCompile(`LIMIT (\d+|\?)`).FindStringSubmatch(ev.SQL)[1]
			if size == "?" {
				size = fmt.Sprint(ev.Args[len(ev.Args)-1].Value)
			}
			if n, err := strconv.Atoi(size); err == nil && n <= 10 {
				return nil
			}
			tooLarge.Add(1)
			return testdb.ErrInjected
		}}, &rowfeed.Config{BatchSize: 20})
		ctx, stop := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		x.eventually("everything is published", func() bool { return x.scalar("SELECT count(*) FROM rowfeed_changes_kv") == 0 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if tooLarge.Load() == 0 {
			x.Error("no batch was too large")
		}
		x.wantSound(f)
	})
}

// TestRepublish (M70): by key, by condition and all; through batches smaller than
// the table, also with a composite key; nothing is locked and nothing left out.
func TestRepublish(t *testing.T) {
	eachCapture(t, func(x *env) {
		x.exec(x.exact("CREATE TABLE c (a BIGINT NOT NULL, b VARCHAR(20) NOT NULL, v BIGINT, PRIMARY KEY (a, b))"))
		f := x.add(rowfeed.FeedSpec{Name: "c", Table: "c"})
		for a := range 7 {
			for b := range 5 {
				x.exec(fmt.Sprintf("INSERT INTO c (a, b, v) VALUES (%d, 'b%d', %d)", a, b, 10*a+b))
			}
		}
		all, cursor := x.drain(f, "")
		for _, batch := range []int{1, 3, 35, 100} {
			if n, err := f.Admin().RepublishWhere(x.ctx, "", batch, nil); n != 35 || err != nil {
				x.Fatalf("batch %d: %d rows, %v", batch, n, err)
			}
			again, next := x.drain(f, cursor)
			if cursor = next; len(again) != len(all) {
				x.Errorf("batch %d: %d entries of %d", batch, len(again), len(all))
			}
		}
		if n, err := f.Admin().RepublishWhere(x.ctx, "a = 3 AND b > 'b2'", 1, nil); n != 2 || err != nil {
			x.Errorf("where: %d rows, %v", n, err)
		}
		if some, _ := x.drain(f, cursor); len(some) != 2 {
			x.Errorf("where: %q", some)
		}
		_, err := f.Admin().RepublishWhere(x.ctx, "nonsense(", 10, nil)
		if err == nil {
			x.Error("a broken condition was accepted")
		}
		if _, err := f.ParseKey("7"); !isCode(err, rowfeed.InvalidRequest) {
			x.Errorf("half a key: %v", err)
		}
	})
}

// TestUnknownKeys (M70): keys with a row, with a tombstone, with neither; those that no row can
// have are refused, by their type where the database would bend them into another key.
func TestUnknownKeys(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (4, 'd', 0)")
		x.drain(f, "")
		x.exec("DELETE FROM kv WHERE id = 2")
		x.publish(f)
		x.exec("INSERT INTO kv VALUES (3, 'c', 0)") // not published yet
		unknown, err := f.Admin().UnknownKeys(x.ctx, rowfeed.Key{int64(1)}, rowfeed.Key{int64(2)}, rowfeed.Key{int64(3)}, rowfeed.Key{int64(9)})
		if err != nil || len(unknown) != 1 || unknown[0][0] != int64(9) {
			x.Errorf("unknown keys: %v (%v)", unknown, err)
		}
		for _, text := range []string{`["one"]`, "one", "[true]", "[1.5]", `{"id":"1x"}`, "[null]", "[1,2]"} {
			key, err := f.ParseKey(text)
			if err == nil && x.family() == "sqlite" { // whose columns take any value: a look tells
				_, err = f.Admin().UnknownKeys(x.ctx, key)
			}
			if sensible := x.family() == "sqlite" && (text == "[true]" || text == "[1.5]"); !sensible && !isCode(err, rowfeed.InvalidRequest) {
				x.Errorf("%s: %v (%v)", text, key, err)
			}
		}
	})
}

// TestUnpublish (M70, H7): consumers get a delete; changes stay hidden, also of a row
// that is deleted and comes back; republish shows the row again.
func TestUnpublish(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.drain(f, "")
		do := func(what func(context.Context, rowfeed.Tx, ...rowfeed.Key) error, id int) {
			x.Helper()
			if err := f.InOwnTx(x.ctx, func(tx rowfeed.Tx) error { return what(x.ctx, tx, rowfeed.Key{id}) }); err != nil {
				x.Fatal(err)
			}
		}
		do(f.Unpublish, 1)
		cursor = x.wantDrain(f, cursor, gone(1))
		x.exec("UPDATE kv SET v = 1")
		cursor = x.wantDrain(f, cursor, kv(2, "b", 1))
		x.wantSound(f)
		x.exec("UPDATE kv SET v = 2 WHERE id = 1") // beside a wish for another key
		do(f.Republish, 2)
		cursor = x.wantDrain(f, cursor, kv(2, "b", 1))
		x.wantSound(f)
		x.exec("DELETE FROM kv WHERE id = 1")
		cursor = x.wantDrain(f, cursor)
		x.exec("INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.wantDrain(f, cursor)
		x.wantDrain(f, "", kv(2, "b", 1)) // a new consumer does not learn of it
		x.wantSound(f)
		// In one batch the last wish holds, and an update after it does not undo it.
		do(f.Republish, 1)
		x.exec("UPDATE kv SET v = 7 WHERE id = 1")
		cursor = x.wantDrain(f, cursor, kv(1, "again", 7))
		do(f.Republish, 2)
		do(f.Unpublish, 2)
		x.exec("UPDATE kv SET v = 8 WHERE id = 2")
		x.wantDrain(f, cursor, gone(2))
		x.wantSound(f)
	})
}

// TestPreparedWriter: who prepared a transaction that wrote to the feed's table is named by
// status, whether its session lives on or not.
func TestPreparedWriter(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // InnoDB does not tell of what is prepared without a session, SQLite prepares nothing
	each(t, func(x *env) {
		f, name := x.addKV(), "of "+x.db.Name
		conn, err := x.db.Admin().Conn(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range []string{"BEGIN", "INSERT INTO kv VALUES (1, 'a', 1)", "SAVEPOINT s", "INSERT INTO kv VALUES (2, 'b', 2)", "PREPARE TRANSACTION '" + name + "'"} {
			if _, err := conn.ExecContext(x.ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		named := func(when string) {
			x.Helper()
			status, err := f.Admin().Status(x.ctx)
			if err != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != "prepared transaction "+name {
				x.Errorf("%s: %+v, %v", when, status.Blockers, err)
			}
		}
		named("while its session lives")
		if _, err := conn.ExecContext(x.ctx, "SELECT pg_terminate_backend(pg_backend_pid())"); err == nil {
			x.Error("the session lives on")
		}
		named("when its session has ended")
		x.exec("ROLLBACK PREPARED '" + name + "'")
		if status, err := f.Admin().Status(x.ctx); err != nil || len(status.Blockers) != 0 {
			x.Errorf("when it is over: %+v, %v", status, err)
		}
	})
}

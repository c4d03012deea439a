package publish

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRunPublisher: it publishes what comes while it runs, wakes at once when told,
// and ends without an error when its context does.
func TestRunPublisher(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		published := make(chan rowfeed.PublishEvent, 100)
		// An hour between looks: it looks by itself when it looks at the whole table, and when it is woken.
		x := suite.NewEnv(t, e, &rowfeed.Config{IdlePoll: time.Hour, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { published <- e },
			Trouble:   func(e rowfeed.TroubleEvent) { t.Errorf("trouble: %v", e.Err) },
		}})
		x.Migrate()
		f := x.AddKV()
		ctx, cancel := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		for i := 1; i <= 3; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			f.Wake()
			if e := <-published; e.Keys != 1 || e.Head != int64(i) {
				t.Errorf("published %+v", e)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("RunPublisher: %v", err)
		}
		x.WantDrain(f, "", suite.KV(1, "k", 0), suite.KV(2, "k", 0), suite.KV(3, "k", 0))
	})
}

// TestPublisherOfDroppedFeed: going on makes no sense, and it says why.
func TestPublisherOfDroppedFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.WantCode(f.RunPublisher(x.Ctx), rowfeed.UnknownFeed)
		_, err := f.Publish(x.Ctx)
		x.WantCode(err, rowfeed.UnknownFeed)
		_, err = f.Fetch(x.Ctx, rowfeed.Request{})
		x.WantCode(err, rowfeed.UnknownFeed)
	})
}

// TestMissingTriggers (M72, H21): a publisher notices that its triggers are gone, says which,
// and upgrade mends them; what was written meanwhile is found and repaired.
func TestMissingTriggers(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		x.Exec(x.By(map[string]string{
			"sqlite": "DROP TRIGGER rowfeed_kv_delete", "postgres": "ALTER TABLE kv DISABLE TRIGGER rowfeed_kv_capture", "mysql": "DROP TRIGGER rowfeed_kv_delete",
		}))
		x.Exec("DELETE FROM kv WHERE id = 1")
		trouble := make(chan rowfeed.TroubleEvent, 1)
		y := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			select {
			case trouble <- e:
			default:
			}
		}}})
		g, err := y.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		ctx, cancel := context.WithCancel(x.Ctx)
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
		if mended, err := g.Admin().Upgrade(x.Ctx); err != nil || len(mended) == 0 {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		if len(g.Problems()) != 0 {
			x.Errorf("after upgrade: %q", g.Problems())
		}
		var status *admin.Status
		x.Eventually("status counts the rows that have vanished", func() bool { // for two seconds it tries to
			if status, err = f.Admin().Status(x.Ctx); err != nil {
				x.Fatal(err)
			}
			return status.Vanished != nil
		})
		if *status.Vanished != 1 {
			x.Errorf("status: %+v", status)
		}
		cursor = x.WantRepaired(f, cursor, suite.Gone(1))
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.WantDrain(f, cursor, suite.Gone(2))
	})
}

// TestClockGoesBack (H19): publication times never decrease from one position to a higher
// one, whatever the database's clock does, so that at:TIME misses nothing.
func TestClockGoesBack(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.Publish(f)
		// The last batch was published by a clock that was an hour ahead.
		later := time.Now().Add(time.Hour).UnixMicro()
		x.Exec(fmt.Sprintf("UPDATE rowfeed_sequences SET updated_at = %d", later), fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = %d", later))
		x.Exec("INSERT INTO kv VALUES (2, 'b', 0)")
		x.Publish(f)
		if n := x.Scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_positions_kv WHERE published_at >= %d", later)); n != 2 {
			x.Errorf("%d of 2 positions keep the order of times", n)
		}
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.At(time.UnixMicro(later))})
		if err != nil || len(page.Entries) != 2 {
			x.Errorf("at that time: %d entries, %v", len(page.Entries), err)
		}
	})
}

// TestFullDisk: a publisher on a full disk publishes nothing, says so, and goes on
// when there is room. SQLite's page limit gives the real error without a real disk.
func TestFullDisk(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.AddKV()
	x.Exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO kv SELECT i, 'some text that takes some room', 0 FROM n")
	pages := x.Scalar("PRAGMA page_count")
	full := x.DB.OpenTapped(t, testdb.Hooks{}, fmt.Sprintf("_pragma=max_page_count(%d)", pages))
	rf, err := rowfeed.Open(x.Ctx, full, x.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Publish(x.Ctx)
	x.WantCode(err, rowfeed.Unavailable)
	if !strings.Contains(err.Error(), "free space") {
		t.Errorf("error %v", err)
	}
	roomy, err := x.RF.Feed(x.Ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	if n := x.Publish(roomy); n == 0 {
		t.Error("nothing was left to publish: the disk was not full")
	}
	x.WantSound(roomy)
	if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 3000 {
		t.Errorf("%d positions for 3000 rows", n)
	}
}

// TestBatchThatTakesTooLong: batches above a certain size run into a bound of the
// database. A publisher that tried the same size again and again would never get on.
func TestBatchThatTakesTooLong(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(15)
		var tooLarge atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		x.Eventually("everything is published", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_changes_kv") == 0 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if tooLarge.Load() == 0 {
			x.Error("no batch was too large")
		}
		x.WantSound(f)
	})
}

// TestRepublish (M70): by key, by condition and all; through batches smaller than
// the table, also with a composite key; nothing is locked and nothing left out.
func TestRepublish(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Exact("CREATE TABLE c (a BIGINT NOT NULL, b VARCHAR(20) NOT NULL, v BIGINT, PRIMARY KEY (a, b))"))
		f := x.Add(rowfeed.FeedSpec{Name: "c", Table: "c"})
		for a := range 7 {
			for b := range 5 {
				x.Exec(fmt.Sprintf("INSERT INTO c (a, b, v) VALUES (%d, 'b%d', %d)", a, b, 10*a+b))
			}
		}
		all, cursor := x.Drain(f, "")
		for _, batch := range []int{1, 3, 35, 100} {
			if n, err := f.Admin().RepublishWhere(x.Ctx, "", batch, nil); n != 35 || err != nil {
				x.Fatalf("batch %d: %d rows, %v", batch, n, err)
			}
			again, next := x.Drain(f, cursor)
			if cursor = next; len(again) != len(all) {
				x.Errorf("batch %d: %d entries of %d", batch, len(again), len(all))
			}
		}
		if n, err := f.Admin().RepublishWhere(x.Ctx, "a = 3 AND b > 'b2'", 1, nil); n != 2 || err != nil {
			x.Errorf("where: %d rows, %v", n, err)
		}
		if some, _ := x.Drain(f, cursor); len(some) != 2 {
			x.Errorf("where: %q", some)
		}
		_, err := f.Admin().RepublishWhere(x.Ctx, "nonsense(", 10, nil)
		if err == nil {
			x.Error("a broken condition was accepted")
		}
		if _, err := f.ParseKey("7"); !suite.IsCode(err, rowfeed.InvalidRequest) {
			x.Errorf("half a key: %v", err)
		}
	})
}

// TestUnknownKeys (M70): keys with a row, with a tombstone, with neither; those that no row can
// have are refused, by their type where the database would bend them into another key.
func TestUnknownKeys(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (4, 'd', 0)")
		x.Drain(f, "")
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(f)
		x.Exec("INSERT INTO kv VALUES (3, 'c', 0)") // not published yet
		unknown, err := f.Admin().UnknownKeys(x.Ctx, rowfeed.Key{int64(1)}, rowfeed.Key{int64(2)}, rowfeed.Key{int64(3)}, rowfeed.Key{int64(9)})
		if err != nil || len(unknown) != 1 || unknown[0][0] != int64(9) {
			x.Errorf("unknown keys: %v (%v)", unknown, err)
		}
		for _, text := range []string{`["one"]`, "one", "[true]", "[1.5]", `{"id":"1x"}`, "[null]", "[1,2]"} {
			key, err := f.ParseKey(text)
			if err == nil && x.Family() == "sqlite" { // whose columns take any value: a look tells
				_, err = f.Admin().UnknownKeys(x.Ctx, key)
			}
			if sensible := x.Family() == "sqlite" && (text == "[true]" || text == "[1.5]"); !sensible && !suite.IsCode(err, rowfeed.InvalidRequest) {
				x.Errorf("%s: %v (%v)", text, key, err)
			}
		}
	})
}

// TestUnpublish (M70, H7): consumers get a delete; changes stay hidden, also of a row
// that is deleted and comes back; republish shows the row again.
func TestUnpublish(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		do := func(what func(context.Context, rowfeed.Tx, ...rowfeed.Key) error, id int) {
			x.Helper()
			if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return what(x.Ctx, tx, rowfeed.Key{id}) }); err != nil {
				x.Fatal(err)
			}
		}
		do(f.Unpublish, 1)
		cursor = x.WantDrain(f, cursor, suite.Gone(1))
		x.Exec("UPDATE kv SET v = 1")
		cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 1))
		x.WantSound(f)
		x.Exec("UPDATE kv SET v = 2 WHERE id = 1") // beside a wish for another key
		do(f.Republish, 2)
		cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 1))
		x.WantSound(f)
		x.Exec("DELETE FROM kv WHERE id = 1")
		cursor = x.WantDrain(f, cursor)
		x.Exec("INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.WantDrain(f, cursor)
		x.WantDrain(f, "", suite.KV(2, "b", 1)) // a new consumer does not learn of it
		x.WantSound(f)
		// In one batch the last wish holds, and an update after it does not undo it.
		do(f.Republish, 1)
		x.Exec("UPDATE kv SET v = 7 WHERE id = 1")
		cursor = x.WantDrain(f, cursor, suite.KV(1, "again", 7))
		do(f.Republish, 2)
		do(f.Unpublish, 2)
		x.Exec("UPDATE kv SET v = 8 WHERE id = 2")
		x.WantDrain(f, cursor, suite.Gone(2))
		x.WantSound(f)
	})
}

// TestPreparedWriter: who prepared a transaction that wrote to the feed's table is named by
// status, whether its session lives on or not.
func TestPreparedWriter(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // InnoDB does not tell of what is prepared without a session, SQLite prepares nothing
	suite.Each(t, func(x *suite.Env) {
		f, name := x.AddKV(), "of "+x.DB.Name
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range []string{"BEGIN", "INSERT INTO kv VALUES (1, 'a', 1)", "SAVEPOINT s", "INSERT INTO kv VALUES (2, 'b', 2)", "PREPARE TRANSACTION '" + name + "'"} {
			if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		named := func(when string) {
			x.Helper()
			status, err := f.Admin().Status(x.Ctx)
			if err != nil || len(status.Blockers) != 1 || status.Blockers[0].Session != "prepared transaction "+name {
				x.Errorf("%s: %+v, %v", when, status.Blockers, err)
			}
		}
		named("while its session lives")
		if _, err := conn.ExecContext(x.Ctx, "SELECT pg_terminate_backend(pg_backend_pid())"); err == nil {
			x.Error("the session lives on")
		}
		named("when its session has ended")
		x.Exec("ROLLBACK PREPARED '" + name + "'")
		if status, err := f.Admin().Status(x.Ctx); err != nil || len(status.Blockers) != 0 {
			x.Errorf("when it is over: %+v, %v", status, err)
		}
	})
}

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

// TestRunPublisherWakesAndStops: RunPublisher publishes changes that are committed while it runs. Feed.Wake makes it
// poll at once. It returns no error when its context ends.
func TestRunPublisherWakesAndStops(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		published := make(chan rowfeed.PublishEvent, 100)
		// With an hour between polls, the publisher polls when it is woken.
		x := suite.NewEnv(t, e, &rowfeed.Config{IdlePoll: time.Hour, Observer: &rowfeed.Observer{
			Published: func(e rowfeed.PublishEvent) { published <- e },
			Trouble:   func(e rowfeed.TroubleEvent) { t.Errorf("the publisher reports: %v", e.Err) },
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

// TestDroppedFeedEndsPublisher: RunPublisher, Publish and Fetch of a feed that was dropped return the code UnknownFeed.
func TestDroppedFeedEndsPublisher(t *testing.T) {
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

// TestMissingTriggerIsReported (M72, H21): a publisher reports that a trigger of its feed is missing, and names the
// command that makes it again. Status, check and repair find the row that was deleted meanwhile.
func TestMissingTriggerIsReported(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("suite.stop_capture"))
		x.Exec("DELETE FROM kv WHERE id = 1")
		trouble := make(chan rowfeed.TroubleEvent, 1)
		report := func(e rowfeed.TroubleEvent) {
			select {
			case trouble <- e:
			default:
			}
		}
		y := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: report}})
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
			x.Errorf("problems %q, reported %v", problems, e.Err)
		}
		if mended, err := g.Admin().Upgrade(x.Ctx); err != nil || len(mended) == 0 {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		if len(g.Problems()) != 0 {
			x.Errorf("after upgrade: %q", g.Problems())
		}
		var status *admin.Status
		x.Eventually("status counts vanished rows", func() bool { // it omits them if counting takes two seconds
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

// TestPublicationTimesNeverDecrease (H19): a higher position has no earlier time of publication, even if the database's
// clock is set back. So a cursor at:TIME misses no entry.
func TestPublicationTimesNeverDecrease(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.Publish(f)
		// The clock was an hour ahead when the last batch was published.
		later := time.Now().Add(time.Hour).UnixMicro()
		x.Exec(fmt.Sprintf("UPDATE rowfeed_sequences SET updated_at = %d", later),
			fmt.Sprintf("UPDATE rowfeed_positions_kv SET published_at = %d", later))
		x.Exec("INSERT INTO kv VALUES (2, 'b', 0)")
		x.Publish(f)
		since := fmt.Sprintf("SELECT count(*) FROM rowfeed_positions_kv WHERE published_at >= %d", later)
		if n := x.Scalar(since); n != 2 {
			x.Errorf("%d positions are published since then, want 2", n)
		}
		page, err := f.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.At(time.UnixMicro(later))})
		if err != nil || len(page.Entries) != 2 {
			x.Errorf("a cursor at that time: %d entries, %v", len(page.Entries), err)
		}
	})
}

// TestFullDiskPublishesNothing: a publisher on a full disk publishes nothing and says why. It publishes everything when
// there is space again. A limit on the pages of the file causes the same error as a full disk.
func TestFullDiskPublishesNothing(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.AddKV()
	x.Exec(x.Text("publish.many_rows"))
	pages := x.Scalar(x.Text("publish.page_count"))
	full := x.DB.OpenTapped(t, testdb.Hooks{}, x.Text("publish.full_disk_parameter", pages))
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
		t.Error("all was published on the full disk")
	}
	x.WantSound(roomy)
	if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 3000 {
		t.Errorf("%d positions for 3000 rows", n)
	}
}

// TestPublisherShrinksFailingBatches: if passes with more than ten changes fail, for example because they take too
// long, the publisher publishes everything with smaller batches.
func TestPublisherShrinksFailingBatches(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(15)
		var tooLarge atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if !takes(ev) {
				return nil
			}
			size := regexp.MustCompile(`(?:LIMIT |TOP \()(\d+|\?|@p1)`).FindStringSubmatch(ev.SQL)[1]
			switch size {
			case "?":
				size = fmt.Sprint(ev.Args[len(ev.Args)-1].Value)
			case "@p1":
				size = fmt.Sprint(ev.Args[0].Value)
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
		x.Eventually("everything is published", x.AllPublished)
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if tooLarge.Load() == 0 {
			x.Error("no batch failed")
		}
		x.WantSound(f)
	})
}

// TestRepublishWhereOmitsNoRow (M70): RepublishWhere publishes all rows again, or those of a condition, each once. The
// table has a composite key, and batches are smaller and larger than the table.
func TestRepublishWhereOmitsNoRow(t *testing.T) {
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
				x.Errorf("batch %d: %d entries, want %d", batch, len(again), len(all))
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
			x.Error("an invalid condition was accepted")
		}
		if _, err := f.ParseKey("7"); !suite.IsCode(err, rowfeed.InvalidRequest) {
			x.Errorf("half a key: %v", err)
		}
	})
}

// TestUnknownKeysAreFound (M70): UnknownKeys returns the keys that have neither a row nor a tombstone. A key whose
// values the columns cannot have is refused: when it is parsed, or by UnknownKeys if the columns accept values of any
// type.
func TestUnknownKeysAreFound(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (4, 'd', 0)")
		x.Drain(f, "")
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(f)
		x.Exec("INSERT INTO kv VALUES (3, 'c', 0)") // not published yet
		var keys []rowfeed.Key
		for _, id := range []int64{1, 2, 3, 9} {
			keys = append(keys, rowfeed.Key{id})
		}
		unknown, err := f.Admin().UnknownKeys(x.Ctx, keys...)
		if err != nil || len(unknown) != 1 || unknown[0][0] != int64(9) {
			x.Errorf("unknown keys: %v (%v)", unknown, err)
		}
		for _, text := range []string{`["one"]`, "one", "[true]", "[1.5]", `{"id":"1x"}`, "[null]", "[1,2]"} {
			key, err := f.ParseKey(text)
			if err == nil && !x.Has.TypedColumns {
				_, err = f.Admin().UnknownKeys(x.Ctx, key)
			}
			valid := !x.Has.TypedColumns && (text == "[true]" || text == "[1.5]")
			if !valid && !suite.IsCode(err, rowfeed.InvalidRequest) {
				x.Errorf("%s: %v (%v)", text, key, err)
			}
		}
	})
}

// TestUnpublishHidesUntilRepublish (M70, H7): consumers get a delete of a row that is unpublished. Later changes of the
// row stay hidden, also if it is deleted and inserted again, until it is republished.
func TestUnpublishHidesUntilRepublish(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		_, cursor := x.Drain(f, "")
		do := func(what func(context.Context, rowfeed.Tx, ...rowfeed.Key) error, id int) {
			x.Helper()
			err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return what(x.Ctx, tx, rowfeed.Key{id}) })
			if err != nil {
				x.Fatal(err)
			}
		}
		do(f.Unpublish, 1)
		cursor = x.WantDrain(f, cursor, suite.Gone(1))
		x.Exec("UPDATE kv SET v = 1")
		cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 1))
		x.WantSound(f)
		x.Exec("UPDATE kv SET v = 2 WHERE id = 1") // in one batch with another key's republishing
		do(f.Republish, 2)
		cursor = x.WantDrain(f, cursor, suite.KV(2, "b", 1))
		x.WantSound(f)
		x.Exec("DELETE FROM kv WHERE id = 1")
		cursor = x.WantDrain(f, cursor)
		x.Exec("INSERT INTO kv VALUES (1, 'again', 1)")
		cursor = x.WantDrain(f, cursor)
		x.WantDrain(f, "", suite.KV(2, "b", 1)) // a new consumer does not get the hidden row
		x.WantSound(f)
		// In one batch the last of Republish and Unpublish counts, and an update after it does not undo it.
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

// TestStatusNamesPreparedTransaction: status names a prepared transaction that wrote to the feed's table, both while
// its session is open and after it has ended.
func TestStatusNamesPreparedTransaction(t *testing.T) {
	// InnoDB does not list prepared transactions without a session, and SQLite has none.
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		f, name := x.AddKV(), "of "+x.DB.Name
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		for _, statement := range []string{
			x.Text("suite.begin_prepared", name), "INSERT INTO kv VALUES (1, 'a', 1)", "SAVEPOINT s",
			"INSERT INTO kv VALUES (2, 'b', 2)", x.Text("suite.prepare", name),
		} {
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
		named("while its session is open")
		if _, err := conn.ExecContext(x.Ctx, x.Text("publish.end_own_session")); err == nil {
			x.Error("the session did not end")
		}
		named("after its session has ended")
		x.Exec(x.Text("suite.rollback_prepared", name))
		if status, err := f.Admin().Status(x.Ctx); err != nil || len(status.Blockers) != 0 {
			x.Errorf("after the transaction was rolled back: %+v, %v", status, err)
		}
	})
}

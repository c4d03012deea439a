package install

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// createHandedBack makes a feed that has gone on from the team's tables: its head is 11 and the row of key 2 was
// republished. Consumer mailer is at the head, index is where it was, and new has no row in the team's table any more.
func createHandedBack(x *suite.Env) *rowfeed.Feed {
	x.Helper()
	spec := adopting
	spec.AdoptCursors = "cursors"
	f := x.Add(spec)
	x.Publish(f)
	tx := x.Begin(0)
	if err := f.Republish(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{int64(2)}); err != nil {
		x.Fatal(err)
	}
	x.Commit(tx)
	x.Publish(f)
	id := rowfeed.ConsumerID{Consumer: "mailer", Feed: "kv"}
	if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, rowfeed.Now); err != nil {
		x.Fatal(err)
	}
	x.DB.Exec(x.T, "DELETE FROM cursors WHERE name = 'new'")
	return f
}

func createTeam(x *suite.Env) {
	x.Helper()
	createPositioned(x, "feed_sync_id BIGINT NULL")
	x.Exec("CREATE TABLE cursors"+
		" (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, value BIGINT NOT NULL)",
		"INSERT INTO cursors VALUES (1, 'mailer', 3), (2, 'new', 0), (3, 'index', 8)")
}

// wantHandedBack runs the SQL of the former publisher and of a former reader: the reader gets the row that was
// republished, at a position above all former ones, and nothing again.
func wantHandedBack(x *suite.Env) {
	x.Helper()
	for query, want := range map[string]int64{
		"SELECT value FROM sequences WHERE name = 'kv'":               11,
		"SELECT value FROM sequences WHERE name = 'other'":            70,
		"SELECT value FROM cursors WHERE name = 'mailer'":             11,
		"SELECT value FROM cursors WHERE name = 'index'":              8,
		"SELECT count(*) FROM cursors":                                2,
		"SELECT count(*) FROM kv WHERE feed_sync_id IS NULL":          1,
		"SELECT count(*) FROM kv WHERE feed_sync_id IS NULL AND id=2": 1,
	} {
		if got := x.Scalar(query); got != want {
			x.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	x.DB.Exec(x.T, "UPDATE sequences SET value = value + 1, version = version + 1 WHERE name = 'kv'")
	x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = (SELECT value FROM sequences WHERE name = 'kv')"+
		" WHERE feed_sync_id IS NULL")
	read := "SELECT sum(id) FROM kv WHERE feed_sync_id > (SELECT value FROM cursors WHERE name = 'mailer')"
	if got := x.Scalar(read); got != 2 {
		x.Errorf("the former reader receives ids that add up to %d", got)
	}
}

// TestFormerPublisherContinuesHandedBackFeed (M28): feed drop --hand-back says what it will write, and writes it: the
// sequence goes on above the highest position, consumers where they are, and rows whose position is not in the row get
// a new one. It can be repeated. A feed that has taken nothing over is refused. Handed back, the feed can be adopted
// again and continues.
func TestFormerPublisherContinuesHandedBackFeed(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createTeam(x)
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true})
		_, err := x.RF.HandBackFeed(x.Ctx, "kv")
		x.WantCode(err, rowfeed.Refused)
		dropFeed(x)

		f := createHandedBack(x)
		_, head := x.Drain(f, "")
		sum := "SELECT (SELECT sum(value) FROM sequences) + (SELECT sum(value) FROM cursors)" +
			" + (SELECT sum(feed_sync_id) FROM kv)"
		before := x.Scalar(sum)
		planned := previewDrop(x, true)
		if after := x.Scalar(sum); after != before {
			x.Error("the preview has written")
		}
		written, err := x.RF.HandBackFeed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		got, want := fmt.Sprint(written.Written, written.NotWritten), fmt.Sprint(planned.Written, planned.NotWritten)
		if got != want {
			x.Errorf("written: %s\nplanned: %s", got, want)
		}
		for _, text := range []string{`value of "kv" from 9 to 11`, `value of "mailer" from 3 to 11`,
			"that were republished or unpublished: 1"} {
			if !strings.Contains(strings.Join(written.Written, "; "), text) {
				x.Errorf("%q does not say %q", written.Written, text)
			}
		}
		if len(written.Written) != 3 || len(written.NotWritten) != 1 ||
			!strings.Contains(written.NotWritten[0], `"new"`) {
			x.Errorf("%+v", written)
		}
		again, err := x.RF.HandBackFeed(x.Ctx, "kv")
		if err != nil || len(again.Written) != 0 {
			x.Errorf("again: %+v, %v", again, err)
		}
		wantHandedBack(x)
		f = x.Add(adopting)
		x.WantDrain(f, head, suite.KV(2, "b", 2))
		x.WantSound(f)
	})
}

// TestKilledHandBackCanBeRepeated (M28): feed drop --hand-back ends before each of its statements in turn. Repeated, it
// has the same effect as without an interruption.
func TestKilledHandBackCanBeRepeated(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		stop := errors.New("the power fails")
		n, step := x.Kills()
		for ended := false; !ended; n += step {
			createTeam(x)
			createHandedBack(x)
			left, armed := n, false
			rf := x.TappedDB(testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
				if armed {
					left--
				}
				if left <= 0 {
					return stop
				}
				return nil
			}}, nil)
			armed = true
			_, err := rf.HandBackFeed(x.Ctx, "kv")
			if ended = err == nil; !ended && !errors.Is(err, stop) {
				x.Fatalf("stopped before statement %d: %v", n, err)
			}
			if _, err := x.RF.PreviewDrop(x.Ctx, "kv", true); err != nil {
				x.Fatalf("stopped before statement %d, previewed: %v", n, err)
			}
			if _, err := x.RF.PreviewDrop(x.Ctx, "kv", false); err != nil {
				x.Fatalf("stopped before statement %d, previewed as a drop: %v", n, err)
			}
			if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
				x.Fatalf("stopped before statement %d, again: %v", n, err)
			}
			if wantHandedBack(x); x.Failed() {
				x.Fatalf("stopped before statement %d", n)
			}
			for _, c := range []string{"index", "mailer", "new"} {
				if _, err := x.RF.Admin().DropConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: c}); err != nil {
					x.Fatal(err)
				}
			}
			if err := x.RF.MigrateDown(x.Ctx); err != nil {
				x.Fatal(err)
			}
			if _, err := x.RF.Migrate(x.Ctx); err != nil {
				x.Fatal(err)
			}
			x.DB.Exec(x.T, "DROP TABLE kv")
			x.DB.Exec(x.T, "DROP TABLE sequences")
			x.DB.Exec(x.T, "DROP TABLE cursors")
		}
	})
}

// TestFeedOfDroppedTableIsHandedBack (M28): the table of a feed was dropped. The feed can still be handed back
// to its former publisher, whose sequence and cursors are in other tables. Dropping the feed without a hand-back leaves
// them as they are; a preview afterwards lists what was not handed back.
func TestFeedOfDroppedTableIsHandedBack(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createTeam(x)
		createHandedBack(x)
		write(x, "DROP TABLE kv")
		planned := previewDrop(x, true)
		if planned.Keeps || !strings.Contains(strings.Join(planned.Written, "; "), `value of "kv" from 9 to 11`) {
			x.Errorf("planned: %+v", planned)
		}
		dropFeed(x)
		if plan := previewDrop(x, false); plan.Interrupted || len(plan.NotHandedBack) != 2 {
			x.Errorf("after a plain drop: %+v", plan)
		}
		written, err := x.RF.HandBackFeed(x.Ctx, "kv")
		if err != nil || len(written.Written) != 2 {
			x.Errorf("%+v, %v", written, err)
		}
		if n := x.Scalar("SELECT value FROM sequences WHERE name = 'kv'"); n != 11 {
			x.Errorf("the former sequence is at %d", n)
		}
		if plan := previewDrop(x, false); len(plan.NotHandedBack) != 0 {
			x.Errorf("after the hand-back: %+v", plan)
		}
	})
}

// TestFormerPublisherGoesOnAboveHandedBackHead (M28): a fenced former publisher runs on while its feed is handed back,
// and tries before every statement. The first position that it can give is above the head.
func TestFormerPublisherGoesOnAboveHandedBackHead(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachColumn(t, func(x *suite.Env) {
		createTeam(x)
		spec := fenced
		spec.AdoptCursors = "cursors"
		f := x.Add(spec)
		x.Publish(f)
		x.Exec("UPDATE kv SET v = 8 WHERE id = 3")
		x.Publish(f) // 11
		id := rowfeed.ConsumerID{Consumer: "mailer", Feed: "kv"}
		if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, rowfeed.Now); err != nil {
			x.Fatal(err)
		}
		write(x, "UPDATE kv SET v = 99, feed_sync_id = NULL WHERE id = 1")
		pass := func() error {
			tx := x.Begin(sql.LevelReadCommitted)
			defer tx.Rollback()
			for _, s := range ownPublisher(1) {
				if _, err := tx.ExecContext(x.Bounded(), s); err != nil {
					return err
				}
			}
			return tx.Commit()
		}
		armed, given := false, errors.New("it has not tried")
		var running chan error
		ended := func() bool {
			select {
			case given = <-running:
				running = nil
				return true
			default:
				return false
			}
		}
		rf := x.TappedDB(testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
			if !armed || given == nil || running != nil && !ended() {
				return nil
			}
			running = make(chan error, 1)
			go func(done chan error) { done <- pass() }(running)
			for !ended() && !x.Waits() {
				runtime.Gosched()
			}
			return nil
		}}, nil)
		armed = true
		if _, err := rf.HandBackFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		armed = false
		if running != nil {
			given = <-running
		}
		if given != nil {
			given = pass()
		}
		if given != nil {
			x.Fatal(given)
		}
		for query, want := range map[string]int64{
			"SELECT value FROM sequences WHERE name = 'kv'":   12,
			"SELECT feed_sync_id FROM kv WHERE id = 1":        12,
			"SELECT value FROM cursors WHERE name = 'mailer'": 11,
		} {
			if got := x.Scalar(query); got != want {
				x.Errorf("%s: %d, want %d", query, got, want)
			}
		}
	})
}

// TestRepeatedHandBackLowersNoSequenceOrCursor (M28): a team that has gone on since its feed was handed back runs the
// command again. Its sequence and its cursors stay where they are, and the plan says so. If its publisher has instead
// given a position below the head before the first hand-back, the feed that is added again starts over.
func TestRepeatedHandBackLowersNoSequenceOrCursor(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createTeam(x)
		createHandedBack(x)
		if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		ownPass(x, 2) // 12
		write(x, "UPDATE cursors SET value = 12 WHERE name = 'mailer'")
		again, err := x.RF.HandBackFeed(x.Ctx, "kv")
		if err != nil || len(again.Written) != 0 || !strings.Contains(strings.Join(again.NotWritten, ""),
			`consumer "mailer" is at position 11, and table `) {
			x.Errorf("again: %+v, %v", again, err)
		}
		if x.Scalar("SELECT value FROM sequences WHERE name = 'kv'") != 12 ||
			x.Scalar("SELECT value FROM cursors WHERE name = 'mailer'") != 12 {
			x.Error("the team's values were set back")
		}

		f := x.Add(adopting)
		x.Exec("UPDATE kv SET v = 9 WHERE id = 3")
		_, head := x.Drain(f, "") // 13
		x.Exec("UPDATE kv SET v = 10 WHERE id = 3")
		_, head = x.Drain(f, head) // 14
		dropFeed(x)
		write(x, "UPDATE kv SET v = 99, feed_sync_id = NULL WHERE id = 1")
		ownPass(x, 1) // 13, below the head
		if plan := previewDrop(x, true); !strings.Contains(plan.Restart, "has continued from position 12") {
			x.Errorf("the preview is %+v", plan)
		}
		if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.WantRefused(x.Add(adopting), head, rowfeed.GenerationChanged)
	})
}

// TestHandBackStaysBelowDeadLetters (M28): a consumer that is handed back with dead letters gets a cursor below the
// lowest of them, so that a former reader receives these entries. The plan says so.
func TestHandBackStaysBelowDeadLetters(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createTeam(x)
		spec := adopting
		spec.AdoptCursors = "cursors"
		f := x.Add(spec)
		x.Publish(f)
		c := x.Receiver().Consumer(f, x.RF)
		c.Name, c.OnFailure = "mailer", rowfeed.SetAside
		c.Handle = func(context.Context, *sql.Tx, []rowfeed.Entry) error { return errors.New("not yet") }
		if err := c.RunOnce(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_dead_letters"); n != 2 {
			x.Fatalf("%d dead letters, want those at 7 and 10", n)
		}
		plan := previewDrop(x, true)
		if text := strings.Join(plan.NotWritten, "; "); !strings.Contains(text,
			`consumer "mailer" has dead letters (number 2, the lowest at position 7): retry or drop them`) {
			x.Errorf("not written: %s", text)
		}
		if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if n := x.Scalar("SELECT value FROM cursors WHERE name = 'mailer'"); n != 6 {
			x.Errorf("the cursor was handed back at %d", n)
		}
	})
}

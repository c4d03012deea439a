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

// adopting is the spec of a feed that continues the team's sequence.
var adopting = rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true,
	AdoptSequence: "sequences"}

func dropFeed(x *suite.Env) {
	x.Helper()
	if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
		x.Fatal(err)
	}
}

func previewDrop(x *suite.Env, handBack bool) *rowfeed.DropPlan {
	x.Helper()
	plan, err := x.RF.PreviewDrop(x.Ctx, "kv", handBack)
	if err != nil {
		x.Fatal(err)
	}
	return plan
}

// TestFeedAddedAgainContinues (M28): a feed that is dropped and added again over the same positions continues. Cursors
// stay valid, and new positions are above the former head, also if no row has that position any more. Only readers that
// would miss a delete are refused.
func TestFeedAddedAgainContinues(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		f := x.Add(adopting)
		generation := f.Generation()
		x.Publish(f)
		old := x.Fetch(f, "", 2).Cursor // at position 7
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(f)
		x.Exec("UPDATE kv SET v = 8 WHERE id = 3") // nothing in the table is above 7 now
		head := x.Fetch(f, "", 0).Cursor
		for range 2 {
			if plan := previewDrop(x, false); !plan.Keeps || plan.Restart != "" || plan.Head != 11 {
				x.Errorf("the preview is %+v", plan)
			}
			dropFeed(x)
			f = x.Add(adopting)
			is, err := f.Admin().Adoption(x.Ctx)
			if err != nil || !is.Continues || is.Head != 11 || f.Generation() != generation {
				x.Errorf("%+v, %v, generation %d", is, err, f.Generation())
			}
		}
		x.WantRefused(f, old, rowfeed.TombstonesExpired) // it would never receive the delete
		head = x.WantDrain(f, head, suite.KV(3, "c", 8))
		if position := suite.Place(head); position != "12" {
			x.Errorf("the new position is %s", position)
		}
		x.Exec("INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)", "DELETE FROM kv WHERE id = 1")
		_, head = x.Drain(f, head)
		x.WantSound(f)

		// The former publisher numbers rows below the head while there is no feed.
		dropFeed(x)
		x.DB.Exec(x.T, "UPDATE sequences SET value = value + 1 WHERE name = 'kv'")
		f = x.Add(adopting)
		x.WantRefused(f, head, rowfeed.GenerationChanged)
	})
}

// TestFeedThatLostChangesStartsOver (M28): a feed does not continue if its readers would miss something. The preview of
// the drop says why, and so does adding the feed again.
func TestFeedThatLostChangesStartsOver(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		for _, c := range []struct {
			reason string
			before func(f *rowfeed.Feed)
			change func(*rowfeed.FeedSpec)
		}{
			{"were not published", func(*rowfeed.Feed) { x.Exec("DELETE FROM kv WHERE id = 2") }, nil},
			{"republished", func(f *rowfeed.Feed) {
				tx := x.Begin(0)
				if err := f.Republish(x.Ctx, rowfeed.InTx(tx), rowfeed.Key{int64(1)}); err != nil {
					x.Fatal(err)
				}
				x.Commit(tx)
				x.Publish(f)
			}, nil},
			{"", nil, func(s *rowfeed.FeedSpec) { s.Columns = []string{"k"} }},
		} {
			f := x.Add(adopting)
			_, head := x.Drain(f, "")
			if c.before != nil {
				c.before(f)
			}
			if plan := previewDrop(x, false); !strings.Contains(plan.Restart, c.reason) {
				x.Errorf("the preview says %q, want %q", plan.Restart, c.reason)
			}
			dropFeed(x)
			spec := adopting
			if c.change != nil {
				c.change(&spec)
			}
			f = x.Add(spec)
			is, err := f.Admin().Adoption(x.Ctx)
			if err != nil || is.Continues || is.Restart == "" || !strings.Contains(is.Restart, c.reason) {
				x.Errorf("want %q: %+v, %v", c.reason, is, err)
			}
			x.WantRefused(f, head, rowfeed.GenerationChanged)
			x.Publish(f)
			dropFeed(x)
			if c.change != nil {
				continue
			}
			x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = NULL")
		}
	})
}

// TestCursorsThatAreNotAdoptedAreNamed (M23): a consumer that rowfeed knows keeps its cursor when a feed adopts a table
// of cursors. If the feed refuses that cursor, or the former one is ahead, adding the feed names the command that takes
// the former one over.
func TestCursorsThatAreNotAdoptedAreNamed(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE cursors"+
			" (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, value BIGINT NOT NULL)",
			"INSERT INTO cursors VALUES (1, 'mailer', 3), (2, 'report', 3)")
		spec := adopting
		spec.AdoptCursors = "cursors"
		unadopted := func(f *rowfeed.Feed) string {
			x.Helper()
			is, err := f.Admin().Adoption(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			return strings.Join(is.Unadopted, "\n")
		}
		f := x.Add(spec)
		if text := unadopted(f); text != "" {
			x.Errorf("at first: %s", text)
		}
		x.Publish(f)
		dropFeed(x)
		x.DB.Exec(x.T, "UPDATE cursors SET value = 7 WHERE name = 'mailer'") // the former reader went on
		f = x.Add(spec)
		if text := unadopted(f); !strings.Contains(text, `"mailer" keeps its cursor at position 3`) ||
			!strings.Contains(text, "`rowfeed consumer seek mailer --feed kv --to 7`") ||
			strings.Contains(text, "report") {
			x.Errorf("a former cursor that is ahead: %s", text)
		}
		x.Exec("DELETE FROM kv WHERE id = 2")
		dropFeed(x) // the delete is not published, so the next feed begins a generation
		f = x.Add(spec)
		command := fmt.Sprintf("`rowfeed consumer seek report --feed kv --to %d:3`", f.Generation())
		if text := unadopted(f); !strings.Contains(text, "which the feed refuses") || !strings.Contains(text, command) {
			x.Errorf("cursors of another generation: %s", text)
		}
		for name, position := range map[string]string{"mailer": "7", "report": "3"} {
			to := rowfeed.Cursor(fmt.Sprintf("%d:%s", f.Generation(), position))
			id := rowfeed.ConsumerID{Consumer: name, Feed: "kv"}
			if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, to); err != nil {
				x.Fatal(err)
			}
		}
		if text := unadopted(f); text != "" {
			x.Errorf("after the commands: %s", text)
		}
	})
}

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

// TestHandedBackFeedGoesOn (M28): feed drop --hand-back says what it will write, and writes it: the sequence goes on
// above the highest position, consumers where they are, and rows whose position is not in the row get a new one. It can
// be repeated. A feed that has taken nothing over is refused. Handed back, the feed can be adopted again and continues.
func TestHandedBackFeedGoesOn(t *testing.T) {
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
			"of 1 rows to NULL"} {
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
		for n, ended := 1, false; !ended; n++ {
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

// TestDropNoticesDeleteOfOpenTransaction (M28): a writer has deleted a row and not committed when its feed is
// dropped. The drop waits for the writer, finds the delete that no reader will receive, and the feed that is added
// again refuses the cursors of before.
func TestDropNoticesDeleteOfOpenTransaction(t *testing.T) {
	// In SQLite the drop cannot begin while a writer is open.
	testdb.Only(t, testdb.Servers...)
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		f := x.Add(adopting)
		_, head := x.Drain(f, "")
		writer := x.Begin(sql.LevelReadCommitted)
		x.In(writer, "DELETE FROM kv WHERE id = 2")
		dropped := make(chan error, 1)
		go func() { dropped <- x.RF.DropFeed(x.Ctx, "kv") }()
		for !x.Waits() {
			runtime.Gosched()
		}
		x.Commit(writer)
		if err := <-dropped; err != nil {
			x.Fatal(err)
		}
		f = x.Add(adopting)
		x.WantRefused(f, head, rowfeed.GenerationChanged)
	})
}

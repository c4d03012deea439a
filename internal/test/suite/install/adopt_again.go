package install

import (
	"database/sql"
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
			if plan := previewDrop(x, false); !plan.Keeps || plan.Restart != "" || plan.Head != 11 ||
				plan.From != 11 {
				x.Errorf("the preview is %+v", plan)
			}
			dropFeed(x)
			f = x.Add(adopting)
			is, err := f.Admin().Adoption(x.Ctx)
			if err != nil || !is.Continues || is.Head != 11 || is.From != 11 ||
				f.Generation() != generation {
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

// TestFormerPositionsAreNoticedWithoutSequence (M28): the former publisher gives a position below the head of a dropped
// feed. The feed that is added again starts over, also if it names no sequence or another one, or if the table of the
// former sequence is gone. That does not keep the feed that has adopted it from being dropped.
func TestFormerPositionsAreNoticedWithoutSequence(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		for _, c := range []struct{ sequence, before, reason string }{
			{"", "", "has continued from position 9"},
			{"sequences", "", "has continued from position 9"},
			{"sequences:other", "", "has continued from position 9"},
			{"", "DROP TABLE sequences", "sequences is gone"},
		} {
			createPositioned(x, "feed_sync_id BIGINT NULL")
			f := x.Add(adopting)
			x.Publish(f)
			x.Exec("UPDATE kv SET v = 8 WHERE id = 3")
			_, head := x.Drain(f, "") // 11
			dropFeed(x)
			write(x, "UPDATE kv SET v = 99, feed_sync_id = NULL WHERE id = 1")
			ownPass(x, 1) // 10
			if c.before != "" {
				write(x, c.before)
			}
			spec := adopting
			spec.AdoptSequence = c.sequence
			f = x.Add(spec)
			is, err := f.Admin().Adoption(x.Ctx)
			if err != nil || is.Continues || !strings.Contains(is.Restart, c.reason) {
				x.Errorf("with sequence %q: %+v, %v", c.sequence, is, err)
			}
			x.WantRefused(f, head, rowfeed.GenerationChanged)
			x.Exec("DROP TABLE IF EXISTS sequences")
			dropFeed(x)
			x.Exec("DROP TABLE kv", "DELETE FROM rowfeed_feeds")
		}
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

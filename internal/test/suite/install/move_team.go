package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestMoveKeepsTheTeamsTable (M28): positions are moved out of a table that has columns feed_sync_id and shard, and a
// trigger, of its own. These stay as they are, also if the feed is dropped. Entries have the column shard.
func TestMoveKeepsTheTeamsTable(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, feed_sync_id BIGINT NULL,"+
			" shard INT NOT NULL)", "CREATE TABLE log (n BIGINT)", "INSERT INTO kv VALUES (1, 'a', 0, 7, 3)",
			"CREATE TABLE sequences (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
			"INSERT INTO sequences VALUES ('kv', 9)")
		x.Exec(x.Statements("install.trigger", "own", "", "INSERT INTO log VALUES (1)")...)
		before := x.DB.Dump(x.T)
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Adopt: true, AdoptSequence: "sequences", Fence: true,
			AcceptTriggers: true})
		cursor := x.WantDrain(f, "7")
		fired := x.Scalar("SELECT count(*) FROM log")
		move(x, f)
		if n := x.Scalar("SELECT count(*) FROM log") - fired; n != 0 {
			x.Errorf("the move has fired the table's own trigger %d times", n)
		}
		write(x, "UPDATE kv SET shard = 4 WHERE id = 1", "UPDATE kv SET feed_sync_id = 900 WHERE id = 1")
		if n := x.Scalar("SELECT count(*) FROM log") - fired; n == 0 {
			x.Error("the table's own trigger is gone")
		}
		x.WantDrain(f, cursor, `upsert {"id":1,"k":"a","v":0,"shard":4}`)
		x.WantSound(f)
		dropFeed(x)
		x.SameDump(before, "dropped")
		if n := x.Scalar("SELECT count(*) FROM kv WHERE feed_sync_id = 900 AND shard = 4"); n != 1 {
			x.Error("dropping the feed has written into the table")
		}
	})
}

// TestReaderFromTimeGetsRowsWhosePositionsMoved (M28): no time of publication was stored for rows that held their
// positions. A reader that starts at a time gets all those that were published later, by rowfeed or by the team's own
// publisher. A process that knows the former capture gives such a start, too.
func TestReaderFromTimeGetsRowsWhosePositionsMoved(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		f := x.Add(elsewhere)
		other := x.Tapped(testdb.Hooks{}, nil)
		start := x.Now()
		write(x, "UPDATE kv SET feed_sync_id = NULL WHERE feed_sync_id IS NOT NULL",
			"UPDATE kv SET feed_sync_id = 100 WHERE id = 1", "UPDATE sequences SET value = 100")
		if _, err := f.Admin().TakeOver(x.Ctx, false); err != nil {
			x.Fatal(err)
		}
		move(x, f)
		want, _ := readOn(x, f, rowfeed.Shards{}, "")
		for _, from := range []*rowfeed.Feed{other, f} {
			got, _ := readOn(x, from, rowfeed.Shards{}, rowfeed.At(start))
			if len(want) == 0 || !slices.Equal(got, want) {
				x.Errorf("a reader that starts in time gets %q, want %q", got, want)
			}
		}
		x.WantSound(f)
	})
}

// TestMoveNeedsTheRightToMakeTriggers (M28): a login that may not make the triggers is refused before anything is
// changed: between the new capture and the triggers, nothing would be published.
func TestMoveNeedsTheRightToMakeTriggers(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...) // in PostgreSQL only the owner of the table can add a feed with capture column
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		l := x.NewLogin("mover", nil)
		for _, table := range x.List("SELECT table_name FROM information_schema.tables " +
			"WHERE table_schema = database()") {
			x.RightsOn(table, "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX", l)
		}
		before := x.DB.Dump(x.T)
		err := l.FeedOf("kv").Admin().MayMovePositions(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		_, err = l.FeedOf("kv").Admin().MovePositions(x.Ctx, nil)
		x.WantCode(err, rowfeed.Refused)
		if err != nil && !strings.Contains(err.Error(), "TRIGGER") {
			x.Errorf("the refusal does not say why: %v", err)
		}
		x.SameDump(before, "refused")
		if f.Capture() != feedtype.CaptureColumn || x.Info(f).State != "active" {
			x.Errorf("the feed is %s, with capture %s", x.Info(f).State, f.Capture())
		}
	})
}

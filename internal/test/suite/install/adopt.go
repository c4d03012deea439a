package install

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// createPositioned makes a table that has positions of its own, and the sequences of its
// former publisher.
func createPositioned(x *suite.Env, column string) {
	x.Helper()
	x.Exec(
		"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, "+column+")",
		"CREATE TABLE sequences (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE,"+
			" value BIGINT NOT NULL, version BIGINT NOT NULL)",
		"INSERT INTO sequences VALUES (1, 'kv', 9, 123), (2, 'other', 70, 1), (3, 'bad', -1, 1)",
		"INSERT INTO kv (id, k, v, feed_sync_id) VALUES (1, 'a', 1, 7), (2, 'b', 2, 3), (3, 'c', 3, NULL)",
	)
}

// TestAdoptedTableKeepsItsPositions (M28): a table with positions keeps them. New positions are above them, or above
// the number that the former sequence gave last. Dropping the feed leaves the columns that the user's table had, and
// their values.
func TestAdoptedTableKeepsItsPositions(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		before := x.DB.Dump(x.T)
		plain := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}
		_, err := x.RF.AddFeed(x.Ctx, plain, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "--adopt") {
			x.Errorf("the refusal does not name --adopt: %v", err)
		}
		spec := plain
		spec.Adopt, spec.AdoptSequence = true, "sequences"
		f := x.Add(spec)
		x.Add(spec) // again
		_, err = x.RF.AddFeed(x.Ctx, plain, nil)
		x.WantCode(err, rowfeed.Conflict)
		x.Publish(f)
		x.WantPage(f, "", 5, "3 "+suite.KV(2, "b", 2), "7 "+suite.KV(1, "a", 1), "10 "+suite.KV(3, "c", 3), "> 10")
		x.Exec("UPDATE kv SET v = 4 WHERE id = 2")
		x.Publish(f)
		x.WantPage(f, "7", 5, "10 "+suite.KV(3, "c", 3), "11 "+suite.KV(2, "b", 4), "> 11")
		x.WantSound(f)
		drop := func() {
			x.Helper()
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			if after := x.DB.Dump(x.T); after != before {
				x.Errorf("drop left\n%s\nwant\n%s", after, before)
			}
		}
		drop()
		if n := x.Scalar("SELECT sum(feed_sync_id) FROM kv"); n != 7+10+11 {
			x.Errorf("the positions left add up to %d", n)
		}
		// Without the sequence, and with one of another name.
		for _, again := range []struct {
			sequence string
			want     int64
		}{{"", 11}, {"sequences", 11}, {"sequences:other", 70}, {"", 70}} {
			sequence, want := again.sequence, again.want
			spec.AdoptSequence = sequence
			x.Add(spec)
			if value := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"); value != want {
				x.Errorf("with sequence %q the feed begins at %d, want %d", sequence, value, want)
			}
			drop()
		}
		for _, sequence := range []string{"sequences:nobody", "sequences:bad", "kv", "nowhere"} {
			spec.AdoptSequence = sequence
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE state <> 'dropped'"); n != 0 {
				x.Errorf("a refusal for sequence %q left a record", sequence)
			}
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("refusals left\n%s\nwant\n%s", after, before)
		}
	})
}

// TestUnfitPositionsAreNotAdopted (M28): adopting a table is refused with the reason if a value is no position, exists
// twice, or leaves no higher position. Columns that cannot hold positions are refused, too.
func TestUnfitPositionsAreNotAdopted(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL, shard INT NULL")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		for position, reason := range map[int64]string{
			0: "is not a position", -3: "is not a position", 3: "several rows",
			math.MaxInt64: "leaves too few higher ones",
		} {
			x.Exec(fmt.Sprintf("UPDATE kv SET feed_sync_id = %d WHERE id = 1", position))
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			if !strings.Contains(err.Error(), reason) {
				x.Errorf("position %d: %v, want %q", position, err, reason)
			}
		}
		// With valid positions, the same feed add succeeds.
		x.Exec("UPDATE kv SET feed_sync_id = NULL WHERE id = 1", "UPDATE kv SET shard = 5 WHERE id = 2")
		f := x.Add(spec)
		x.Publish(f)
		page := x.Fetch(f, "", 0)
		if len(page.Entries) != 3 || page.Entries[0].Shard != 0 || page.Entries[1].Shard != 0 { // of one data shard
			x.Errorf("entries: %+v", page.Entries)
		}
		x.WantSound(f)

		x.Exec("CREATE TABLE none (id BIGINT NOT NULL PRIMARY KEY)",
			"CREATE TABLE filled (id BIGINT NOT NULL PRIMARY KEY, feed_sync_id BIGINT NOT NULL)",
			"CREATE TABLE own (id BIGINT NOT NULL PRIMARY KEY, shard VARCHAR(10))")
		for table, adopt := range map[string]bool{"none": true, "filled": true, "own": false} {
			_, err := x.RF.AddFeed(x.Ctx,
				rowfeed.FeedSpec{Name: "other", Table: table, Capture: feedtype.CaptureColumn, Adopt: adopt}, nil)
			x.WantCode(err, rowfeed.Refused)
		}
	})
}

// TestAdoptedConsumersResume (M23): consumers in a former table of cursors become shard 0 of 1, and resume behind the
// positions stored there. A consumer that rowfeed already knows keeps its cursor. A cursor ahead of the feed is
// refused.
func TestAdoptedConsumersResume(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec(
			"CREATE TABLE cursors"+
				" (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE, value BIGINT NOT NULL)",
			"INSERT INTO cursors VALUES (1, 'mailer', 3), (2, 'new', 0), (3, 'index', 8)",
			"CREATE TABLE several (name VARCHAR(100) NOT NULL, feed VARCHAR(100) NOT NULL,"+
				" position BIGINT NULL, PRIMARY KEY (name, feed))",
			"INSERT INTO several VALUES ('report', 'kv', NULL), ('report', 'other', 70), ('mailer', 'kv', 9)",
		)
		spec := rowfeed.FeedSpec{
			Name:         "kv",
			Table:        "kv",
			Capture:      feedtype.CaptureColumn,
			Adopt:        true,
			AdoptCursors: "cursors",
		}
		_, err := x.RF.AddFeed(x.Ctx, spec, nil) // the highest position is 7
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "index") {
			x.Errorf("the refusal does not name the consumer: %v", err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Error("the refusal left a record")
		}
		spec.AdoptSequence = "sequences"
		f := x.Add(spec)
		generation := f.Generation()
		consumers := func() string {
			x.Helper()
			all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{})
			if err != nil {
				x.Fatal(err)
			}
			var text []string
			for _, c := range all {
				if c.Cursor != "" && c.Generation != generation || c.Shard != 0 || c.ShardCount != 1 {
					x.Errorf("%+v", c)
				}
				_, position, found := strings.Cut(string(suite.Place(c.Cursor)), ":")
				if !found {
					position = string(suite.Place(c.Cursor))
				}
				text = append(text, c.Consumer+" "+position)
			}
			return strings.Join(text, ", ")
		}
		if got, want := consumers(), "index 8, mailer 3, new "; got != want {
			x.Errorf("consumers: %s, want %s", got, want)
		}
		x.Publish(f)
		all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "mailer"})
		if err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, all[0].Cursor, suite.KV(1, "a", 1), suite.KV(3, "c", 3))
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		for _, c := range []string{"index", "mailer", "new"} {
			if _, err := x.RF.Admin().DropConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: c}); err != nil {
				x.Fatal(err)
			}
		}
		spec.AdoptCursors = "several"
		generation = x.Add(spec).Generation()
		if got, want := consumers(), "mailer 9, report "; got != want {
			x.Errorf("consumers: %s, want %s", got, want)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		for _, table := range []string{"kv", "nowhere"} {
			spec.AdoptCursors = table
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
		}
	})
}

// TestLowestOfShardedCursorsIsAdopted (M23): a consumer that has a row for each shard in a former table of cursors
// continues from the lowest of them, because the former shards are not rowfeed's parts. Handing the feed back says of
// all rows of the consumer from where it moves them, and moves them, but none back. A row ahead of the feed is refused,
// also if another one is lower.
func TestLowestOfShardedCursorsIsAdopted(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE cursors (name VARCHAR(100) NOT NULL, shard INT NOT NULL, shard_count INT NOT NULL,"+
			" value BIGINT NULL, PRIMARY KEY (name, shard))",
			"INSERT INTO cursors VALUES ('report', 0, 3, 7), ('report', 1, 3, 3), ('report', 2, 3, 12)")
		spec := adopting
		spec.AdoptCursors = "cursors"
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		x.Exec("UPDATE cursors SET value = 9 WHERE shard = 2")
		f := x.Add(spec)
		x.WantCursors("report", "0/1 3")
		x.Publish(f)
		all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{Consumer: "report"})
		if err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, all[0].Cursor, suite.KV(1, "a", 1), suite.KV(3, "c", 3))
		for _, c := range []struct{ at, written, left, sum string }{
			{"7", `"report" from 3 to 7`, "has it at 9, which is left", "23"},
			{string(rowfeed.Now), `"report" from 7, 7, 9 to 10`, "", "30"},
		} {
			id := rowfeed.ConsumerID{Consumer: "report", Feed: "kv"}
			if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, rowfeed.Cursor(c.at)); err != nil {
				x.Fatal(err)
			}
			plan := previewDrop(x, true)
			if text := strings.Join(plan.Written, "; "); !strings.Contains(text, c.written) {
				x.Errorf("written: %s", text)
			}
			if text := strings.Join(plan.NotWritten, "; "); !strings.Contains(text, c.left) {
				x.Errorf("not written: %s", text)
			}
			if _, err := x.RF.HandBackFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
			if got := x.List("SELECT sum(value) FROM cursors"); got[0] != c.sum {
				x.Errorf("after %v the values add up to %s, want %s", plan, got, c.sum)
			}
			x.Add(spec)
		}
	})
}

// TestMissingShardOfAdoptedConsumerBegins (M23): a consumer whose former table has fewer rows than its shard_count
// begins at 0, because the other shards have not stored a cursor yet. Adding the feed says so.
func TestMissingShardOfAdoptedConsumerBegins(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE cursors (name VARCHAR(100) NOT NULL, shard INT NOT NULL, shard_count INT NOT NULL,"+
			" value BIGINT NULL, PRIMARY KEY (name, shard))",
			"INSERT INTO cursors VALUES ('mailer', 0, 4, 7), ('mailer', 2, 4, 9),"+
				" ('report', 0, 2, 3), ('report', 1, 2, 7)")
		spec := adopting
		spec.AdoptCursors = "cursors"
		f := x.Add(spec)
		x.WantCursors("mailer", "0/1 ")
		x.WantCursors("report", "0/1 3")
		is, err := f.Admin().Adoption(x.Ctx)
		if err != nil || len(is.Unadopted) != 1 || !strings.Contains(is.Unadopted[0],
			"begins at 0, because table ") || !strings.Contains(is.Unadopted[0], "only rows of 2 of its 4 shards") {
			x.Errorf("%+v, %v", is, err)
		}
	})
}

// TestTriggerThatFiresOnPublishingIsRefused (H22): a user's trigger that fires when a position is written is refused by
// name, unless it is accepted. Verify finds one that is created later. A trigger for other columns is allowed, if the
// database has such triggers. A trigger that resets the position stops the publisher with the reason.
func TestTriggerThatFiresOnPublishingIsRefused(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "CREATE TABLE log (n INT)")
		trigger := func(name, columns, body string) {
			x.Helper()
			x.Exec(x.Statements("install.trigger", name, columns, body)...)
		}
		log := "INSERT INTO log VALUES (1)"
		drop := func(name string) {
			x.Helper()
			x.Exec(x.Text("install.drop_trigger", name))
		}
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}
		trigger("writes_a_log", "", log)
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "writes_a_log") {
			x.Errorf("the refusal does not name the trigger: %v", err)
		}
		drop("writes_a_log")
		if x.Has.ColumnTriggers {
			trigger("about_v", "OF v", log)
		}
		f := x.Add(spec)
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Publish(f)
		if n := x.Scalar("SELECT count(*) FROM log"); n != 0 {
			x.Error("publishing fired a trigger that is about another column")
		}
		trigger("later", "", log)
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "later") {
			x.Errorf("problems %q, %v", problems, err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		spec.AcceptTriggers = true
		f = x.Add(spec)
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
			x.Errorf("accepted, and a problem: %q, %v", problems, err)
		}
		if n := x.Publish(f); n != 1 {
			x.Errorf("%d rows were published", n)
		}
		drop("later")
		trigger("undoes", "", x.Text("install.reset_position"))
		x.Exec("INSERT INTO kv VALUES (2, 'b', 2)")
		_, err = f.Publish(x.Bounded())
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "a trigger resets it") {
			x.Errorf("the error does not say why: %v", err)
		}
		drop("undoes")
		if n := x.Publish(f); n != 1 {
			x.Errorf("%d rows were published", n)
		}
	})
}

// TestColumnCaptureOnPartitionedTable (H11): rows of all partitions are published, and so is a row that moves to
// another partition.
func TestColumnCaptureOnPartitionedTable(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no partitions
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Statements("install.partitioned")...)
		before := x.DB.Dump(x.T)
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		k := x.Recorder(f, 0)
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (101, 'c', 3), (102, 'd', 4)")
		if n := x.Publish(f); n != 4 {
			x.Errorf("%d rows were published", n)
		}
		k.Read()
		x.Exec("UPDATE kv SET id = 103 WHERE id = 1", "UPDATE kv SET v = 9 WHERE id = 2 OR id = 102",
			"DELETE FROM kv WHERE id = 101")
		if n := x.Publish(f); n != 5 {
			x.Errorf("%d keys were published", n)
		}
		k.Read()
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
		if x.Has.WritablePartitions {
			held := x.Begin(0)
			x.In(held, "INSERT INTO kv_low VALUES (3, 'held', 1)")
			status, err := f.Admin().Status(x.Ctx)
			if err != nil || len(status.Blockers) != 1 {
				x.Errorf("a transaction that writes to a partition is no blocker: %+v, %v", status, err)
			}
			held.Rollback()
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
	})
}

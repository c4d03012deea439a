package install

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUnfitPositionColumnIsNotAdopted (M28): adopting is refused with the reason if the position column is too narrow,
// has a default, or is generated. PostgreSQL also refuses a column that foreign keys can refer to, because updating it
// waits for transactions that refer to the row. Verify reports a column that becomes unfit later.
func TestUnfitPositionColumnIsNotAdopted(t *testing.T) {
	testdb.Quick(t)
	suite.EachColumn(t, func(x *suite.Env) {
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		before := ""
		for line := range strings.Lines(x.Text("install.unfit_position_columns")) {
			decl, reason, _ := strings.Cut(line, "->")
			decl, reason = strings.TrimSpace(decl), strings.TrimSpace(reason)
			x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v BIGINT, feed_sync_id " + decl + ")")
			before = x.DB.Dump(x.T)
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			if err == nil || !suite.IsCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), reason) {
				x.Errorf("%s: %v, want %q", decl, err, reason)
			}
			if after := x.DB.Dump(x.T); after != before {
				x.Errorf("%s: the refusal left\n%s", decl, after)
			}
			x.Exec("DROP TABLE kv")
			if x.Failed() {
				x.FailNow()
			}
		}

		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v BIGINT, feed_sync_id BIGINT DEFAULT NULL)")
		f := x.Add(spec)
		wantProblem := func(reason string) {
			x.Helper()
			problems, err := f.Admin().Verify(x.Ctx)
			if err != nil || (reason == "") != (len(problems) == 0) ||
				!strings.Contains(strings.Join(problems, "; "), reason) {
				x.Errorf("problems %q, %v, want %q", problems, err, reason)
			}
		}
		wantProblem("")
		x.Exec(x.Statements("install.set_position_default")...)
		wantProblem("value of its own")
		if !x.Has.KeyShareLocks {
			return
		}
		x.Exec(x.Statements("install.partial_unique_index")...)
		wantProblem("")
		x.Exec("INSERT INTO kv (id, v) VALUES (1, 1)")
		child := x.Begin(sql.LevelReadCommitted)
		x.In(child, x.Text("install.refer_to_row"))
		if n, err := f.Publish(x.Bounded()); n != 1 || err != nil {
			x.Errorf("while a transaction refers to the row, %d rows were published: %v", n, err)
		}
		x.Commit(child)
		x.Exec("CREATE UNIQUE INDEX referred ON kv (feed_sync_id)")
		wantProblem("referred")
	})
}

// runSuggested runs the statements that a message suggests.
func runSuggested(x *suite.Env, text string) {
	x.Helper()
	_, statements, _ := strings.Cut(text, "`")
	statements, _, found := strings.Cut(statements, "`")
	if !found {
		x.Fatalf("no statement to run in %q", text)
	}
	for statement := range strings.SplitSeq(statements, "; ") {
		x.Exec(statement)
	}
}

// TestSuggestedIndexKeepsPositionsOfPartitionsUnique (M28): the statements that PostgreSQL suggests for a unique index
// of a partitioned table make a valid index of the table and of each partition, and the feed can then be added.
func TestSuggestedIndexKeepsPositionsOfPartitionsUnique(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // the others accept the index
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id bigint NOT NULL, region int NOT NULL, feed_sync_id bigint,"+
			" PRIMARY KEY (id, region), UNIQUE (feed_sync_id, region)) PARTITION BY LIST (region)",
			"CREATE TABLE kv1 PARTITION OF kv FOR VALUES IN (1)",
			"CREATE TABLE kv2 PARTITION OF kv FOR VALUES IN (2) PARTITION BY RANGE (region)",
			"CREATE TABLE kv2low PARTITION OF kv2 FOR VALUES FROM (0) TO (100)",
			"INSERT INTO kv VALUES (1, 1, 7), (2, 1, 3), (3, 2, NULL)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		runSuggested(x, err.Error())
		valid := "SELECT count(*) FROM pg_index WHERE indisunique AND indpred IS NOT NULL AND indisvalid"
		if n := x.Scalar(valid); n != 4 {
			x.Errorf("%d of the table and its 3 partitions have a valid index", n)
		}
		for _, s := range []string{"UPDATE kv SET feed_sync_id = 3 WHERE id = 1", "INSERT INTO kv VALUES (4, 1, 7)"} {
			if _, err := x.DB.Admin().ExecContext(x.Ctx, s); err == nil {
				x.Errorf("two rows can have one position: %s", s)
			}
		}
		f := x.Add(spec)
		x.Publish(f)
		x.WantSound(f)
	})
}

// TestUniquePositionsAreAdopted (M28): a team's UNIQUE (feed_sync_id) is kept on databases where publishing can live
// with it. The others refuse it with the statements to run next, and the feed can then be added. PostgreSQL's
// statements keep the positions unique. Verify names the same statements if the constraint comes later.
func TestUniquePositionsAreAdopted(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v BIGINT, feed_sync_id BIGINT NULL,"+
			" CONSTRAINT once UNIQUE (feed_sync_id))",
			"INSERT INTO kv VALUES (1, 1, 7), (2, 2, 3), (3, 3, NULL)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		if x.Has.KeyShareLocks || x.Has.OneNull {
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
			runSuggested(x, err.Error())
		}
		x.Exec("INSERT INTO kv VALUES (4, 4, NULL)")
		f := x.Add(spec)
		x.Publish(f)
		x.WantPage(f, "", 9, `3 upsert {"id":2,"v":2}`, `7 upsert {"id":1,"v":1}`, `8 upsert {"id":3,"v":3}`,
			`9 upsert {"id":4,"v":4}`, "> 9")
		x.WantSound(f)
		if x.Has.OneNull {
			x.Exec("CREATE UNIQUE INDEX twice ON kv (feed_sync_id, id)")
			x.WantSound(f)
			return
		}
		if _, err := x.DB.Admin().ExecContext(x.Ctx, "UPDATE kv SET feed_sync_id = 3 WHERE id = 1"); err == nil {
			x.Error("two rows can have one position")
		}
		if !x.Has.KeyShareLocks {
			return
		}
		x.Exec("CREATE UNIQUE INDEX twice ON kv (feed_sync_id, id)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 {
			x.Fatalf("problems %q, %v", problems, err)
		}
		runSuggested(x, problems[0])
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 0 {
			x.Errorf("problems %q, %v", problems, err)
		}
	})
}

// TestColumnCaptureIgnoresCaseOfNames (M28): if a database ignores the case of names, Feed_Sync_Id is the column
// feed_sync_id: it is refused without --adopt, with no trace left, and adopted with it. On other databases, it is an
// ordinary column.
func TestColumnCaptureIgnoresCaseOfNames(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		position, shard := x.Dialect.Quote("Feed_Sync_Id"), x.Dialect.Quote("Shard")
		x.Exec(
			"CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v BIGINT, "+position+" BIGINT NULL, "+shard+" INT NULL)",
			"INSERT INTO kv VALUES (1, 2, 7, 3), (2, 3, NULL, NULL)",
		)
		before := x.DB.Dump(x.T)
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}
		if x.Has.CaseSensitiveNames {
			f := x.Add(spec)
			x.Publish(f)
			x.WantPage(f, "", 5, `1 upsert {"id":1,"v":2,"Feed_Sync_Id":7,"Shard":3}`,
				`2 upsert {"id":2,"v":3,"Feed_Sync_Id":null,"Shard":null}`, "> 2")
			return
		}
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("the refusal left\n%s", after)
		}
		spec.Adopt = true
		f := x.Add(spec)
		x.Publish(f)
		x.WantPage(f, "", 5, `7 upsert {"id":1,"v":2,"Shard":3}`, `8 upsert {"id":2,"v":3,"Shard":null}`, "> 8")
		x.WantSound(f)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
	})
}

// TestTriggerOfPartitionIsRefused (H22): a trigger on a partition fires for the publisher's UPDATE, too. It is refused
// by name, and Verify finds one that is created later.
func TestTriggerOfPartitionIsRefused(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere partitions have no triggers
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Statements("install.trigger_of_partition")...)
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "in_a_partition") {
			x.Errorf("the refusal does not name the trigger: %v", err)
		}
		x.Exec(x.Text("install.drop_trigger_of_partition"))
		f := x.Add(spec)
		x.Exec(x.Text("install.later_trigger"))
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "later") {
			x.Errorf("problems %q, %v", problems, err)
		}
	})
}

// TestForeignPositionsStopPublisher: another program writes positions that the publisher would give next. The publisher
// stops and says why and what to do. Repair mends the feed, and both changes are published.
func TestForeignPositionsStopPublisher(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(2)
		_, cursor := x.Drain(f, "")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 3 WHERE id = 1")
		x.Exec("UPDATE kv SET v = 9 WHERE id = 2")
		_, err := f.Publish(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "a publisher that is not rowfeed's") ||
			!strings.Contains(err.Error(), "repair kv") {
			x.Errorf("the error does not say why, or what to do: %v", err)
		}
		if _, err := f.Admin().Repair(x.Ctx); err != nil {
			x.Fatal(err)
		}
		lines, _ := x.Drain(f, cursor)
		if slices.Sort(lines); len(lines) != 2 || lines[0] != suite.KV(1, "k", 0) || lines[1] != suite.KV(2, "k", 9) {
			x.Errorf("entries %q", lines)
		}
		x.WantSound(f)
	})
}

// TestColumnAndTriggerFeedShareTable (H22): a table has a feed with column capture and another one with triggers,
// created in either order. Both have every row, and publishing one makes no entries in the other.
func TestColumnAndTriggerFeedShareTable(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		before := x.DB.Dump(x.T)
		specs := []rowfeed.FeedSpec{
			{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn},
			{Name: "noted", Table: "kv", Capture: feedtype.CaptureTrigger},
		}
		for range 2 {
			feeds := map[string]*rowfeed.Feed{}
			for _, spec := range specs {
				feeds[spec.Name] = x.Add(spec)
			}
			x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
			for _, name := range []string{"kv", "noted"} {
				lines, _ := x.Drain(feeds[name], "")
				for _, want := range []string{suite.KV(1, "a", 1), suite.KV(2, "b", 2)} {
					if !slices.ContainsFunc(lines, func(line string) bool {
						return strings.HasPrefix(line, strings.TrimSuffix(want, "}"))
					}) {
						x.Errorf("%s: entries %q, want %s", name, lines, want)
					}
				}
				x.WantSound(feeds[name])
			}
			if n := x.Publish(feeds["kv"]); n != 0 {
				x.Errorf("publishing the one feed made %d entries of the other", n)
			}
			for _, spec := range specs {
				if err := x.RF.DropFeed(x.Ctx, spec.Name); err != nil {
					x.Fatal(err)
				}
			}
			if after := x.DB.Dump(x.T); after != before {
				x.Errorf("drop left\n%s\nwant\n%s", after, before)
			}
			x.DB.Exec(x.T, "DELETE FROM kv")
			slices.Reverse(specs)
		}
	})
}

// TestAdoptingDifferentlyIsConflict (M28): adding an adopted feed again with another former sequence or other cursors
// is a conflict that names the difference, because nothing was adopted from there.
func TestAdoptingDifferentlyIsConflict(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE cursors (name VARCHAR(100) NOT NULL UNIQUE, value BIGINT NOT NULL)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		x.Add(spec)
		x.Add(spec)
		for what, change := range map[string]func(*rowfeed.FeedSpec){
			"adopt-sequence": func(s *rowfeed.FeedSpec) { s.AdoptSequence = "sequences" },
			"adopt-cursors":  func(s *rowfeed.FeedSpec) { s.AdoptCursors = "cursors" },
		} {
			other := spec
			change(&other)
			_, err := x.RF.AddFeed(x.Ctx, other, nil)
			x.WantCode(err, rowfeed.Conflict)
			if !strings.Contains(err.Error(), what) {
				x.Errorf("the conflict does not name %s: %v", what, err)
			}
		}
	})
}

// TestInvalidIndexIsRebuilt (M28): an interrupted CREATE INDEX CONCURRENTLY leaves an index that no query can use.
// Upgrade and feed add rebuild it.
func TestInvalidIndexIsRebuilt(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere an index is whole or not there
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		healthy := x.DB.Dump(x.T)
		broken := func() { x.Exec(x.Text("install.invalidate_indexes")) }
		invalid := func() int64 {
			x.Helper()
			return x.Scalar(x.Text("install.count_invalid_indexes"))
		}
		broken()
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 2 || invalid() != 0 {
			x.Errorf("upgrade mended %q, %v, and %d indexes are broken", mended, err, invalid())
		}
		if now := x.DB.Dump(x.T); now != healthy {
			x.Errorf("after upgrade the schema is\n%s\nwant\n%s", now, healthy)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Exec(x.Statements("install.indexes_of_former_add")...)
		broken()
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Adopt: true})
		if n := invalid(); n != 0 {
			x.Errorf("feed add left %d broken indexes", n)
		}
	})
}

// TestRecreatedFeedIsPublishedFromFirstKey: another process drops the feed during a batch and adds it again with a
// longer key, and the publisher has already read the new record. The publisher does not resume behind a key of the old
// feed: it publishes every row.
func TestRecreatedFeedIsPublishedFromFirstKey(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // in SQLite an open batch locks all others out
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Exact("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(20) NOT NULL, v BIGINT)"),
			"CREATE UNIQUE INDEX kv_both ON kv (id, k)")
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Fill(7)
		changed := false
		var f *rowfeed.Feed
		f = x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if changed || !ev.InTx || !strings.Contains(ev.SQL, "_sequences") || !suite.LocksRows(ev) {
				return nil
			}
			changed = true
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				return err
			}
			longer := rowfeed.FeedSpec{
				Name: "kv", Table: "kv", Key: []string{"id", "k"}, Capture: feedtype.CaptureColumn,
			}
			if _, err := x.RF.AddFeed(x.Ctx, longer, nil); err != nil {
				return err
			}
			_, err := f.Info(x.Ctx) // reads the record
			return err
		}}, &rowfeed.Config{BatchSize: 2})
		// On some databases the batch in which the feed was added again fails: its statements are for the shorter key.
		reason := x.Text("install.error_of_recreated_feed")
		_, err := f.Publish(x.Bounded())
		if (err == nil) != (reason == "") || !strings.Contains(fmt.Sprint(err), reason) {
			x.Fatalf("publishing while the feed is added again: %v, want an error that contains %q", err, reason)
		}
		if _, err := f.Publish(x.Bounded()); err != nil {
			x.Fatal(err)
		}
		if !changed {
			x.Error("the feed was not changed meanwhile")
		}
		if n := x.Scalar("SELECT count(*) FROM kv WHERE feed_sync_id IS NULL"); n != 0 {
			x.Errorf("%d rows wait", n)
		}
	})
}

// TestReadersReadWhileIndexesAreBuilt (H22): feed add commits the new columns, whose lock excludes readers, before it
// builds the indexes, which reads the whole table. Readers can read meanwhile. If building fails, adding the feed again
// completes it, and dropping the feed cleans up.
func TestReadersReadWhileIndexesAreBuilt(t *testing.T) {
	// In SQLite, readers do not wait for a writer. DDL of MariaDB and MySQL commits by itself.
	testdb.Only(t, testdb.PostgreSQL...)
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"INSERT INTO kv VALUES (1, 'a', 1)")
		before := x.DB.Dump(x.T)
		reads, stop := 0, errors.New("the power fails")
		rf := x.TappedDB(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if err == nil && strings.HasPrefix(ev.SQL, "CREATE INDEX") && strings.Contains(ev.SQL, "row_position") {
				var n int
				if err := x.DB.Admin().QueryRowContext(x.Bounded(), "SELECT count(*) FROM kv").Scan(&n); err != nil {
					return err
				}
				if reads++; reads == 1 {
					return stop
				}
			}
			return err
		}}, nil)
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn}
		_, err := rf.AddFeed(x.Ctx, spec, nil)
		if !errors.Is(err, stop) {
			x.Fatal(err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
		reads = 0
		if _, err := rf.AddFeed(x.Ctx, spec, nil); !errors.Is(err, stop) {
			x.Fatal(err)
		}
		if _, err := rf.AddFeed(x.Ctx, spec, nil); err != nil || reads != 2 {
			x.Fatalf("%d reads, %v", reads, err)
		}
		f := x.Add(spec)
		x.WantDrain(f, "", suite.KV(1, "a", 1))
		x.WantSound(f)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
	})
}

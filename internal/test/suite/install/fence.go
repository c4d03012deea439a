package install

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// formerly gives row 3 a position as the former publisher of createPositioned does, in one of its transactions.
var formerly = []string{
	"UPDATE kv SET feed_sync_id = (SELECT value + 1 FROM sequences WHERE name = 'kv') WHERE id = 3",
	"UPDATE sequences SET value = value + 1, version = version + 1 WHERE name = 'kv'",
}

// fenced is a feed that adopts the positions of createPositioned behind a fence.
var fenced = rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true,
	AdoptSequence: "sequences", Fence: true}

// wantFenced asserts that the fence of the feed kv refuses a statement, and says so.
func wantFenced(x *suite.Env, q interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statement string) {
	x.Helper()
	_, err := q.ExecContext(x.Bounded(), statement)
	if err == nil || !strings.Contains(err.Error(), "rowfeed: only feed kv sets feed_sync_id") {
		x.Errorf("%s: %v", statement, err)
	}
}

// TestFenceRefusesFormerPublisher (M28): with a fence, a former publisher that still runs fails with an error that
// names rowfeed and the feed. Writers and rowfeed's publisher are not affected. A fence that was removed is reported
// and restored, and dropping the feed removes it.
func TestFenceRefusesFormerPublisher(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		before := x.DB.Dump(x.T)
		f := x.Add(fenced)
		x.Add(fenced) // again
		open := fenced
		open.Fence = false
		_, err := x.RF.AddFeed(x.Ctx, open, nil)
		x.WantCode(err, rowfeed.Conflict)
		refused := func() {
			x.Helper()
			for _, s := range []string{"UPDATE kv SET feed_sync_id = feed_sync_id + 100",
				"INSERT INTO kv (id, k, v, feed_sync_id) VALUES (9, 'x', 9, 30)"} {
				wantFenced(x, x.DB.Admin(), s)
			}
		}
		refused()
		wantFenced(x, x.DB.Admin(), formerly[0])
		if n := x.Publish(f); n != 1 {
			x.Errorf("%d rows were published", n)
		}
		refused()
		x.Exec("INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)", "UPDATE kv SET v = 5 WHERE id = 2",
			"DELETE FROM kv WHERE id = 1")
		x.DB.Exec(x.T, "UPDATE kv SET k = 'z', feed_sync_id = feed_sync_id WHERE id = 3") // keeps its position
		if n := x.Publish(f); n != 3 {
			x.Errorf("%d keys were published", n)
		}
		x.WantDrain(f, "10", suite.Gone(1), suite.KV(2, "b", 5), suite.KV(4, "d", 4))
		x.WantSound(f)

		layout := &dialect.Feed{Name: "kv", Names: dialect.Names{Prefix: "rowfeed_"},
			Capture: feedtype.CaptureColumn, Fence: true}
		x.Exec(x.Text("install.drop_trigger", x.Dialect.TriggerNames(layout)[0]))
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger rowfeed_kv_") {
			x.Errorf("problems %q, %v", problems, err)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		refused()
		x.WantSound(f)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("drop left\n%s\nwant\n%s", after, before)
		}
		for _, s := range formerly {
			x.DB.Exec(x.T, s)
		}

		for _, spec := range []rowfeed.FeedSpec{
			{Fence: true},
			{Fence: true, Capture: feedtype.CaptureApp},
			{Fence: true, Mode: rowfeed.ModeOutbox},
		} {
			spec.Name, spec.Table = "other", "kv"
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// placing matches the statement that gives positions to rows.
var placing = regexp.MustCompile(`(?s)(UPDATE|WITH placed).*feed_sync_id = `)

// TestFenceIsShutAfterFailedPass (M28): a pass that fails while it gives positions leaves nothing on its connection
// that would let another program through which gets the connection from the same pool.
func TestFenceIsShutAfterFailedPass(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Add(fenced)
		fails, off := 0, false
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if !off && (fails > 0 || placing.MatchString(ev.SQL)) {
				fails++
				return suite.ErrOff
			}
			return err
		}})
		pool.SetMaxOpenConns(1)
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if _, err := f.Publish(x.Bounded()); !errors.Is(err, suite.ErrOff) {
			x.Fatalf("the pass did not fail: %v", err)
		}
		off = true
		wantFenced(x, pool, formerly[0])
		if n, err := f.Publish(x.Bounded()); n != 1 || err != nil {
			x.Errorf("%d rows were published, %v", n, err)
		}
		wantFenced(x, pool, "UPDATE kv SET feed_sync_id = 99 WHERE id = 3")
	})
}

// TestFenceIsShutForOtherSessions (M28): while rowfeed's publisher gives positions, other sessions are refused on
// every isolation level. A session that keeps its transaction open after that does not delay the publisher.
func TestFenceIsShutForOtherSessions(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // on SQLite they wait until the publisher has ended
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Add(fenced)
		levels := []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead}
		for _, level := range levels {
			tried := false
			f := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if !tried && placing.MatchString(ev.SQL) {
					tried = true
					tx := x.Begin(level)
					x.T.Cleanup(func() { _ = tx.Rollback() })
					wantFenced(x, tx, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES (99, 'x', 9, 30)")
				}
				return err
			}}, nil)
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 2")
			if _, err := f.Publish(x.Bounded()); err != nil {
				x.Error(err)
			}
			if !tried {
				x.Error("no statement gave positions")
			}
		}
		if n := x.Scalar("SELECT feed_sync_id FROM kv WHERE id = 2"); n != 13 {
			x.Errorf("row 2 has position %d, want 13", n)
		}
	})
}

// TestFenceIsAddedToFeed (M28): a feed gets a fence later. The publisher of rowfeed that runs meanwhile continues.
func TestFenceIsAddedToFeed(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		spec := fenced
		spec.Fence = false
		f := x.Add(spec)
		other := x.Tapped(testdb.Hooks{}, nil)
		if err := f.Admin().AddFence(x.Ctx); err != nil {
			x.Fatal(err)
		}
		mended, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || len(mended) == 0 {
			x.Fatalf("mended %q, %v", mended, err)
		}
		wantFenced(x, x.DB.Admin(), formerly[0])
		if n, err := other.Publish(x.Bounded()); n != 1 || err != nil {
			x.Errorf("%d rows were published, %v", n, err)
		}
		x.WantSound(f)
		again, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || len(again) != 0 {
			x.Errorf("mended again %q, %v", again, err)
		}
		x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		x.WantCode(x.Add(rowfeed.FeedSpec{Name: "plain", Table: "plain", Capture: feedtype.CaptureTrigger}).
			Admin().AddFence(x.Ctx), rowfeed.Refused)
	})
}

// wantForeign asserts that status, the publisher's readiness and check report positions of another publisher, with the
// cure, and that repair gives the rows positions above the cursor.
func wantForeign(x *suite.Env, f *rowfeed.Feed, says string, after rowfeed.Cursor, want ...string) {
	x.Helper()
	status, err := f.Admin().Status(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	problems := strings.Join(status.Problems, "; ")
	for _, part := range []string{"a publisher that is not rowfeed's", says, "`rowfeed repair kv`"} {
		if !strings.Contains(problems, part) {
			x.Errorf("the problems of status do not contain %q: %s", part, problems)
		}
	}
	findings, err := f.Admin().Check(x.Ctx)
	if err != nil || len(findings) == 0 {
		x.Errorf("check: %+v, %v", findings, err)
	}
	x.PublisherSays(f, "a publisher that is not rowfeed's")
	if n, err := f.Admin().Repair(x.Ctx); n == 0 || err != nil {
		x.Errorf("%d keys were repaired, %v", n, err)
	}
	x.Publish(f)
	lines, _ := x.Drain(f, after)
	for _, line := range want {
		if !slices.Contains(lines, line) {
			x.Errorf("entries above %s: %q, want %s", after, lines, line)
		}
	}
	x.WantSound(f)
	if status, err := f.Admin().Status(x.Ctx); err != nil || len(status.Problems) != 0 {
		x.Errorf("problems after the repair: %+v, %v", status, err)
	}
}

// TestFormerSequenceThatRisesIsReported (M28): without a fence, a former publisher gives a row a position at or below
// those that readers have passed. No row shows that, but its sequence does. Repair gives the row a position above the
// head.
func TestFormerSequenceThatRisesIsReported(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		spec := fenced
		spec.Fence = false
		f := x.Add(spec)
		x.Publish(f)
		x.Exec("UPDATE kv SET v = 4 WHERE id = 3")
		x.Publish(f)
		_, cursor := x.Drain(f, "") // 11
		x.WantSound(f)
		x.Exec("INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)")
		for _, s := range formerly {
			x.DB.Exec(x.T, strings.Replace(s, "id = 3", "id = 4", 1))
		}
		if lines, _ := x.Drain(f, cursor); len(lines) != 0 {
			x.Fatalf("the test does not lose the row: %q", lines)
		}
		wantForeign(x, f, "the former sequence sequences has gone from 9 to 10", cursor, suite.KV(4, "d", 4))
	})
}

// TestForeignPositionsAboveHeadAreReported (M28): positions above the head, such as MAX + 1 of another publisher, are
// reported before rowfeed's publisher reaches them, also if it gives only positions of deletes.
func TestForeignPositionsAboveHeadAreReported(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(3)
		_, cursor := x.Drain(f, "")
		x.DB.Exec(x.T, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES (7, 'x', 1, 4)")
		x.Exec("DELETE FROM kv WHERE id = 1")
		_, err := f.Publish(x.Bounded())
		x.WantCode(err, rowfeed.Refused)
		if err == nil || !strings.Contains(err.Error(), "given positions to rows: feed_sync_id 4") {
			x.Errorf("the error does not name the position: %v", err)
		}
		wantForeign(x, f, "4 is above the feed's sequence, which is at 3", cursor, suite.KV(7, "x", 1), suite.Gone(1))
	})
}

// TestForeignPositionsBehindUniqueIndex (M28): if the table's own unique index refuses the publisher's positions, the
// error is not only the database's: it says that another program gave positions, which, and what to do.
func TestForeignPositionsBehindUniqueIndex(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec(x.Text("install.unique_positions"))
		spec := fenced
		spec.Fence = false
		f := x.Add(spec)
		x.Publish(f)
		_, cursor := x.Drain(f, "")
		x.DB.Exec(x.T, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES (4, 'd', 4, 11)")
		x.Exec("UPDATE kv SET v = 5 WHERE id = 1")
		_, err := f.Publish(x.Bounded())
		x.WantCode(err, rowfeed.Refused)
		for _, part := range []string{"a publisher that is not rowfeed's", "feed_sync_id 11", "repair kv"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				x.Errorf("the error does not contain %q: %v", part, err)
			}
		}
		wantForeign(x, f, "11 is above the feed's sequence, which is at 10", cursor, suite.KV(4, "d", 4),
			suite.KV(1, "a", 5))
	})
}

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

// TestTakeoverKeepsCursors (M28): rowfeed takes over a feed that the team's own publisher has numbered, while that
// gives a position. Positions go on above the former ones, and cursors stay valid. Readers and publishers of other
// processes follow. The former publisher is refused by the fence, or reported.
func TestTakeoverKeepsCursors(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		for _, fence := range []bool{false, true} {
			createPositioned(x, "feed_sync_id BIGINT NULL")
			write(x, "INSERT INTO kv (id, k, v) VALUES (4, 'd', 4)")
			f := x.Add(elsewhere)
			other, idle := x.Tapped(testdb.Hooks{}, nil), x.Tapped(testdb.Hooks{}, nil)
			x.Publish(idle)
			cursor := x.WantPage(other, "", 5, "3 "+suite.KV(2, "b", 2), "7 "+suite.KV(1, "a", 1), "> 9")
			if x.DB.Family == "sqlite" { // one writer at a time
				ownPass(x, 3)
			} else {
				tx := x.Begin(sql.LevelReadCommitted)
				run(x, tx, ownPublisher(3)...)
				done := make(chan error, 1)
				go func() {
					_, err := f.Admin().TakeOver(x.Bounded(), fence)
					done <- err
				}()
				x.Commit(tx)
				if err := <-done; err != nil {
					x.Fatal(err)
				}
			}
			_, err := f.Admin().TakeOver(x.Ctx, fence)
			again, failed := f.Admin().TakeOver(x.Ctx, fence)
			if err := errors.Join(err, failed); err != nil || again || f.State() != "active" {
				x.Fatalf("taking over: changed %v, %v, state %s", again, err, f.State())
			}
			cursor = x.WantPage(other, cursor, 5, "10 "+suite.KV(3, "c", 3), "> 10")
			x.Exec("UPDATE kv SET v = 8 WHERE id = 1", "DELETE FROM kv WHERE id = 2")
			if n := x.Publish(idle); n != 3 {
				x.Errorf("%d keys were published", n)
			}
			cursor = x.WantPage(other, cursor, 5, "11 "+suite.Gone(2), "12 "+suite.KV(1, "a", 8),
				"13 "+suite.KV(4, "d", 4), "> 13")
			x.WantSound(f)
			if status, err := f.Admin().Status(x.Ctx); err != nil || len(status.Problems) != 0 {
				x.Errorf("problems %+v, %v", status, err)
			}
			write(x, "UPDATE kv SET v = 9, feed_sync_id = NULL WHERE id = 4")
			if own := ownPublisher(4); fence {
				wantFenced(x, x.DB.Admin(), own[1])
			} else {
				write(x, own...)
				wantForeign(x, f, "the former sequence sequences has gone from 10 to 11", cursor, suite.KV(4, "d", 9))
			}
			dropFeed(x)
			x.Exec("DROP TABLE kv", "DROP TABLE sequences", "DELETE FROM rowfeed_feeds", "DELETE FROM rowfeed_terms")
		}
		x.Exec("CREATE TABLE plain (id BIGINT NOT NULL PRIMARY KEY)")
		f := x.Add(rowfeed.FeedSpec{Name: "plain", Table: "plain", Capture: feedtype.CaptureTrigger})
		_, err := f.Admin().TakeOver(x.Ctx, false)
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestFormerPublisherWaitsDuringTakeover (M28): the former publisher begins a pass after rowfeed has read its sequence.
// It waits until rowfeed has taken over, so no position is given twice unnoticed.
func TestFormerPublisherWaitsDuringTakeover(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Add(elsewhere)
		tx := x.Begin(sql.LevelReadCommitted)
		defer tx.Rollback()
		done := make(chan error, 1)
		armed, waited := false, false
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if !armed || !strings.Contains(ev.SQL, "INSERT INTO") || !strings.Contains(ev.SQL, "rowfeed_sequences") {
				return nil
			}
			armed = false
			go func() {
				_, err := tx.ExecContext(x.Bounded(), ownPublisher(3)[0])
				done <- err
			}()
			for waited = x.Waits(); !waited && len(done) == 0; waited = x.Waits() {
				runtime.Gosched()
			}
			return nil
		}}, nil)
		armed = true
		if _, err := f.Admin().TakeOver(x.Ctx, false); err != nil {
			x.Fatal(err)
		}
		if armed || !waited {
			x.Errorf("the takeover went on: %t; the former publisher waited for it: %t", !armed, waited)
		}
		if err := <-done; err != nil {
			x.Fatal(err)
		}
		run(x, tx, ownPublisher(3)[1])
		x.Commit(tx)
		if status, err := f.Admin().Status(x.Ctx); err != nil ||
			!strings.Contains(strings.Join(status.Problems, ""), "has gone from 9 to 10") {
			x.Errorf("%+v, %v", status, err)
		}
	})
}

// TestInterruptedTakeoverIsReported (M28): a takeover with a fence is killed after the fence was made. Status, check
// and the publisher's readiness say so, with the commands that finish or undo it, and both commands do.
func TestInterruptedTakeoverIsReported(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		stop := errors.New("the power fails")
		interrupt := func() *rowfeed.Feed {
			x.Helper()
			x.Add(elsewhere)
			killed := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if strings.Contains(ev.SQL, "INSERT INTO") && strings.Contains(ev.SQL, "rowfeed_sequences") {
					return stop
				}
				return nil
			}}, nil)
			if _, err := killed.Admin().TakeOver(x.Ctx, true); !errors.Is(err, stop) {
				x.Fatal(err)
			}
			f, err := x.RF.Feed(x.Ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			return f
		}
		f := interrupt()
		wantFenced(x, x.DB.Admin(), ownPublisher(3)[1])
		status, err := f.Admin().Status(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		says := "finish it with `rowfeed feed upgrade kv --published-here --fence`, or undo it with " +
			"`rowfeed feed drop kv`"
		if problems := strings.Join(status.Problems, "; "); !strings.Contains(problems, says) {
			x.Errorf("the problems of status are %q", problems)
		}
		if findings, err := f.Admin().Check(x.Ctx); err != nil || !strings.Contains(fmt.Sprint(findings), says) {
			x.Errorf("check: %+v, %v", findings, err)
		}
		x.PublisherSays(f, says)

		cursor := x.WantPage(f, "", 5, "3 "+suite.KV(2, "b", 2), "7 "+suite.KV(1, "a", 1), "> 9")
		dropFeed(x)
		f = x.Add(elsewhere)
		x.WantSound(f)
		ownPass(x, 3)
		cursor = x.WantPage(f, cursor, 5, "10 "+suite.KV(3, "c", 3), "> 10")
		dropFeed(x)
		f = interrupt()
		if changed, err := f.Admin().TakeOver(x.Ctx, true); !changed || err != nil {
			x.Fatalf("finished: %t, %v", changed, err)
		}
		x.Exec("UPDATE kv SET v = 8 WHERE id = 1")
		x.Publish(f)
		x.WantPage(f, cursor, 5, "11 "+suite.KV(1, "a", 8), "> 11")
		x.WantSound(f)
	})
}

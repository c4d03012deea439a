package page

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReadersMoveBetweenPrimaryAndReplica (H26): one reader reads a replica, another one alternates between the replica
// and the primary, while writers and a publisher work on the primary. No reader is refused, no cursor goes back, and no
// entry is skipped.
func TestReadersMoveBetweenPrimaryAndReplica(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		y, there := x.On(rowfeed.Config{Replica: true})
		x.RunPublisher()
		steady, roaming := y.Recorder(there, 20), x.Recorder(x.Feed, 20)
		const rows = 300
		done := make(chan struct{})
		go func() {
			defer close(done)
			for id := 1; id <= rows; id++ {
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id),
					fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", id, (id+1)/2))
				if id%10 == 0 {
					x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
				}
			}
		}()
		for round, running := 0, true; running; round++ {
			select {
			case <-done:
				running = false
			default:
			}
			before := roaming.Cursor
			roaming.Source = []rowfeed.Source{x.Feed, there}[round%2]
			roaming.Page()
			if ahead(before, roaming.Cursor) {
				x.Fatalf("the cursor went from %q back to %q", before, roaming.Cursor)
			}
			steady.Page()
		}
		x.Publish(x.Feed)
		x.Reaches(there, x.Fetch(x.Feed, rowfeed.Now, 1).Cursor)
		for _, k := range []*suite.Recorder{steady, roaming} {
			k.Source = there
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
		}
	})
}

// TestReplicaShowsCommitBeforePrimary (H26): a primary makes a commit visible after it has sent it, so a replica can
// show it first. A cursor from the replica is then above the primary's head, or of a later generation. While that
// transaction is open, the primary only asks its reader to try again. Afterwards the reader continues.
func TestReplicaShowsCommitBeforePrimary(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		_, there := x.On(rowfeed.Config{Replica: true})
		x.Fill(1)
		x.Publish(x.Feed)
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		early := func(commit func() error, plain ...rowfeed.Cursor) {
			before := x.Fetch(x.Feed, rowfeed.Now, 1).Cursor
			x.Reaches(there, before)
			release := x.DB.Server().HoldCommits(t)
			committed := make(chan error, 1)
			go func() { committed <- commit() }()
			var ahead rowfeed.Cursor
			x.Eventually("the replica shows the commit", func() bool {
				ahead = x.Fetch(there, rowfeed.Now, 1).Cursor
				return ahead != before
			})
			all := append(plain, ahead)
			waits := waiter(x.Env, x.Feed, all[0])
			for _, after := range all {
				x.WantRefused(x.Feed, after, rowfeed.Locked)
			}
			release()
			if err := <-committed; err != nil {
				x.Fatal(err)
			}
			for _, after := range all {
				if page := x.Fetch(x.Feed, after, 0); len(page.Entries) != 0 || page.Cursor != ahead {
					x.Errorf("after %q: %d entries, cursor %q", after, len(page.Entries), page.Cursor)
				}
			}
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			x.Publish(x.Feed)
			if got := <-waits; got.Err != nil || len(got.Page.Entries) != 1 {
				x.Errorf("the reader that waits got %d entries: %v", len(got.Page.Entries), got.Err)
			}
		}
		early(func() error { _, err := x.Feed.Publish(x.Ctx); return err }, "2")
		early(func() error { _, err := x.Feed.Admin().Bump(x.Ctx); return err })
	})
}

// TestLostCursorWaitsForOneTransaction (H26): a reader has seen what the database has lost. It is refused once the
// transaction has ended that was open when it asked, also if another one changes the feed's head by then.
func TestLostCursorWaitsForOneTransaction(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite shows every commit at once
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(2)
		first, second := x.Begin(sql.LevelReadCommitted), x.Begin(sql.LevelReadCommitted)
		const change = "UPDATE rowfeed_sequences SET value = value + 1"
		changed := make(chan error, 1)
		var asked atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if !suite.AsksForOpenChange(ev) || asked.Add(1) != 3 {
				return nil
			}
			return errors.Join(first.Commit(), <-changed)
		}}, nil)
		x.Publish(f)
		lost := suite.Place(x.Fetch(f, rowfeed.Now, 1).Cursor) + ".1000000000"
		x.In(first, change)
		go func() {
			_, err := second.ExecContext(x.Ctx, change)
			changed <- err
		}()
		x.Eventually("the second transaction waits for the first", x.Waits)
		wantHistoryLost(x, f, lost)
		if asked.Load() < 3 {
			x.Errorf("open transactions were asked for %d times", asked.Load())
		}
	})
}

// ahead compares cursors of generation 1 by their positions.
func ahead(a, b rowfeed.Cursor) bool {
	position := func(c rowfeed.Cursor) (n int64) {
		fmt.Sscanf(string(c), "%d", &n)
		return n
	}
	return position(a) > position(b)
}

// TestLaggingReplicaMakesReadersWait (H26): a cursor from the primary whose position or start mark is above the
// replica's head gets an empty page, or waits until the replica has caught up. It must not get the replica's rows: the
// primary may have deleted them at a position that the mark hides.
func TestLaggingReplicaMakesReadersWait(t *testing.T) {
	suite.EachReplicated(t, func(x *suite.Replicated) {
		_, there := x.On(rowfeed.Config{Replica: true})
		x.Fill(2)
		x.Publish(x.Feed)
		x.Reaches(there, "2")
		release := x.Replica.HoldReplication(t)
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Publish(x.Feed)
		for _, after := range []rowfeed.Cursor{"3", "1@3"} {
			if page := x.Fetch(there, after, 0); len(page.Entries) != 0 || page.Cursor != after || page.More {
				x.Errorf("after %s: %d entries, cursor %q, more %v", after, len(page.Entries), page.Cursor, page.More)
			}
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0), (3, 'k', 0)")
		x.Publish(x.Feed)
		generation, err := x.Feed.Admin().Bump(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		bumped := rowfeed.Cursor(fmt.Sprintf("%d:1", generation))
		if page := x.Fetch(there, bumped, 0); len(page.Entries) != 0 || page.Cursor != bumped || page.More {
			// In the new generation these positions may have other keys.
			x.Errorf("after %s: %d entries, cursor %q, more %v", bumped, len(page.Entries), page.Cursor, page.More)
		}
		type answer struct {
			page rowfeed.Page
			err  error
		}
		waited := make(chan answer, 1)
		go func() {
			page, err := there.Fetch(x.Ctx, rowfeed.Request{After: bumped, Wait: time.Minute})
			waited <- answer{page, err}
		}()
		release()
		if got := <-waited; got.err != nil || len(got.page.Entries) != 2 || got.page.Entries[0].Position != "4" {
			x.Errorf("waited for %d entries: %v", len(got.page.Entries), got.err)
		}
		// The replica has the new generation now, so cursors of the old one are refused there, too.
		_, err = there.Fetch(x.Ctx, rowfeed.Request{After: "3"})
		x.WantCode(err, rowfeed.GenerationChanged)
		// A cursor of data shards that the replica does not have yet is not refused for good.
		release = x.Replica.HoldReplication(t)
		x.Reshard(x.Feed, 7)
		page, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(0, 2)})
		if err != nil {
			x.Fatal(err)
		}
		_, err = there.Fetch(x.Ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.Part(0, 2)})
		x.WantCode(err, rowfeed.Unavailable)
		release()
	})
}

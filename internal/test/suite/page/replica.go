package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
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
	})
}

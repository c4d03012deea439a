package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// replicated is a primary with a feed, and a replica of it.
type replicated struct {
	*env
	feed    *rowfeed.Feed
	replica *testdb.Server
}

func eachReplicated(t *testing.T, f func(x *replicated)) {
	for _, e := range []testdb.Engine{testdb.Postgres15, testdb.MariaDB} {
		t.Run(e.Name, func(t *testing.T) {
			e.Require(t)
			primary := e.Primary(t)
			replica := primary.Replica(t)
			x := openEnv(t, primary.NewDatabase(t), nil)
			x.migrate()
			f(&replicated{x, x.addKV(), replica})
		})
	}
}

// on opens the feed on the replica, once it is there.
func (x *replicated) on(cfg rowfeed.Config) (*env, *rowfeed.Feed) {
	x.Helper()
	db := x.db.On(x.T, x.replica)
	x.eventually("the feed is on the replica", func() bool {
		return db.Admin().QueryRow("SELECT 1 FROM rowfeed_positions_kv WHERE feed_sync_id = 0").Err() == nil
	})
	y := openEnv(x.T, db, &cfg)
	f, err := y.rf.Feed(x.ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return y, f
}

// reaches waits until the replica shows a head.
func (x *replicated) reaches(f *rowfeed.Feed, head rowfeed.Cursor) {
	x.Helper()
	x.eventually("the replica has it", func() bool { return x.fetch(f, rowfeed.Now, 1).Cursor == head })
}

// TestReplica (H26): consumers read a replica, and go to and fro between it and
// the primary, while others write and publish on the primary. Nobody is refused, no
// cursor goes back, no entry is skipped.
func TestReplica(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		y, there := x.on(rowfeed.Config{Replica: true})
		x.runPublisher()
		steady, roaming := y.keeper(there, 20), x.keeper(x.feed, 20)
		const rows = 300
		done := make(chan struct{})
		go func() {
			defer close(done)
			for id := 1; id <= rows; id++ {
				x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id), fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", id, (id+1)/2))
				if id%10 == 0 {
					x.exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
				}
			}
		}()
		for round, running := 0, true; running; round++ {
			select {
			case <-done:
				running = false
			default:
			}
			before := roaming.cursor
			roaming.source = []rowfeed.Source{x.feed, there}[round%2]
			roaming.page()
			if ahead(before, roaming.cursor) {
				x.Fatalf("the cursor went from %q back to %q", before, roaming.cursor)
			}
			steady.page()
		}
		x.publish(x.feed)
		x.reaches(there, x.fetch(x.feed, rowfeed.Now, 1).Cursor)
		for _, k := range []*keeper{steady, roaming} {
			k.source = there
			k.read()
			k.judge(x.kvRows(), byID)
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

// TestReplicaLags (H26): a cursor from the primary is ahead of what the replica shows. It is
// answered by an empty page, and waits for the replica; so is one whose start mark is:
// what is here may be deleted there, at a position that the mark leaves out.
func TestReplicaLags(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		_, there := x.on(rowfeed.Config{Replica: true})
		x.fill(2)
		x.publish(x.feed)
		x.reaches(there, "2")
		release := x.replica.HoldReplication(t)
		x.exec("DELETE FROM kv WHERE id = 2")
		x.publish(x.feed)
		for _, after := range []rowfeed.Cursor{"3", "1@3"} {
			if page := x.fetch(there, after, 0); len(page.Entries) != 0 || page.Cursor != after || page.More {
				x.Errorf("after %s: %d entries, cursor %q, more %v", after, len(page.Entries), page.Cursor, page.More)
			}
		}
		x.exec("INSERT INTO kv VALUES (2, 'k', 0), (3, 'k', 0)")
		x.publish(x.feed)
		generation, err := x.feed.Admin().Bump(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		bumped := rowfeed.Cursor(fmt.Sprintf("%d:1", generation))
		if page := x.fetch(there, bumped, 0); len(page.Entries) != 0 || page.Cursor != bumped || page.More {
			// Its positions 2 and 4 may be other keys than those of this generation.
			x.Errorf("after %s: %d entries, cursor %q, more %v", bumped, len(page.Entries), page.Cursor, page.More)
		}
		type answer struct {
			page rowfeed.Page
			err  error
		}
		waited := make(chan answer, 1)
		go func() {
			page, err := there.Fetch(x.ctx, rowfeed.Request{After: bumped, Wait: time.Minute})
			waited <- answer{page, err}
		}()
		release()
		if got := <-waited; got.err != nil || len(got.page.Entries) != 2 || got.page.Entries[0].Position != "4" {
			x.Errorf("waited for %d entries: %v", len(got.page.Entries), got.err)
		}
		// The replica knows of the bump now: cursors of before are refused there, too.
		_, err = there.Fetch(x.ctx, rowfeed.Request{After: "3"})
		x.wantCode(err, rowfeed.GenerationChanged)
	})
}

// TestReplicaTakenForPrimary (H26): who does not say that it is a replica is told so, instead
// of publishing, or refusing a cursor for good; and nothing is written there, also by
// a user who could.
func TestReplicaTakenForPrimary(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		y, there := x.on(rowfeed.Config{})
		x.fill(2)
		x.publish(x.feed)
		x.exec("INSERT INTO kv VALUES (3, 'k', 0)") // waits to be published
		x.eventually("the replica has the change", func() bool { return y.scalar("SELECT count(*) FROM rowfeed_changes_kv") == 1 })
		told := func(err error) {
			x.Helper()
			x.wantCode(err, rowfeed.ReadOnly)
			if !strings.Contains(err.Error(), "--replica") {
				x.Errorf("no next step in %v", err)
			}
		}
		ctx, stop := context.WithCancel(x.ctx)
		reasons, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- server.Run(ctx, server.Config{DB: y.rf, Publish: true, Listen: "127.0.0.1:0", Ready: func(a string) { reasons <- "http://" + a + "/readyz" }})
		}()
		at := <-reasons
		x.eventually("a server that is to publish is not ready there, and says why", func() bool {
			resp, err := http.Get(at)
			if err != nil {
				x.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return err == nil && resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "connect to the primary")
		})
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		_, err := there.Publish(x.ctx)
		told(err)
		_, err = there.Fetch(x.ctx, rowfeed.Request{After: "3"})
		told(err)
		_, err = there.Admin().Bump(x.ctx)
		told(err)
		_, err = there.Admin().AdoptDatabase(x.ctx)
		told(err)
		if n := y.scalar("SELECT count(*) FROM rowfeed_changes_kv"); n != 1 {
			x.Errorf("%d changes on the replica", n)
		}
		running := y.runPublisher()
		x.eventually("the publisher tells", func() bool {
			return slices.ContainsFunc(running.feed.Problems(), func(p string) bool { return strings.Contains(p, "--replica") })
		})
		_, declared := x.on(rowfeed.Config{Replica: true})
		_, err = declared.Publish(x.ctx)
		told(err)
		_, err = declared.Fetch(x.ctx, rowfeed.Request{Consistent: true})
		x.wantCode(err, rowfeed.InvalidRequest)
		// A publisher goes on where a replica becomes the primary: see TestFailover.
	})
}

// TestFailover (M74): the primary is lost with commits that the replica never got, and
// the replica takes its place. A publisher that has seen nothing of this stops by the
// database's identity; a consumer that is ahead is refused; after a bump all go on.
func TestFailover(t *testing.T) {
	eachReplicated(t, func(x *replicated) {
		_, there := x.on(rowfeed.Config{Replica: true})
		x.fill(3)
		x.publish(x.feed)
		x.reaches(there, "3")
		x.replica.CutReplication(t)
		x.exec("INSERT INTO kv VALUES (4, 'lost', 0), (5, 'lost', 0)")
		x.publish(x.feed)
		consumer := x.witness()
		x.eventually("five entries", consumer.has(5))
		primary := x.db.Server()
		primary.Kill(t)
		x.replica.Promote(t)
		x.replica.TakePlace(t, primary)
		x.eventually("the consumer is refused", func() bool { return consumer.refusal() != nil })
		x.wantCode(consumer.refusal(), rowfeed.DatabaseChanged)

		fresh := openEnv(t, x.db, nil) // a process that was started after it
		f, err := fresh.rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		_, err = f.Fetch(x.ctx, rowfeed.Request{After: "5"})
		x.wantCode(err, rowfeed.CursorAhead)
		if _, err := fresh.pool.Exec("INSERT INTO kv VALUES (6, 'new', 0), (7, 'new', 0), (8, 'new', 0)"); err != nil {
			x.Fatal(err)
		}
		_, err = f.Publish(x.ctx)
		x.wantCode(err, rowfeed.DatabaseChanged)
		running := fresh.runPublisher()
		x.eventually("the publisher tells", func() bool { return len(running.feed.Problems()) > 0 })

		if _, err := f.Admin().Bump(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.eventually("the consumer is told", func() bool { return isCode(consumer.refusal(), rowfeed.GenerationChanged) })
		consumer.startOver()
		x.eventually("what is there", consumer.has(6))
		want := []string{`1 {"id":1}`, `2 {"id":2}`, `3 {"id":3}`, `4 {"id":6}`, `5 {"id":7}`, `6 {"id":8}`}
		if !slices.Equal(consumer.lines, want) {
			x.Errorf("received %q", consumer.lines)
		}
		x.eventually("all is well", func() bool { return len(running.feed.Problems()) == 0 })
		fresh.wantSound(f)
	})
}

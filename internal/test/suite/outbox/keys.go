package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRecordOfKnownKeyMovesItsEntry (M59): a record of a key that has an entry moves the entry to the head of the
// record's shard. A reader that has passed the old position gets the row again. Other readers get it once, at the new
// position. Of several records that are moved together the last one counts.
func TestRecordOfKnownKeyMovesItsEntry(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		x.Exec("INSERT INTO events VALUES (1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c'), (4, 0, 'd')")
		x.Publish(x.Feed)
		half := x.Page(x.Feed, 0, "", 2)
		x.WantIDs(half, true, 1, 2)
		x.Exec("DELETE FROM events WHERE id IN (1, 3)", "INSERT INTO events VALUES (3, 0, 'cc')",
			"INSERT INTO events VALUES (1, 0, 'aa')")
		x.Publish(x.Feed)
		rest := x.Page(x.Feed, 0, half.Cursor, 10)
		x.WantIDs(rest, false, 4, 3, 1)
		if data, _ := rest.Entries[2].Row.Get("data"); data != "aa" {
			x.Errorf("row 1 has data %v", data)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 2, 4, 3, 1)
		// Keys have two records in one batch, which also has a new key.
		x.Exec("INSERT INTO events VALUES (5, 0, 'e')", "DELETE FROM events WHERE id IN (2, 5)",
			"INSERT INTO events VALUES (2, 0, 'bb')",
			"INSERT INTO events VALUES (6, 0, 'f')", "DELETE FROM events WHERE id = 2",
			"INSERT INTO events VALUES (5, 0, 'ee')", "INSERT INTO events VALUES (2, 0, 'bbb')")
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, rest.Cursor, 10), false, 6, 5, 2)
		// A record moves a key to another shard.
		x.Exec("DELETE FROM events WHERE id = 6", "INSERT INTO events VALUES (6, -3, 'g')")
		x.WantShard(-3, 6)
		x.WantShard(0, 4, 3, 1, 5, 2)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			x.Errorf("%d records wait", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestReusedGeneratedKeysAreNewEntries (M59): rows are deleted once they are handled, and the database generates the
// same keys again. A reader gets each of the rows.
func TestReusedGeneratedKeysAreNewEntries(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		env.Exec(env.Text("outbox.table_with_generated_key"))
		spec := rowfeed.FeedSpec{
			Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger,
		}
		x := &suite.Events{Env: env, Feed: env.Add(spec)}
		var cursor rowfeed.Cursor
		for range 3 {
			x.Exec("INSERT INTO events (data) VALUES ('job')")
			page := x.Page(x.Feed, 0, cursor, 10)
			x.WantIDs(page, false, 1)
			cursor = page.Cursor
			x.Exec(x.Text("outbox.delete_rows_and_restart_keys"))
		}
		x.WantSound(x.Feed)
	})
}

// TestRowInsertedAfterItsRecordIsDelivered (M59): an application inserts a record, and later the row with
// another record. The first record gets a position, and the second one a higher position. A reader that has passed the
// first position gets the row.
func TestRowInsertedAfterItsRecordIsDelivered(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 5)")
		passed := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(passed, false)
		x.Appended(5, 0, time.Time{})
		x.WantIDs(x.Page(x.Feed, 0, passed.Cursor, 10), false, 5)
		x.WantShard(0, 5)
		x.WantSound(x.Feed)
	})
}

// TestKeyMovesBetweenShardsAtomically (M59): two movers of different shards have records of the same key. The second
// waits for the first, and then moves the entry to its own shard. At every moment the key is in exactly one shard, as
// pages show.
func TestKeyMovesBetweenShardsAtomically(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 2), (1, 3), (1, 2), (1, 1)")
		reader := x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true})
		first, held := heldMover(x)
		head := x.Page(reader, 0, rowfeed.Now, 1).Cursor
		one := asking(x, first, rowfeed.Request{Shards: rowfeed.One(0), After: head})
		<-held.Reached
		x.WantIDs(x.Page(reader, 0, "", 10), false, 1, 2, 3)
		var once sync.Once
		places := make(chan struct{})
		second := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if suite.PlacesRecords(ev) {
				once.Do(func() { close(places) })
			}
			return nil
		}}, nil)
		// The wait bounds the lock of the key, too.
		two := asking(x, second, rowfeed.Request{Shards: rowfeed.One(1), Wait: time.Hour})
		<-places
		x.WantIDs(x.Page(reader, 0, "", 10), false, 1, 2, 3)
		x.WantIDs(x.Page(reader, 1, "", 10), false)
		held.Release()
		// The first mover may read its page after the second has moved the key.
		if page := answered(x, one); len(page.Entries) > 1 {
			t.Errorf("the first mover's page has\n%s", suite.Lines(page))
		}
		x.WantIDs(answered(x, two), false, 3, 2, 1)
		x.WantIDs(x.Page(reader, 0, "", 10), false)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feed_events"); n != 3 {
			t.Errorf("3 keys have %d entries", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestConcurrentMoversShowLastVersions (M57, M59): writers insert rows with the same keys over and over, in either of
// two shards. Readers of both shards move the records. Every reader sees the last version of every row.
func TestConcurrentMoversShowLastVersions(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		const writers, turns, keys, readers = 2, 25, 4, 2
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, data VARCHAR(100))")
		x := &suite.Events{Env: env, Feed: env.Add(suite.OutboxTriggerSpec())}
		for id := range writers * keys { // on InnoDB, a DELETE that finds no row would lock gaps
			x.Exec(fmt.Sprintf("INSERT INTO events VALUES (%d, 0, '')", id))
		}
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		last := make([]map[int64]string, writers)
		for w := range writers {
			pool := x.Writer(testdb.Hooks{})
			last[w] = map[int64]string{}
			writing.Go(func() {
				for turn := range turns {
					id, data := int64(w*keys+turn*turn%keys), fmt.Sprintf("%d.%d", w, turn)
					tx, err := pool.BeginTx(x.Ctx, nil)
					for _, statement := range []string{
						fmt.Sprintf("DELETE FROM events WHERE id = %d", id),
						fmt.Sprintf("INSERT INTO events VALUES (%d, %d, '%s')", id, turn%3%2, data),
					} {
						if err == nil {
							_, err = tx.ExecContext(x.Ctx, statement)
						}
					}
					if err == nil {
						err = tx.Commit()
					}
					if err != nil {
						x.Errorf("writer %d: %v", w, err)
						return
					}
					last[w][id] = data
				}
			})
		}
		seen := make([]map[int64]string, readers)
		for r := range readers {
			seen[r] = map[int64]string{}
			reading.Go(func() {
				var after [2]rowfeed.Cursor
				for ended := false; !ended; {
					ended = done.Load()
					// A record can move a row to a shard that the reader has just read, so it reads both twice.
					for range 2 {
						for shard := range after {
							for more := true; more; {
								page, err := x.TryPage(x.Feed, shard, after[shard], 3)
								if err != nil {
									x.Error(err)
									return
								}
								for _, e := range page.Entries {
									id, _ := e.Key.Get("id")
									data, _ := e.Row.Get("data")
									seen[r][id.(int64)] = data.(string)
								}
								more, after[shard] = page.More || len(page.Entries) > 0, page.Cursor
							}
						}
					}
				}
			})
		}
		writing.Wait()
		done.Store(true)
		reading.Wait()
		for r := range readers {
			for w := range writers {
				for id, data := range last[w] {
					if seen[r][id] != data {
						t.Errorf("reader %d has seen %q of row %d, which is %q", r, seen[r][id], id, data)
					}
				}
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			t.Errorf("%d records wait", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestUnplaceableRecordDelaysNoOther (M59): a record whose key is too long for the table of entries stays in the
// outbox, and errors name it and what to do. All other records are moved, in their order.
func TestUnplaceableRecordDelaysNoOther(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // other databases refuse such a key in the record, too
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id text PRIMARY KEY, data text)")
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events",
			Mode: rowfeed.ModeOutbox})}
		good := func(ids ...string) {
			for _, id := range ids {
				x.Exec("INSERT INTO events VALUES ('"+id+"', 'd')",
					"INSERT INTO rowfeed_outbox_events (id) VALUES ('"+id+"')")
			}
		}
		bad := func() int64 {
			x.Exec(x.Text("outbox.append_unplaceable_record"))
			return x.Scalar("SELECT max(order_sequence) FROM rowfeed_outbox_events")
		}
		named := func(err error, seq int64) {
			x.Helper()
			x.WantCode(err, rowfeed.Failed)
			if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("WHERE order_sequence = %d", seq)) {
				x.Error(err)
			}
		}
		seen := func(after rowfeed.Cursor, want string) rowfeed.Cursor {
			x.Helper()
			page := x.Page(x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true}), 0, after, 100)
			got := ""
			for _, e := range page.Entries {
				id, _ := e.Key.Get("id")
				got += id.(string)
			}
			if got != want {
				x.Errorf("the page has %q, want %q", got, want)
			}
			return page.Cursor
		}
		good("a", "b", "c")
		first := bad()
		good("d", "e")
		other := bad()
		good("f")
		n, err := x.Feed.Publish(x.Ctx)
		if n != 6 {
			x.Fatalf("%d records moved, %v", n, err)
		}
		named(err, first)
		at := seen("", "abcdef")
		if left := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); left != 2 {
			x.Errorf("%d records wait", left)
		}
		// A reader gets all other records, also with Consistent, and waits at the head. Its process reports the record
		// once, and so does a publisher.
		good("g")
		troubles := make(chan error, 100)
		var tries atomic.Int64
		count := func(_ context.Context, ev testdb.TapEvent) error {
			if takesRecords(ev) {
				tries.Add(1)
			}
			return nil
		}
		observer := &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) { troubles <- e.Err }}
		reader, began := x.Other(testdb.Hooks{Before: count}, &rowfeed.Config{Observer: observer}), time.Now()
		page, err := reader.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		if err != nil || len(page.Entries) != 1 || !page.More {
			x.Errorf("the reader's page is %v, %v", page, err)
		}
		for _, consistent := range []bool{false, true} {
			end, err := reader.Fetch(x.Ctx,
				rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Consistent: consistent})
			if err != nil || len(end.Entries) > 0 || end.More || end.Cursor != page.Cursor {
				x.Errorf("the page at the head is %v, %v", end, err)
			}
		}
		named(<-troubles, first)
		before := tries.Load()
		second := rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Wait: time.Second}
		x.WantIDs(answered(x, asking(x, reader, second)), false)
		if n := tries.Load() - before; n > 50 { // pauses double, so about a dozen tries fit in the second
			x.Errorf("the waiting reader has tried %d times", n)
		}
		waiting := asking(x, reader, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Wait: time.Minute})
		x.Exec("INSERT INTO events VALUES ('w', 'd')", "INSERT INTO rowfeed_outbox_events (id) VALUES ('w')")
		page = answered(x, waiting)
		if len(page.Entries) != 1 || 1+len(troubles) > minutes(began) {
			x.Errorf("the reader's page is %v, after %d more reports", page, len(troubles))
		}
		ctx, stop := context.WithCancel(x.Ctx)
		told, ended, began := make(chan error, 100), make(chan error, 1), time.Now()
		observer = &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) { told <- e.Err }}
		f := x.Other(testdb.Hooks{Before: count}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: observer})
		go func() { ended <- f.RunPublisher(ctx) }()
		named(<-told, first)
		good("h", "i")
		x.Eventually("the other records are moved",
			func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 2 })
		before = tries.Load()
		x.Eventually("the publisher tries again", func() bool { return tries.Load() > before+10 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if 1+len(told) > minutes(began) {
			x.Errorf("the publisher has reported again: %v", <-told)
		}
		seen(page.Cursor, "hi")
		x.Exec(fmt.Sprintf("DELETE FROM rowfeed_outbox_events WHERE order_sequence IN (%d, %d)", first, other))
		good("j")
		x.Publish(x.Feed)
		x.WantSound(x.Feed)
	})
}

// TestPurgeKeepsMovedEntries (M59): a record moves a key to another shard while the key's entry is purged. The entry is
// kept in the new shard, whichever transaction reaches the old entry first.
func TestPurgeKeepsMovedEntries(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 4; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 1})
		purges := func(ev testdb.TapEvent) bool {
			return strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "feed_events") &&
				!strings.Contains(ev.SQL, "outbox_events")
		}
		// A purge has chosen its entries, and a mover moves one of them.
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 2)")
		held := testdb.Hold(purges)
		ended := make(chan error, 1)
		purger := x.Other(testdb.Hooks{Before: held.Before}, nil)
		go func() { _, err := purger.Admin().Purge(x.Ctx); ended <- err }()
		<-held.Reached
		x.WantShard(1, 2)
		held.Release()
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		x.WantShard(0, 4)
		x.WantShard(1, 2)
		// A mover holds the key, and a purge waits for it.
		for id := 5; id <= 6; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (2, 5)")
		mover, commits := heldMover(x)
		moves := asking(x, mover, rowfeed.Request{Shards: rowfeed.One(2)})
		<-commits.Reached
		var once sync.Once
		reached := make(chan struct{})
		purger = x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if purges(ev) {
				once.Do(func() { close(reached) })
			}
			return nil
		}}, nil)
		go func() {
			_, err := purger.Admin().Purge(x.Ctx)
			for suite.IsCode(err, rowfeed.Locked) { // the mover may be slow
				_, err = purger.Admin().Purge(x.Ctx)
			}
			ended <- err
		}()
		<-reached
		commits.Release()
		x.WantIDs(answered(x, moves), false, 5)
		if err := <-ended; err != nil {
			x.Fatal(err)
		}
		x.WantShard(0, 6)
		x.WantShard(2, 5)
	})
}

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

// TestOutboxKeyAgain (M59): a record of a key that stands in the feed moves it to the head of the
// record's shard. Whoever has passed the old place gets the row again, whoever has not gets it
// once, where it stands now; of several records that are moved together the last one holds.
func TestOutboxKeyAgain(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		x.Exec("INSERT INTO events VALUES (1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c'), (4, 0, 'd')")
		x.Publish(x.Feed)
		half := x.Page(x.Feed, 0, "", 2)
		x.WantIDs(half, true, 1, 2)
		x.Exec("DELETE FROM events WHERE id IN (1, 3)", "INSERT INTO events VALUES (3, 0, 'cc')", "INSERT INTO events VALUES (1, 0, 'aa')")
		x.Publish(x.Feed)
		rest := x.Page(x.Feed, 0, half.Cursor, 10)
		x.WantIDs(rest, false, 4, 3, 1)
		if data, _ := rest.Entries[2].Row.Get("data"); data != "aa" {
			x.Errorf("row 1 has %v", data)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 2, 4, 3, 1)
		// Twice in one batch, and beside a key that does not come again.
		x.Exec("INSERT INTO events VALUES (5, 0, 'e')", "DELETE FROM events WHERE id IN (2, 5)", "INSERT INTO events VALUES (2, 0, 'bb')",
			"INSERT INTO events VALUES (6, 0, 'f')", "DELETE FROM events WHERE id = 2", "INSERT INTO events VALUES (5, 0, 'ee')", "INSERT INTO events VALUES (2, 0, 'bbb')")
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, rest.Cursor, 10), false, 6, 5, 2)
		// In another shard.
		x.Exec("DELETE FROM events WHERE id = 6", "INSERT INTO events VALUES (6, -3, 'g')")
		x.WantShard(-3, 6)
		x.WantShard(0, 4, 3, 1, 5, 2)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			x.Errorf("%d records are left", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxKeysOfTheDatabase (M59): a table in which rows are deleted when they were handled,
// and whose ids the database itself gives again.
func TestOutboxKeysOfTheDatabase(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		env.Exec(env.By(map[string]string{
			"sqlite":   "CREATE TABLE events (id INTEGER PRIMARY KEY, data TEXT)",
			"postgres": "CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text)",
			"mysql":    "CREATE TABLE events (id bigint AUTO_INCREMENT PRIMARY KEY, data varchar(100))"}))
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger})}
		var cursor rowfeed.Cursor
		for range 3 {
			x.Exec("INSERT INTO events (data) VALUES ('job')")
			page := x.Page(x.Feed, 0, cursor, 10)
			x.WantIDs(page, false, 1)
			cursor = page.Cursor
			x.Exec(x.By(map[string]string{"sqlite": "DELETE FROM events", "postgres": "TRUNCATE events RESTART IDENTITY", "mysql": "TRUNCATE TABLE events"}))
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxRecordFirst (M59): a record that comes without its row takes a place, and the one
// that comes with the row another, ahead of all who have passed that.
func TestOutboxRecordFirst(t *testing.T) {
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

// TestOutboxKeyOfTwoShards (M59): of two movers that have the same key in their hands, each for
// its own shard, the second waits for the first, and then takes the key to its own shard. At no
// moment is the key in both, or in none; pages are read on the way.
func TestOutboxKeyOfTwoShards(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 2), (1, 3), (1, 2), (1, 1)")
		reader := x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true})
		var placed atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		first := still(x, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if suite.PlacesRecords(ev) {
				placed.Store(true)
			}
			return held.Before(ctx, ev)
		}})
		one := asking(x, first, rowfeed.Request{Shards: rowfeed.One(0), After: x.Page(reader, 0, rowfeed.Now, 1).Cursor})
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
		two := asking(x, second, rowfeed.Request{Shards: rowfeed.One(1), Wait: time.Hour}) // that long also for the key
		<-places
		x.WantIDs(x.Page(reader, 0, "", 10), false, 1, 2, 3)
		x.WantIDs(x.Page(reader, 1, "", 10), false)
		held.Release()
		// The first may see what the second has taken away already.
		if page := answered(x, one); len(page.Entries) > 1 {
			t.Errorf("the first mover's page:\n%s", suite.Lines(page))
		}
		x.WantIDs(answered(x, two), false, 3, 2, 1)
		x.WantIDs(x.Page(reader, 0, "", 10), false)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feed_events"); n != 3 {
			t.Errorf("%d places of 3 keys", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxKeysRacing (M57, M59): writers insert rows with the same keys over and over, in any
// of two shards, and readers of both move what they find, whatever locks they meet on. Everyone
// sees the last version of every row.
func TestOutboxKeysRacing(t *testing.T) {
	suite.Each(t, func(env *suite.Env) {
		const writers, turns, keys, readers = 2, 25, 4, 2
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, data VARCHAR(100))")
		x := &suite.Events{Env: env, Feed: env.Add(suite.OutboxTriggerSpec())}
		for id := range writers * keys { // a DELETE that finds none would lock gaps
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
					for _, statement := range []string{fmt.Sprintf("DELETE FROM events WHERE id = %d", id), fmt.Sprintf("INSERT INTO events VALUES (%d, %d, '%s')", id, turn%3%2, data)} {
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
					// A record may take a row from one shard to another behind a reader's back.
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
						t.Errorf("reader %d has %q of row %d, which is %q", r, seen[r][id], id, data)
					}
				}
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			t.Errorf("%d records are left", n)
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxUnplaceable (M59): a record whose key the table of places does not take stays, and is
// named with what to do; all others are moved around it, in their order.
func TestOutboxUnplaceable(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere what a column takes its index takes, too
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id text PRIMARY KEY, data text)")
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		good := func(ids ...string) {
			for _, id := range ids {
				x.Exec("INSERT INTO events VALUES ('"+id+"', 'd')", "INSERT INTO rowfeed_outbox_events (id) VALUES ('"+id+"')")
			}
		}
		bad := func() int64 {
			x.Exec("INSERT INTO rowfeed_outbox_events (id) SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i")
			return x.Scalar("SELECT max(order_sequence) FROM rowfeed_outbox_events")
		}
		named := func(err error, seq int64) {
			x.Helper()
			if x.WantCode(err, rowfeed.Failed); !strings.Contains(fmt.Sprint(err), fmt.Sprintf("WHERE order_sequence = %d", seq)) {
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
				x.Errorf("%q, want %q", got, want)
			}
			return page.Cursor
		}
		good("a", "b", "c")
		first := bad()
		good("d", "e")
		second := bad()
		good("f")
		n, err := x.Feed.Publish(x.Ctx)
		if n != 6 {
			x.Fatalf("%d moved, %v", n, err)
		}
		named(err, first)
		at := seen("", "abcdef")
		if left := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); left != 2 {
			x.Errorf("%d records are left", left)
		}
		// A reader goes on to the end, also with what was committed before, and waits there; its process is told once. So
		// is one that publishes, and another shard of it waits for nobody.
		good("g")
		troubles := make(chan error, 100)
		var looks atomic.Int64
		count := func(_ context.Context, ev testdb.TapEvent) error {
			if takesRecords(ev) {
				looks.Add(1)
			}
			return nil
		}
		reader, began := x.Other(testdb.Hooks{Before: count}, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) { troubles <- e.Err }}}), time.Now()
		page, err := reader.Fetch(x.Ctx, rowfeed.Request{After: at, Shards: rowfeed.One(0)})
		if err != nil || len(page.Entries) != 1 || !page.More {
			x.Errorf("%v, %v", page, err)
		}
		for _, consistent := range []bool{false, true} {
			end, err := reader.Fetch(x.Ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Consistent: consistent})
			if err != nil || len(end.Entries) > 0 || end.More || end.Cursor != page.Cursor {
				x.Errorf("%v, %v", end, err)
			}
		}
		named(<-troubles, first)
		before := looks.Load()
		x.WantIDs(answered(x, asking(x, reader, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Wait: time.Second})), false)
		if n := looks.Load() - before; n > 50 { // pauses double: a dozen fills the second
			x.Errorf("who waits has tried %d times", n)
		}
		waiting := asking(x, reader, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Wait: time.Minute})
		x.Exec("INSERT INTO events VALUES ('w', 'd')", "INSERT INTO rowfeed_outbox_events (id) VALUES ('w')")
		page = answered(x, waiting)
		if len(page.Entries) != 1 || 1+len(troubles) > minutes(began) {
			x.Errorf("%v, and told %d more", page, len(troubles))
		}
		ctx, stop := context.WithCancel(x.Ctx)
		told, ended, began := make(chan error, 100), make(chan error, 1), time.Now()
		f := x.Other(testdb.Hooks{Before: count}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) { told <- e.Err }}})
		go func() { ended <- f.RunPublisher(ctx) }()
		named(<-told, first)
		good("h", "i")
		x.Eventually("they are moved", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 2 })
		before = looks.Load()
		x.Eventually("it tries again", func() bool { return looks.Load() > before+10 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if 1+len(told) > minutes(began) {
			x.Errorf("told again: %v", <-told)
		}
		seen(page.Cursor, "hi")
		x.Exec(fmt.Sprintf("DELETE FROM rowfeed_outbox_events WHERE order_sequence IN (%d, %d)", first, second))
		good("j")
		x.Publish(x.Feed)
		x.WantSound(x.Feed)
	})
}

// TestOutboxKeyPurged (M59): a key that is taken to another shard while its own is purged keeps its
// new place, whoever comes to the old one first.
func TestOutboxKeyPurged(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 4; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 1})
		purges := func(ev testdb.TapEvent) bool {
			return strings.HasPrefix(ev.SQL, "DELETE") && strings.Contains(ev.SQL, "feed_events") && !strings.Contains(ev.SQL, "outbox_events")
		}
		// The purger knows what it deletes, and a mover takes a key away.
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
		// A mover has the key in its hands, and the purger waits for it.
		for id := 5; id <= 6; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (2, 5)")
		var placed atomic.Bool
		commits := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		mover := still(x, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if suite.PlacesRecords(ev) {
				placed.Store(true)
			}
			return commits.Before(ctx, ev)
		}})
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
			for suite.IsCode(err, rowfeed.Locked) { // the mover takes its time
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

package ulid

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestULIDWait (M69): who waits for an entry of a shard is woken by a commit there, and by none
// of another shard, be it the shard's first one or not (M69).
func TestULIDWait(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		var looked, pages atomic.Int64
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				looked.Add(1)
			}
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
				pages.Add(1)
			}
			return nil
		}}, &rowfeed.Config{WatchPoll: time.Millisecond})
		f, err := rf.Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		after := rowfeed.Beginning
		for id := 1; id <= 5; id += 2 {
			answered := make(chan rowfeed.Page, 1)
			go func() {
				page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(7), Wait: time.Minute})
				if err != nil {
					x.Error(err)
				}
				answered <- page
			}()
			x.Eventually("it waits", func() bool { return x.Parked("watch.(*Watcher).Wait(") == 1 })
			x.Write(8, id, id)
			before, read := looked.Load(), pages.Load()
			x.Eventually("it waits on", func() bool { return looked.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read in vain", n)
			}
			x.Write(7, id+1, id+1)
			page := <-answered
			x.WantIDs(page, false, id+1)
			after = page.Cursor
		}
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			t.Fatal(err)
		}
		_, err = x.Feed.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(7), Wait: time.Minute})
		x.WantCode(err, rowfeed.UnknownFeed)
	})
}

// TestULIDPageInTwo (H1): where a page is two statements, what is committed between them is not on
// it, however much of it the second one could see; who waits is woken by it (hazard 1, M69).
func TestULIDPageInTwo(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere a page is one statement
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f, err := x.TappedDB(testdb.Hooks{Before: held.Before}, &rowfeed.Config{WatchPoll: time.Millisecond}).Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		pages := make(chan rowfeed.Page, 1)
		fetch := func(after rowfeed.Cursor, wait time.Duration) {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(1), Wait: wait})
			if err != nil {
				x.Error(err)
			}
			pages <- page
		}
		go fetch("", 0)
		<-held.Reached
		x.Write(1, 2, 2)
		held.Release()
		page := <-pages
		x.WantIDs(page, false, 1)
		go fetch(page.Cursor, 0)
		page = <-pages
		x.WantIDs(page, false, 2)

		// The page that begins a wait.
		again := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f, err = x.TappedDB(testdb.Hooks{Before: again.Before}, &rowfeed.Config{WatchPoll: time.Millisecond}).Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		go fetch(page.Cursor, time.Hour)
		<-again.Reached
		x.Write(1, 3, 3)
		again.Release()
		select {
		case page := <-pages:
			x.WantIDs(page, false, 3)
		case <-time.After(suite.Patience()):
			t.Fatal("who waits at the head was not told of an entry that came while its first page was read")
		}
	})
}

// TestULIDConsumer (M47): a consumer's cursor is a ULID, stored with the effects; a page that
// fails takes no effect, one key that fails is set aside, and its release hands over the
// same entry (M47).
func TestULIDConsumer(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE applied (id BIGINT NOT NULL PRIMARY KEY)")
		x.Write(3, 1, 5)
		bad := int64(4)
		var failing atomic.Bool
		c := &rowfeed.Consumer{Name: "test", Source: x.Feed, DB: x.RF,
			Options: rowfeed.ConsumerOptions{
				Limit: 2, Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond},
			},
			OnFailure: rowfeed.SetAside,
			Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					id, _ := e.Key.Get("id")
					if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO applied VALUES (%d)", id)); err != nil {
						return err
					}
					if id == bad && failing.Load() {
						return errors.New("not this one")
					}
				}
				return nil
			}}
		failing.Store(true)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.List("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, []string{"1", "2", "3", "5"}) {
			t.Fatalf("applied %v", got)
		}
		head := x.Page(x.Feed, 3, "", 10)
		if got := x.StoredCursor(); got != string(head.Cursor) {
			t.Errorf("the cursor is %q, the feed's %q", got, head.Cursor)
		}
		failing.Store(false)
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx, rowfeed.ConsumerID{Consumer: "test"}, nil); err != nil {
			t.Fatal(err)
		}
		x.Write(3, 6, 6)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.List("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, []string{"1", "2", "3", "4", "5", "6"}) {
			t.Fatalf("applied %v", got)
		}
		if all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{}); err != nil || len(all) != 1 || all[0].Behind != nil || all[0].BehindSeconds == nil || *all[0].BehindSeconds != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		// A second shard has a cursor of its own.
		x.Write(9, 7, 7)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		x.WantCursors("test", "3/1 "+string(x.Page(x.Feed, 3, "", 10).Cursor), "9/1 "+string(x.Page(x.Feed, 9, "", 10).Cursor))
	})
}

// TestULIDOverHTTP (M30): pages of a shard are the same over HTTP, negative ones too.
func TestULIDOverHTTP(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(-5, 1, 3)
		x.Write(77, 4, 4)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(x.RF), nil))
		x.Cleanup(server.Close)
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		for _, shard := range []int{-5, 77, 0} {
			for after, more := rowfeed.Beginning, true; more; {
				page, want := x.Page(client, shard, after, 2), x.Page(x.Feed, shard, after, 2)
				if suite.Lines(page) != suite.Lines(want) || page.Cursor != want.Cursor || page.More != want.More {
					t.Fatalf("over HTTP:\n%s\n%+v\nwant:\n%s\n%+v", suite.Lines(page), page, suite.Lines(want), want)
				}
				after, more = page.Cursor, page.More
			}
		}
		_, err := client.Fetch(x.Ctx, rowfeed.Request{})
		if x.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "-5, 77") {
			t.Error(err)
		}
		info, err := client.Info(x.Ctx)
		if err != nil || !slices.Equal(info.ShardIDs, []int{-5, 77}) {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

// TestULIDRacing (M31, M34, M46, H1): while writers commit to a few shards, with transactions of several rows,
// rollbacks and two Locks, every reader sees each shard's rows once and in order, and at the
// end all that were committed (M31, M34, M46, hazard 1).
func TestULIDRacing(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		const writers, turns, shards, readers = 6, 40, 2, 3
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		committed := make([][]string, writers)
		for w := range writers {
			pool := x.Writer(testdb.Hooks{})
			writing.Go(func() {
				for turn := range turns {
					shard := (w + turn) % shards
					err := raced(x, pool, w, turn, shard, &committed[w])
					if err != nil {
						x.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		seen := make([][]string, readers)
		for r := range readers {
			reading.Go(func() {
				var after [shards]rowfeed.Cursor
				for last := false; !last; {
					last = done.Load() // before the pages: what they show then is all
					for shard := range shards {
						for more := true; more; {
							page, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: after[shard], Shards: rowfeed.One(shard), Limit: 7})
							if err != nil {
								x.Error(err)
								return
							}
							for _, e := range page.Entries {
								if p := rowfeed.Cursor(e.Position); len(after[shard]) >= 26 && p <= after[shard][:26] {
									x.Errorf("shard %d: %s after %s", shard, p, after[shard])
								}
								id, _ := e.Key.Get("id")
								seen[r] = append(seen[r], fmt.Sprint(id))
							}
							after[shard], more = page.Cursor, page.More
						}
					}
				}
			})
		}
		writing.Wait()
		done.Store(true)
		reading.Wait()
		want := slices.Concat(committed...)
		slices.Sort(want)
		for r := range seen {
			slices.Sort(seen[r])
			if !slices.Equal(seen[r], want) {
				t.Errorf("reader %d has seen %d rows, %d were committed", r, len(seen[r]), len(want))
			}
		}
		x.WantSound(x.Feed)
	})
}

// racer locks a shard, and answers how a writer inserts the row with the i-th ULID.
func racer(x *suite.Events, tx *sql.Tx, w, shard int) (insert func(id, i int) error, err error) {
	var hint time.Time
	if w%2 == 1 {
		hint = time.UnixMilli(1)
	}
	if w == 5 && x.Family() != "sqlite" {
		_, err := lockInTime(x, tx, shard, timestamp(x.Env, hint))
		return func(id, i int) error {
			_, err := tx.ExecContext(x.Ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) VALUES (%d, %d, %s, '')", id, shard, x.BySQL(fmt.Sprint(i))))
			return err
		}, err
	}
	u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: hint, Wait: time.Hour})
	return func(id, i int) error {
		at, err := u.At(shard, int64(i))
		if err == nil {
			err = x.TryEvent(x.Ctx, tx, id, shard, at, "")
		}
		return err
	}, err
}

// raced is one turn of a writer of TestULIDRacing. Half of them have a hint of long ago, with which
// nothing but the state keeps ULIDs in order; the last one has no library.
func raced(x *suite.Events, pool *sql.DB, w, turn, shard int, committed *[]string) error {
	tx, err := pool.BeginTx(x.Ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var ids []string
	for part := range 1 + turn%2 {
		insert, err := racer(x, tx, w, shard)
		if err != nil {
			return err
		}
		for i := range 1 + w%3 {
			id := w*1_000_000 + turn*100 + part*10 + i
			if err := insert(id, i); err != nil {
				return err
			}
			ids = append(ids, fmt.Sprint(id))
		}
	}
	if turn%5 == 4 {
		return tx.Rollback()
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	*committed = append(*committed, ids...)
	return nil
}

// TestULIDAdd (M28, M43, M62, M63): what cannot hold ULIDs is refused with the next step; a table that has rows
// goes on above them; asked twice nothing changes; dropped, nothing is left (M28, M43, M63).
func TestULIDAdd(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		spec := suite.EventsSpec()
		refused := func(code rowfeed.Code, words string, change func(s *rowfeed.FeedSpec)) {
			x.Helper()
			s := spec
			change(&s)
			_, err := x.RF.AddFeed(x.Ctx, s, nil)
			if x.WantCode(err, code); !strings.Contains(err.Error(), words) {
				x.Errorf("%v, want %q in it", err, words)
			}
		}
		before := x.DB.Dump(x.T)
		x.Exec(x.EventsTable("events"))
		same := func(*rowfeed.FeedSpec) {}
		refused(rowfeed.Refused, "no unique index", same)
		x.Exec("CREATE UNIQUE INDEX wrong ON events (ulid, shard)")
		refused(rowfeed.Refused, "no unique index", same)
		x.Exec("CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		refused(rowfeed.Refused, `no column "nothing"`, func(s *rowfeed.FeedSpec) { s.PositionColumn = "nothing" })
		refused(rowfeed.Refused, `no column "nothing"`, func(s *rowfeed.FeedSpec) { s.ShardColumn = "nothing" })
		refused(rowfeed.Refused, "data", func(s *rowfeed.FeedSpec) { s.PositionColumn = "data" })
		refused(rowfeed.Refused, "data", func(s *rowfeed.FeedSpec) { s.ShardColumn = "data" })
		refused(rowfeed.Refused, `"id" is `, func(s *rowfeed.FeedSpec) { s.PositionColumn = "id" })
		refused(rowfeed.InvalidRequest, "position-column", func(s *rowfeed.FeedSpec) { s.PositionColumn = "" })
		refused(rowfeed.InvalidRequest, "shard-column", func(s *rowfeed.FeedSpec) { s.ShardColumn = "" })
		refused(rowfeed.InvalidRequest, "data-shards", func(s *rowfeed.FeedSpec) { s.DataShards = 2 })
		refused(rowfeed.InvalidRequest, "capture", func(s *rowfeed.FeedSpec) { s.Capture = "trigger" })
		refused(rowfeed.InvalidRequest, "position-column", func(s *rowfeed.FeedSpec) { s.Mode = rowfeed.ModeSequence; s.ShardColumn = "id" })

		literal := func(hex string) string {
			return x.By(map[string]string{"sqlite": "x'" + hex + "'", "postgres": "'" + hex + "'", "mysql": "x'" + hex + "'"})
		}
		x.Exec("INSERT INTO events VALUES (1, 4, " + literal("f00000000000ffffffffffffffffffff") + ", 'far ahead'), (2, 4, " + literal("01857302da88ffff3fffffffffffffff") + ", ''), (3, 5, " + literal("01857302da88ffff3fffffffffffffff") + ", '')")
		refused(rowfeed.Refused, "shard 4 has a row with ULID 7G00000000ZZZZZZZZZZZZZZZZ (bytes f00000000000ffffffffffffffffffff)", same)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("%d feeds are left of what was refused", n)
		}
		soon := fmt.Sprintf("%012xffffffffffffffffffff", x.Now().Add(30*time.Second).UnixMilli())
		x.Exec("UPDATE events SET ulid = " + literal(soon) + " WHERE id = 1")
		f := x.Add(spec)
		e := &suite.Events{Env: x, Feed: f}
		tx := x.Begin(sql.LevelReadCommitted)
		u := e.Lock(tx, rowfeed.LockRequest{Shards: []int{4, 5}, Hint: time.UnixMilli(1)})
		e.Event(tx, 10, 4, e.At(u, 4, 0), "")
		e.Event(tx, 11, 5, e.At(u, 5, 0), "")
		x.Commit(tx)
		e.WantIDs(e.Page(f, 4, "", 10), false, 2, 1, 10)
		e.WantIDs(e.Page(f, 5, "", 10), false, 3, 11)
		x.WantSound(f)
		if again := x.Add(spec); again != f {
			x.Error("added again it is another feed")
		}
		refused(rowfeed.Conflict, "columns is", func(s *rowfeed.FeedSpec) { s.Columns = []string{"id"} })
		refused(rowfeed.Conflict, "hold the positions", func(s *rowfeed.FeedSpec) { s.Name = "other" })
		for _, err := range []error{
			f.Republish(x.Ctx, rowfeed.InTx(x.Begin(sql.LevelReadCommitted)), rowfeed.Key{1}),
			func() error { _, err := f.Admin().Repair(x.Ctx); return err }(),
			func() error { _, err := f.Admin().Reshard(x.Ctx, 2, nil); return err }(),
		} {
			if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
		}
		if n := x.Publish(f); n != 0 {
			x.Errorf("%d keys published", n)
		}
		if _, err := f.Admin().Status(x.Ctx); err != nil {
			x.Error(err)
		}
		// Without its index pages are refused, and Verify says why.
		x.Exec(x.By(map[string]string{"sqlite": "DROP INDEX events_feed", "postgres": "DROP INDEX events_feed", "mysql": "DROP INDEX events_feed ON events"}))
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 1 || !strings.Contains(problems[0], "no unique index") {
			x.Errorf("%v, %v", problems, err)
		}
		for range 2 {
			if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
				x.Fatal(err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
		x.Exec("DROP TABLE events")
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("the schema was\n%s\nand is\n%s", before, after)
		}
		if err := x.RF.MigrateDown(x.Ctx); err != nil {
			x.Fatal(err)
		}
	})
}

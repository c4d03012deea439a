package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestULIDWait (M69): who waits for an entry of a shard is woken by a commit there, and by none
// of another shard, be it the shard's first one or not (M69).
func TestULIDWait(t *testing.T) {
	eachULID(t, func(x *events) {
		var looked, pages atomic.Int64
		rf := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if looks(ev) {
				looked.Add(1)
			}
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
				pages.Add(1)
			}
			return nil
		}}, &rowfeed.Config{WatchPoll: time.Millisecond})
		f, err := rf.Feed(x.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		after := rowfeed.Beginning
		for id := 1; id <= 5; id += 2 {
			answered := make(chan rowfeed.Page, 1)
			go func() {
				page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Shards: rowfeed.One(7), Wait: time.Minute})
				if err != nil {
					x.Error(err)
				}
				answered <- page
			}()
			x.eventually("it waits", func() bool { return x.parked("watch.(*Watcher).Wait(") == 1 })
			x.write(8, id, id)
			before, read := looked.Load(), pages.Load()
			x.eventually("it waits on", func() bool { return looked.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read in vain", n)
			}
			x.write(7, id+1, id+1)
			page := <-answered
			x.wantIDs(page, false, id+1)
			after = page.Cursor
		}
		if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
			t.Fatal(err)
		}
		_, err = x.feed.Fetch(x.ctx, rowfeed.Request{After: after, Shards: rowfeed.One(7), Wait: time.Minute})
		x.wantCode(err, rowfeed.UnknownFeed)
	})
}

// TestULIDPageInTwo (H1): where a page is two statements, what is committed between them is not on
// it, however much of it the second one could see; who waits is woken by it (hazard 1, M69).
func TestULIDPageInTwo(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere a page is one statement
	eachULID(t, func(x *events) {
		x.write(1, 1, 1)
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f, err := x.tappedDB(testdb.Hooks{Before: held.Before}, &rowfeed.Config{WatchPoll: time.Millisecond}).Feed(x.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		pages := make(chan rowfeed.Page, 1)
		fetch := func(after rowfeed.Cursor, wait time.Duration) {
			page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Shards: rowfeed.One(1), Wait: wait})
			if err != nil {
				x.Error(err)
			}
			pages <- page
		}
		go fetch("", 0)
		<-held.Reached
		x.write(1, 2, 2)
		held.Release()
		page := <-pages
		x.wantIDs(page, false, 1)
		go fetch(page.Cursor, 0)
		page = <-pages
		x.wantIDs(page, false, 2)

		// The page that begins a wait.
		again := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f, err = x.tappedDB(testdb.Hooks{Before: again.Before}, &rowfeed.Config{WatchPoll: time.Millisecond}).Feed(x.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		go fetch(page.Cursor, time.Hour)
		<-again.Reached
		x.write(1, 3, 3)
		again.Release()
		select {
		case page := <-pages:
			x.wantIDs(page, false, 3)
		case <-time.After(patience()):
			t.Fatal("who waits at the head was not told of an entry that came while its first page was read")
		}
	})
}

// TestULIDConsumer (M47): a consumer's cursor is a ULID, stored with the effects; a page that
// fails takes no effect, one key that fails is set aside, and its release hands over the
// same entry (M47).
func TestULIDConsumer(t *testing.T) {
	testdb.Quick(t)
	eachULID(t, func(x *events) {
		x.exec("CREATE TABLE applied (id BIGINT NOT NULL PRIMARY KEY)")
		x.write(3, 1, 5)
		bad := int64(4)
		var failing atomic.Bool
		c := &rowfeed.Consumer{Name: "test", Source: x.feed, DB: x.rf, Limit: 2, OnFailure: rowfeed.SetAside, Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond},
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
		if err := c.RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.list("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, []string{"1", "2", "3", "5"}) {
			t.Fatalf("applied %v", got)
		}
		head := x.page(x.feed, 3, "", 10)
		if got := x.storedCursor(); got != string(head.Cursor) {
			t.Errorf("the cursor is %q, the feed's %q", got, head.Cursor)
		}
		failing.Store(false)
		if _, err := x.rf.Admin().RetryDeadLetters(x.ctx, rowfeed.ConsumerID{Consumer: "test"}, nil); err != nil {
			t.Fatal(err)
		}
		x.write(3, 6, 6)
		if err := c.RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.list("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, []string{"1", "2", "3", "4", "5", "6"}) {
			t.Fatalf("applied %v", got)
		}
		if all, err := x.rf.Admin().Consumers(x.ctx, rowfeed.ConsumerID{}); err != nil || len(all) != 1 || all[0].Behind != nil || all[0].BehindSeconds == nil || *all[0].BehindSeconds != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		// A second shard has a cursor of its own.
		x.write(9, 7, 7)
		if err := c.RunOnce(x.ctx); err != nil {
			t.Fatal(err)
		}
		x.wantCursors("test", "3/1 "+string(x.page(x.feed, 3, "", 10).Cursor), "9/1 "+string(x.page(x.feed, 9, "", 10).Cursor))
	})
}

// TestULIDOverHTTP (M30): pages of a shard are the same over HTTP, negative ones too.
func TestULIDOverHTTP(t *testing.T) {
	eachULID(t, func(x *events) {
		x.write(-5, 1, 3)
		x.write(77, 4, 4)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(x.rf), nil))
		x.Cleanup(server.Close)
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		for _, shard := range []int{-5, 77, 0} {
			for after, more := rowfeed.Beginning, true; more; {
				page, want := x.page(client, shard, after, 2), x.page(x.feed, shard, after, 2)
				if lines(page) != lines(want) || page.Cursor != want.Cursor || page.More != want.More {
					t.Fatalf("over HTTP:\n%s\n%+v\nwant:\n%s\n%+v", lines(page), page, lines(want), want)
				}
				after, more = page.Cursor, page.More
			}
		}
		_, err := client.Fetch(x.ctx, rowfeed.Request{})
		if x.wantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "-5, 77") {
			t.Error(err)
		}
		info, err := client.Info(x.ctx)
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
	eachULID(t, func(x *events) {
		const writers, turns, shards, readers = 6, 40, 2, 3
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		committed := make([][]string, writers)
		for w := range writers {
			pool := x.writer(testdb.Hooks{})
			writing.Go(func() {
				for turn := range turns {
					shard := (w + turn) % shards
					err := x.raced(pool, w, turn, shard, &committed[w])
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
							page, err := x.feed.Fetch(x.ctx, rowfeed.Request{After: after[shard], Shards: rowfeed.One(shard), Limit: 7})
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
		x.wantSound(x.feed)
	})
}

// racer locks a shard, and answers how a writer inserts the row with the i-th ULID.
func (x *events) racer(tx *sql.Tx, w, shard int) (insert func(id, i int) error, err error) {
	var hint time.Time
	if w%2 == 1 {
		hint = time.UnixMilli(1)
	}
	if w == 5 && x.family() != "sqlite" {
		_, err := x.lockInTime(tx, shard, x.timestamp(hint))
		return func(id, i int) error {
			_, err := tx.ExecContext(x.ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid, data) VALUES (%d, %d, %s, '')", id, shard, x.bySQL(fmt.Sprint(i))))
			return err
		}, err
	}
	u, err := x.feed.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: hint, Wait: time.Hour})
	return func(id, i int) error {
		at, err := u.At(shard, int64(i))
		if err == nil {
			err = x.tryEvent(x.ctx, tx, id, shard, at, "")
		}
		return err
	}, err
}

// raced is one turn of a writer of TestULIDRacing. Half of them have a hint of long ago, with which
// nothing but the state keeps ULIDs in order; the last one has no library.
func (x *events) raced(pool *sql.DB, w, turn, shard int, committed *[]string) error {
	tx, err := pool.BeginTx(x.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var ids []string
	for part := range 1 + turn%2 {
		insert, err := x.racer(tx, w, shard)
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
	each(t, func(x *env) {
		spec := eventsSpec()
		refused := func(code rowfeed.Code, words string, change func(s *rowfeed.FeedSpec)) {
			x.Helper()
			s := spec
			change(&s)
			_, err := x.rf.AddFeed(x.ctx, s, nil)
			if x.wantCode(err, code); !strings.Contains(err.Error(), words) {
				x.Errorf("%v, want %q in it", err, words)
			}
		}
		before := x.db.Dump(x.T)
		x.exec(x.eventsTable("events"))
		same := func(*rowfeed.FeedSpec) {}
		refused(rowfeed.Refused, "no unique index", same)
		x.exec("CREATE UNIQUE INDEX wrong ON events (ulid, shard)")
		refused(rowfeed.Refused, "no unique index", same)
		x.exec("CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
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
			return x.by(map[string]string{"sqlite": "x'" + hex + "'", "postgres": "'" + hex + "'", "mysql": "x'" + hex + "'"})
		}
		x.exec("INSERT INTO events VALUES (1, 4, " + literal("f00000000000ffffffffffffffffffff") + ", 'far ahead'), (2, 4, " + literal("01857302da88ffff3fffffffffffffff") + ", ''), (3, 5, " + literal("01857302da88ffff3fffffffffffffff") + ", '')")
		refused(rowfeed.Refused, "shard 4 has a row with ULID 7G00000000ZZZZZZZZZZZZZZZZ (bytes f00000000000ffffffffffffffffffff)", same)
		if n := x.scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("%d feeds are left of what was refused", n)
		}
		soon := fmt.Sprintf("%012xffffffffffffffffffff", x.now().Add(30*time.Second).UnixMilli())
		x.exec("UPDATE events SET ulid = " + literal(soon) + " WHERE id = 1")
		f := x.add(spec)
		e := &events{x, f}
		tx := x.begin(sql.LevelReadCommitted)
		u := e.lock(tx, rowfeed.LockRequest{Shards: []int{4, 5}, Hint: time.UnixMilli(1)})
		e.event(tx, 10, 4, e.at(u, 4, 0), "")
		e.event(tx, 11, 5, e.at(u, 5, 0), "")
		x.commit(tx)
		e.wantIDs(e.page(f, 4, "", 10), false, 2, 1, 10)
		e.wantIDs(e.page(f, 5, "", 10), false, 3, 11)
		x.wantSound(f)
		if again := x.add(spec); again != f {
			x.Error("added again it is another feed")
		}
		refused(rowfeed.Conflict, "columns is", func(s *rowfeed.FeedSpec) { s.Columns = []string{"id"} })
		refused(rowfeed.Conflict, "hold the positions", func(s *rowfeed.FeedSpec) { s.Name = "other" })
		for _, err := range []error{
			f.Republish(x.ctx, rowfeed.InTx(x.begin(sql.LevelReadCommitted)), rowfeed.Key{1}),
			func() error { _, err := f.Admin().Repair(x.ctx); return err }(),
			func() error { _, err := f.Admin().Reshard(x.ctx, 2, nil); return err }(),
		} {
			if x.wantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
		}
		if n := x.publish(f); n != 0 {
			x.Errorf("%d keys published", n)
		}
		if _, err := f.Admin().Status(x.ctx); err != nil {
			x.Error(err)
		}
		// Without its index pages are refused, and Verify says why.
		x.exec(x.by(map[string]string{"sqlite": "DROP INDEX events_feed", "postgres": "DROP INDEX events_feed", "mysql": "DROP INDEX events_feed ON events"}))
		if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) != 1 || !strings.Contains(problems[0], "no unique index") {
			x.Errorf("%v, %v", problems, err)
		}
		for range 2 {
			if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
				x.Fatal(err)
			}
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d states are left", n)
		}
		x.exec("DROP TABLE events")
		if after := x.db.Dump(x.T); after != before {
			x.Errorf("the schema was\n%s\nand is\n%s", before, after)
		}
		if err := x.rf.MigrateDown(x.ctx); err != nil {
			x.Fatal(err)
		}
	})
}

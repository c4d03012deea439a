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

// TestCommitWakesReadersOfItsShardOnly (M69): a reader waits for an entry of a shard. A commit in another shard does
// not make it read a page. A commit in its shard ends the wait, for the first row of the shard and for later ones. A
// wait on a dropped feed fails.
func TestCommitWakesReadersOfItsShardOnly(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		var polls, pages atomic.Int64
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				polls.Add(1)
			}
			if readsPage(ev) {
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
			x.Eventually("the reader waits", func() bool { return x.Parked("watch.(*Watcher).Wait(") == 1 })
			x.Write(8, id, id)
			before, read := polls.Load(), pages.Load()
			x.Eventually("the watcher polls", func() bool { return polls.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read after a commit in another shard", n)
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

// readsPage reports whether a statement is the first one of a page.
func readsPage(ev testdb.TapEvent) bool {
	return suite.ReadsULIDPage(ev)
}

// TestPageOfTwoStatementsIsConsistent (H1): on MariaDB and MySQL a page is read by two statements, and a row is
// committed between them. The row is not on the page, but on the next one. A reader that waits is woken by such a
// commit.
func TestPageOfTwoStatementsIsConsistent(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // on others a page is one statement
	suite.EachULID(t, func(x *suite.Events) {
		config := &rowfeed.Config{WatchPoll: time.Millisecond}
		x.Write(1, 1, 1)
		held := testdb.Hold(readsPage)
		f, err := x.TappedDB(testdb.Hooks{Before: held.Before}, config).Feed(x.Ctx, "events")
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

		// The same at the beginning of a wait.
		again := testdb.Hold(readsPage)
		f, err = x.TappedDB(testdb.Hooks{Before: again.Before}, config).Feed(x.Ctx, "events")
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
			t.Fatal("a reader that waits got no entry that was committed while its first page was read")
		}
	})
}

// TestConsumerStoresULIDs (M47): a consumer's cursor of a shard is a ULID that is stored with the effects. An entry
// whose handler fails becomes a dead letter, and the page that failed has no effects. After a retry of the dead letter,
// the entry is handled.
func TestConsumerStoresULIDs(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE applied (id BIGINT NOT NULL PRIMARY KEY)")
		x.Write(3, 1, 5)
		bad := int64(4)
		var failing atomic.Bool
		handle := func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				id, _ := e.Key.Get("id")
				if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO applied VALUES (%d)", id)); err != nil {
					return err
				}
				if id == bad && failing.Load() {
					return errors.New("the handler refuses this entry")
				}
			}
			return nil
		}
		c := &rowfeed.Consumer{
			Name: "test", Source: x.Feed, DB: x.RF, OnFailure: rowfeed.SetAside, Handle: handle,
			Options: rowfeed.ConsumerOptions{
				Limit: 2, Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond},
			},
		}
		failing.Store(true)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		const applied = "SELECT id FROM applied ORDER BY id"
		if got := x.List(applied); !slices.Equal(got, []string{"1", "2", "3", "5"}) {
			t.Fatalf("applied %v, want all rows but 4", got)
		}
		head := x.Page(x.Feed, 3, "", 10)
		if got := x.StoredCursor(); got != string(head.Cursor) {
			t.Errorf("the consumer's cursor is %q, and the shard's %q", got, head.Cursor)
		}
		failing.Store(false)
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
			suite.Letters(rowfeed.ConsumerID{Consumer: "test"}, ""), nil); err != nil {
			t.Fatal(err)
		}
		x.Write(3, 6, 6)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.List(applied); !slices.Equal(got, []string{"1", "2", "3", "4", "5", "6"}) {
			t.Fatalf("applied %v, want all rows", got)
		}
		all, err := x.RF.Admin().Consumers(x.Ctx, rowfeed.ConsumerID{})
		if err != nil || len(all) != 1 ||
			all[0].Behind != nil || all[0].BehindSeconds == nil || *all[0].BehindSeconds != 0 {
			t.Errorf("consumers: %+v, %v", all, err)
		}
		// A second shard has a cursor of its own.
		x.Write(9, 7, 7)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		x.WantCursors("test",
			"3/1 "+string(x.Page(x.Feed, 3, "", 10).Cursor), "9/1 "+string(x.Page(x.Feed, 9, "", 10).Cursor))
	})
}

// TestPagesAreSameOverHTTP (M30): pages of a shard are the same over HTTP, also those of a negative shard.
func TestPagesAreSameOverHTTP(t *testing.T) {
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
					t.Fatalf("the page over HTTP is\n%s\n%+v\nwant\n%s\n%+v",
						suite.Lines(page), page, suite.Lines(want), want)
				}
				after, more = page.Cursor, page.More
			}
		}
		_, err := client.Fetch(x.Ctx, rowfeed.Request{})
		if x.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "-5, 77") {
			t.Errorf("error %v, want one that names the shards", err)
		}
		info, err := client.Info(x.Ctx)
		if err != nil || !slices.Equal(info.ShardIDs, []int{-5, 77}) {
			t.Errorf("info: %+v, %v", info, err)
		}
	})
}

// TestRacingWritersAreReadOnceInOrder (M31, M34, M46, H1): writers commit to two shards with several rows, rollbacks
// and two locks in a transaction. Meanwhile every reader gets each shard's rows once and in order, and in the end all
// that were committed.
func TestRacingWritersAreReadOnceInOrder(t *testing.T) {
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
					if err := raced(x, pool, w, turn, shard, &committed[w]); err != nil {
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
					last = done.Load() // pages that are read after this show all rows
					for shard := range shards {
						for more := true; more; {
							request := rowfeed.Request{After: after[shard], Shards: rowfeed.One(shard), Limit: 7}
							page, err := x.Feed.Fetch(x.Ctx, request)
							if err != nil {
								x.Error(err)
								return
							}
							for _, e := range page.Entries {
								p := rowfeed.Cursor(e.Position)
								if len(after[shard]) >= 26 && p <= after[shard][:26] {
									x.Errorf("shard %d: position %s after %s", shard, p, after[shard])
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
				t.Errorf("reader %d got %d rows, and %d were committed", r, len(seen[r]), len(want))
			}
		}
		x.WantSound(x.Feed)
	})
}

// racer locks a shard. insert inserts a row with the i-th ULID.
func racer(x *suite.Events, tx *sql.Tx, w, shard int) (insert func(id, i int) error, err error) {
	var hint time.Time
	if w%2 == 1 {
		hint = time.UnixMilli(1)
	}
	if w == 5 && x.Has.Functions {
		_, err := lockPatiently(x, tx, shard, hintSQL(x.Env, hint))
		return func(id, i int) error { return insertBySQL(x, tx, id, shard, int64(i)) }, err
	}
	request := rowfeed.LockRequest{Shards: []int{shard}, Hint: hint, Wait: time.Hour}
	u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
	return func(id, i int) error {
		at, err := u.At(shard, int64(i))
		if err == nil {
			err = x.TryEvent(x.Ctx, tx, id, shard, at, "")
		}
		return err
	}, err
}

// raced is one transaction of a writer of TestRacingWritersAreReadOnceInOrder. Half of the writers have a hint of long
// ago, so that only the state keeps ULIDs in order. The last writer uses the functions, if there are any.
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

// TestAddFeedRefusesUnfitTables (M28, M43, M62, M63): AddFeed refuses tables that cannot hold ULIDs, and says what to
// do. It accepts a table with rows, and locks continue above them. A second AddFeed changes nothing, operations of
// other modes are refused, and DropFeed leaves nothing.
func TestAddFeedRefusesUnfitTables(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		spec := suite.EventsSpec()
		refused := func(code rowfeed.Code, words string, change func(s *rowfeed.FeedSpec)) {
			x.Helper()
			s := spec
			change(&s)
			_, err := x.RF.AddFeed(x.Ctx, s, nil)
			if x.WantCode(err, code); !strings.Contains(err.Error(), words) {
				x.Errorf("error %v, want %q in it", err, words)
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
		refused(rowfeed.InvalidRequest, "position-column", func(s *rowfeed.FeedSpec) {
			s.Mode, s.ShardColumn = rowfeed.ModeSequence, "id"
		})

		const farAhead, past = "f00000000000ffffffffffffffffffff", "01857302da88ffff3fffffffffffffff"
		x.Exec("INSERT INTO events VALUES (1, 4, " + x.ULIDLiteral(farAhead) + ", ''), " +
			"(2, 4, " + x.ULIDLiteral(past) + ", ''), (3, 5, " + x.ULIDLiteral(past) + ", '')")
		refused(rowfeed.Refused, "shard 4 has a row with ULID 7G00000000ZZZZZZZZZZZZZZZZ (bytes "+farAhead+")", same)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("%d feeds are recorded, want none", n)
		}
		soon := fmt.Sprintf("%012xffffffffffffffffffff", x.Now().Add(30*time.Second).UnixMilli())
		x.Exec("UPDATE events SET ulid = " + x.ULIDLiteral(soon) + " WHERE id = 1")
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
			x.Error("AddFeed returned another feed for the same spec")
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
			x.Errorf("Publish gave %d positions, want none", n)
		}
		if _, err := f.Admin().Status(x.Ctx); err != nil {
			x.Error(err)
		}
		x.Exec(x.Text("ulid.drop_index"))
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "no unique index") {
			x.Errorf("verify: %v, %v; want one problem about the index", problems, err)
		}
		for range 2 {
			if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
				x.Fatal(err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_shards"); n != 0 {
			x.Errorf("%d shards still have a state", n)
		}
		x.Exec("DROP TABLE events")
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("before the feed the schema was\n%s\nand after it\n%s", before, after)
		}
		if err := x.RF.MigrateDown(x.Ctx); err != nil {
			x.Fatal(err)
		}
	})
}

package shardids

import (
	"context"
	"database/sql"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardIDsOperated (M22, M72): cursors of shards each of which is a feed by itself are listed,
// paused, set back and sought one by one, or all; what is said of all holds for a shard that comes
// later, too.
func TestShardIDsOperated(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		all := rowfeed.ConsumerID{Consumer: "test", Feed: "events"}
		must := func(want int64) func(n int64, err error) {
			return func(n int64, err error) {
				r.Helper()
				if n != want || err != nil {
					r.Fatalf("%d shards, want %d; %v", n, want, err)
				}
			}
		}
		r.Add(-5, 1, 3)
		r.Add(77, 11, 13)
		c := r.Consumer(r.Feed, r.RF)
		r.Once(c)

		// One stands still, the other goes on.
		must(1)(r.RF.Admin().PauseConsumer(r.Ctx, eventID(-5)))
		r.Add(-5, 4, 4)
		r.Add(77, 14, 14)
		err := c.RunOnce(r.Ctx)
		r.WantCode(err, rowfeed.ConsumerPaused)
		if !strings.Contains(err.Error(), `shard -5: it is paused`) {
			t.Errorf("which is paused? %v", err)
		}
		r.WantApplied("-5: 1 2 3", "77: 11 12 13 14")
		_, err = r.RF.Admin().PauseConsumer(r.Ctx, eventID(4))
		r.WantCode(err, rowfeed.UnknownConsumer)
		if strings.Contains(err.Error(), "shards 0 to") {
			t.Errorf("shards are numbered: %v", err)
		}

		// At work it is noticed; with all a shard that comes is paused, too.
		stop := r.Run(c)
		must(1)(r.RF.Admin().ResumeConsumer(r.Ctx, eventID(-5)))
		r.AwaitApplied("it goes on", "-5: 1 2 3 4", "77: 11 12 13 14")
		must(2)(r.RF.Admin().PauseConsumer(r.Ctx, all))
		r.Add(3, 21, 22)
		r.Add(-5, 5, 5)
		r.Eventually("the new shard has a cursor", func() bool { return r.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard = 3") == 1 })
		headOf(r, -5) // what was written meanwhile has its place
		r.WantCursors("test", "-5/1 "+string(headBefore(r, -5, 1))+" paused", "3/1  paused", "77/1 "+string(headOf(r, 77))+" paused")
		must(3)(r.RF.Admin().ResumeConsumer(r.Ctx, all))
		r.AwaitApplied("all go on", "-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// Set back, one and all.
		must(1)(r.RF.Admin().ResetConsumer(r.Ctx, eventID(3)))
		r.AwaitApplied("one comes again", "-5: 1 2 3 4 5", "3: 21 21 22 22", "77: 11 12 13 14")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.Exec("DELETE FROM applied")
		must(3)(r.RF.Admin().ResetConsumer(r.Ctx, all))
		r.Once(c)
		r.WantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// Sought: to a position of one, to a time and the head of each.
		r.Exec("DELETE FROM applied")
		must(1)(r.RF.Admin().SeekConsumer(r.Ctx, eventID(77), headBefore(r, 77, 2)))
		r.Once(c)
		r.WantApplied("77: 13 14")
		r.Exec("DELETE FROM applied")
		must(3)(r.RF.Admin().SeekConsumer(r.Ctx, all, rowfeed.At(r.Now().Add(-time.Hour))))
		r.Once(c)
		r.WantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")
		r.Add(3, 23, 23)
		headOf(r, 3) // what waits in an outbox is behind the head
		must(3)(r.RF.Admin().SeekConsumer(r.Ctx, all, rowfeed.Now))
		r.Exec("DELETE FROM applied")
		r.Add(3, 24, 24)
		r.Once(c)
		r.WantApplied("3: 24")
		_, err = r.RF.Admin().SeekConsumer(r.Ctx, eventID(-5), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
		r.WantCode(err, rowfeed.CursorAhead)

		status, err := r.RF.Admin().Consumers(r.Ctx, all)
		if err != nil || len(status) != 3 {
			t.Fatal(status, err)
		}
		r.Add(3, 25, 25)
		r.Eventually("the row's age is told", func() bool {
			if status, err = r.RF.Admin().Consumers(r.Ctx, all); err != nil {
				t.Fatal(err)
			}
			grown := true
			for _, s := range status {
				if s.Worker == nil || *s.Worker != 0 || s.BehindSeconds == nil || *s.BehindSeconds > 0 && s.Shard != 3 {
					t.Fatalf("%+v", s)
				}
				grown = grown && (s.Shard != 3 || *s.BehindSeconds > 0)
			}
			return grown
		})
		must(3)(r.RF.Admin().DropConsumer(r.Ctx, all))
		if n := r.Scalar("SELECT count(*) FROM rowfeed_consumers"); n != 0 {
			t.Errorf("%d consumers are left", n)
		}
		_, err = r.RF.Admin().PauseConsumer(r.Ctx, all)
		r.WantCode(err, rowfeed.UnknownConsumer)
	})
}

// headBefore is the cursor before a shard's last n rows.
func headBefore(r *suite.Taker, shard, n int) rowfeed.Cursor {
	r.Helper()
	page := r.Page(r.Feed, shard, rowfeed.Beginning, 1000)
	cursor, err := page.CursorAt(rowfeed.Beginning, len(page.Entries)-1-n)
	if err != nil {
		r.Fatal(err)
	}
	// Such a cursor has a start mark, which a consumer at the head has lost.
	text, _, _ := strings.Cut(string(cursor), "@")
	return rowfeed.Cursor(text)
}

// TestShardIDsLetters (M18, M47): a key that cannot be handled becomes a dead letter of its shard; it is
// retried and dropped by shard, at work and not, and others are not concerned.
func TestShardIDsLetters(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		var mended atomic.Bool
		r.Fail = func(e rowfeed.Entry) error {
			if id := suite.IDOf(e); id%10 == 2 && !mended.Load() {
				return suite.ErrOff
			}
			return nil
		}
		r.Add(-5, 1, 3)
		r.Add(77, 11, 13)
		r.Add(3, 21, 23)
		c := r.Consumer(r.Feed, r.RF)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		r.WantApplied("-5: 1 3", "3: 21 23", "77: 11 13")
		letters, err := r.RF.Admin().DeadLetters(r.Ctx, eventID(77), nil)
		if err != nil || len(letters) != 1 || letters[0].Shard != 77 || string(letters[0].Key) != `{"id":12}` || *letters[0].DataShard != 77 {
			t.Fatalf("%+v, %v", letters, err)
		}
		if n, err := r.RF.Admin().DropDeadLetters(r.Ctx, eventID(3), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		mended.Store(true)
		if n, err := r.RF.Admin().RetryDeadLetters(r.Ctx, eventID(-5), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.Once(c)
		r.WantApplied("-5: 1 2 3", "3: 21 23", "77: 11 13")
		stop := r.Run(c)
		if n, err := r.RF.Admin().RetryDeadLetters(r.Ctx, eventID(77), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.AwaitApplied("the letter is released at work", "-5: 1 2 3", "3: 21 23", "77: 11 12 13")
		r.Eventually("no letter is left", func() bool {
			return r.Scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0 && r.Scalar("SELECT SUM(aside) FROM rowfeed_cursors") == 0
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsOverHTTP (M24): the same from a server: shards that come are found, and nothing is asked
// for shards where there is nothing new.
func TestShardIDsOverHTTP(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.RF), nil))
		t.Cleanup(server.Close)
		r.Add(-5, 1, 3)
		c := r.Consumer(&feedhttp.Client{URL: server.URL, Feed: "events"}, r.RF)
		c.ShardCount, c.Options.Lease = 2, suite.GroupTTL
		stop := r.Run(c)
		r.AwaitApplied("the first shard is read", "-5: 1 2 3")
		for shard := range 4 {
			r.Add(shard, 10+shard, 10+shard)
		}
		r.Add(-5, 4, 4)
		r.AwaitApplied("all shards are read", "-5: 1 2 3 4", "0: 10", "1: 11", "2: 12", "3: 13")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		now, err := client.Standings(r.Ctx, "", 0)
		if err != nil || len(now.Shards) != 5 || now.Shards[2] != r.Page(client, 2, "", 10).Standing {
			t.Fatalf("%+v, %v", now, err)
		}
		if same, err := client.Standings(r.Ctx, now.Digest, time.Millisecond); err != nil || same.Digest != now.Digest || same.Shards != nil {
			t.Errorf("without news: %+v, %v", same, err)
		}
		r.Add(2, 100, 100)
		next, err := client.Standings(r.Ctx, now.Digest, time.Minute)
		if err != nil || next.Digest == now.Digest || next.Shards[2] == now.Shards[2] || next.Shards[3] != now.Shards[3] {
			t.Errorf("with news: %+v, %v", next, err)
		}
		_, err = (&feedhttp.Client{URL: server.URL, Feed: "missing"}).Standings(r.Ctx, "", 0)
		r.WantCode(err, rowfeed.UnknownFeed)
	})
}

// TestShardIDsListed (M24): a source that lists its shards, and says nothing else of them, is read all
// the same.
func TestShardIDsListed(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(-5, 1, 4)
		stop := r.Run(r.Consumer(plain{r.Feed}, r.RF))
		r.AwaitApplied("it is read", "-5: 1 2 3 4")
		r.Add(77, 11, 11)
		r.Add(-5, 5, 5)
		r.AwaitApplied("what comes is read", "-5: 1 2 3 4 5", "77: 11")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.Add(78, 12, 12)
		r.Once(r.Consumer(plain{r.Feed}, r.RF))
		r.WantApplied("-5: 1 2 3 4 5", "77: 11", "78: 12")
	})
}

// plain is a Source and nothing more.
type plain struct{ f *rowfeed.Feed }

func (p plain) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := p.f.Fetch(ctx, req)
	page.Standing = ""
	return page, err
}

func (p plain) Info(ctx context.Context) (*rowfeed.Info, error) { return p.f.Info(ctx) }

// TestShardIDsBumped (M14, M22): a feed that was bumped, or dropped and added again, has another
// generation: every shard is refused by itself, and with OnRefused begins again by itself. A feed
// of another kind that has the name refuses cursors alike.
func TestShardIDsBumped(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		r.Add(-5, 1, 2)
		r.Add(77, 11, 12)
		c := member(r, 2)
		r.Once(c)
		if _, err := r.Feed.Admin().Bump(r.Ctx); err != nil {
			t.Fatal(err)
		}
		r.WantCode(member(r, 2).RunOnce(r.Ctx), rowfeed.GenerationChanged)
		running := make(chan error, 1)
		go func() { running <- member(r, 2).Run(r.Ctx) }()
		r.WantCode(<-running, rowfeed.GenerationChanged)
		var refused atomic.Int64
		restart := member(r, 2)
		restart.Options.OnRefused = func(context.Context, *sql.Tx, error) error { refused.Add(1); return nil }
		r.Exec("DELETE FROM applied")
		r.Add(3, 21, 21)
		r.Once(restart)
		r.WantApplied("-5: 1 2", "3: 21", "77: 11 12")
		if refused.Load() != 2 {
			t.Errorf("%d shards were refused", refused.Load())
		}

		// Parts of one sequence have the name now, and then shards again.
		spec := suite.EventsSpec()
		if r.Feed.Mode() == rowfeed.ModeOutbox {
			spec = rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		}
		replace := func(spec rowfeed.FeedSpec) {
			r.Helper()
			if err := r.RF.DropFeed(r.Ctx, "events"); err != nil {
				t.Fatal(err)
			}
			r.Feed = r.Events.Env.Add(spec)
		}
		replace(rowfeed.FeedSpec{Name: "events", Table: "events", DataShards: 8})
		r.Publish(r.Feed)
		parts := member(r, 2)
		r.WantCode(parts.RunOnce(r.Ctx), rowfeed.GenerationChanged)
		r.WantCode(member(r, 3).RunOnce(r.Ctx), rowfeed.GenerationChanged)
		if _, err := r.RF.Admin().ResetConsumer(r.Ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
			t.Fatal(err)
		}
		r.Exec("DELETE FROM applied")
		r.Once(member(r, 3))
		if n := r.Scalar("SELECT count(*) FROM applied"); n != 5 {
			t.Fatalf("%d rows of the sequence took effect", n)
		}
		replace(spec)
		r.WantCode(member(r, 3).RunOnce(r.Ctx), rowfeed.GenerationChanged)
		restart = member(r, 3)
		restart.Options.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		r.Exec("DELETE FROM applied")
		r.Add(3, 22, 22)
		r.Once(restart)
		if n := r.Scalar("SELECT count(*) FROM applied WHERE id = 22"); n != 1 {
			t.Fatal("the row took no effect")
		}
	})
}

// TestShardIDsIdle (M24): what a consumer without anything to do asks of the database does not depend on
// the number of its shards; one that gets a row is found among them all.
func TestShardIDsIdle(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		const shards = 1000
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		tx := x.Begin(0)
		all := make([]int, shards)
		for i := range all {
			all[i] = i - 500
		}
		u := x.Lock(tx, rowfeed.LockRequest{Shards: all})
		for i, shard := range all {
			x.Event(tx, i+1, shard, x.At(u, shard, 0), "")
		}
		x.Commit(tx)
		var asked, looks atomic.Int64
		stamp := r.Dialect.Stamp()
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case ev.Kind != testdb.Query && ev.Kind != testdb.Exec:
			case stamp != "" && ev.SQL == stamp:
				looks.Add(1)
			case strings.Contains(ev.SQL, " UNION ALL SELECT h.feed"): // behind the stamp, where there is one
				if stamp == "" {
					looks.Add(1)
				}
			default:
				asked.Add(1)
			}
			return nil
		}}, nil)
		f, err := rf.Feed(r.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		c := r.Consumer(f, rf)
		stop := r.Run(c)
		r.Eventually("all shards are read", func() bool { return r.Scalar("SELECT count(*) FROM applied") == shards })
		r.Eventually("it has come to rest", func() bool {
			before := asked.Load()
			from := looks.Load()
			r.Eventually("it looks", func() bool { return looks.Load() > from+40 })
			// Forty looks are two seconds at least: two of its own cursors, two shards read anyway. More
			// where each takes its time.
			return asked.Load()-before < shards/4
		})
		before := asked.Load()
		r.Add(123, 5000, 5000)
		r.Eventually("a row among a thousand shards is found", func() bool { return r.Scalar("SELECT count(*) FROM applied WHERE id = 5000") == 1 })
		from := looks.Load()
		r.Eventually("it looks on", func() bool { return looks.Load() > from+40 })
		if n := asked.Load() - before; n > shards/2 {
			t.Errorf("%d statements for a row among %d shards", n, shards)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

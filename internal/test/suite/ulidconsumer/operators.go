package ulidconsumer

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

// TestOperatorsMoveCursorsByShard (M22, M72): operators list, pause, reset and seek cursors of one shard or of all. A
// pause of all shards also holds for shards that are added later.
func TestOperatorsMoveCursorsByShard(t *testing.T) {
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

		// One shard is paused.
		must(1)(r.RF.Admin().PauseConsumer(r.Ctx, eventID(-5)))
		r.Add(-5, 4, 4)
		r.Add(77, 14, 14)
		err := c.RunOnce(r.Ctx)
		r.WantCode(err, rowfeed.ConsumerPaused)
		if !strings.Contains(err.Error(), `shard -5: it is paused`) {
			t.Errorf("error %v, want one that names the shard", err)
		}
		r.WantApplied("-5: 1 2 3", "77: 11 12 13 14")
		_, err = r.RF.Admin().PauseConsumer(r.Ctx, eventID(4))
		r.WantCode(err, rowfeed.UnknownConsumer)
		if strings.Contains(err.Error(), "shards 0 to") {
			t.Errorf("error %v, want one without a range of shards", err)
		}

		// While the consumer runs, a shard is resumed and all are paused. A new shard is then paused, too.
		stop := r.Run(c)
		must(1)(r.RF.Admin().ResumeConsumer(r.Ctx, eventID(-5)))
		r.AwaitApplied("the resumed shard is consumed", "-5: 1 2 3 4", "77: 11 12 13 14")
		must(2)(r.RF.Admin().PauseConsumer(r.Ctx, all))
		r.Add(3, 21, 22)
		r.Add(-5, 5, 5)
		r.Eventually("the new shard has a cursor", func() bool {
			return r.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard = 3") == 1
		})
		headOf(r, -5) // moves the records of an outbox
		r.WantCursors("test", "-5/1 "+string(headBefore(r, -5, 1))+" paused", "3/1  paused",
			"77/1 "+string(headOf(r, 77))+" paused")
		must(3)(r.RF.Admin().ResumeConsumer(r.Ctx, all))
		r.AwaitApplied("all shards are consumed", "-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// One shard is reset, and then all are.
		must(1)(r.RF.Admin().ResetConsumer(r.Ctx, eventID(3)))
		r.AwaitApplied("the reset shard is consumed again", "-5: 1 2 3 4 5", "3: 21 21 22 22", "77: 11 12 13 14")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.Exec("DELETE FROM applied")
		must(3)(r.RF.Admin().ResetConsumer(r.Ctx, all))
		r.Once(c)
		r.WantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// One shard seeks a position. All shards seek a time and their heads.
		r.Exec("DELETE FROM applied")
		must(1)(r.RF.Admin().SeekConsumer(r.Ctx, eventID(77), headBefore(r, 77, 2)))
		r.Once(c)
		r.WantApplied("77: 13 14")
		r.Exec("DELETE FROM applied")
		must(3)(r.RF.Admin().SeekConsumer(r.Ctx, all, rowfeed.At(r.Now().Add(-time.Hour))))
		r.Once(c)
		r.WantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")
		r.Add(3, 23, 23)
		headOf(r, 3) // moves the records of an outbox, which would be after the head
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
		r.Eventually("the status has the row's age", func() bool {
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

// headBefore returns the cursor before the last n rows of a shard.
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

// TestDeadLettersBelongToTheirShard (M18, M47): the handler fails for one key of each shard, which become dead letters.
// Operators retry and drop them by shard, with and without a running consumer. Other shards do not change.
func TestDeadLettersBelongToTheirShard(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		var repaired atomic.Bool
		r.Fail = func(e rowfeed.Entry) error {
			if id := suite.IDOf(e); id%10 == 2 && !repaired.Load() {
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
		page, err := r.RF.Admin().DeadLetters(r.Ctx, suite.Letters(eventID(77), ""))
		letters := page.Letters
		if err != nil || len(letters) != 1 || letters[0].Shard != 77 || string(letters[0].Key) != `{"id":12}` ||
			*letters[0].DataShard != 77 {
			t.Fatalf("dead letters of shard 77: %+v, %v", letters, err)
		}
		if n, err := r.RF.Admin().DropDeadLetters(r.Ctx, suite.Letters(eventID(3), ""), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		repaired.Store(true)
		if n, err := r.RF.Admin().RetryDeadLetters(r.Ctx, suite.Letters(eventID(-5), ""), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.Once(c)
		r.WantApplied("-5: 1 2 3", "3: 21 23", "77: 11 13")
		stop := r.Run(c)
		if n, err := r.RF.Admin().RetryDeadLetters(r.Ctx, suite.Letters(eventID(77), ""), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.AwaitApplied("the consumer retries the dead letter", "-5: 1 2 3", "3: 21 23", "77: 11 12 13")
		r.Eventually("no dead letter is left", func() bool {
			return r.Scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0 &&
				r.Scalar("SELECT SUM(aside) FROM rowfeed_cursors") == 0
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestConsumerFindsNewShardsOverHTTP (M24): a consumer reads a feed from a server, and finds shards that are added. A
// request for watermarks is answered without them if nothing is new.
func TestConsumerFindsNewShardsOverHTTP(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.RF), nil))
		t.Cleanup(server.Close)
		r.Add(-5, 1, 3)
		c := r.Consumer(&feedhttp.Client{URL: server.URL, Feed: "events"}, r.RF)
		c.ShardCount, c.Options.Lease = 2, suite.GroupTTL
		stop := r.Run(c)
		r.AwaitApplied("the first shard is consumed", "-5: 1 2 3")
		for shard := range 4 {
			r.Add(shard, 10+shard, 10+shard)
		}
		r.Add(-5, 4, 4)
		r.AwaitApplied("all shards are consumed", "-5: 1 2 3 4", "0: 10", "1: 11", "2: 12", "3: 13")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		now, err := client.Standings(r.Ctx, "", 0)
		if err != nil || len(now.Shards) != 5 || now.Shards[2] != r.Page(client, 2, "", 10).Standing {
			t.Fatalf("the watermarks are %+v, %v", now, err)
		}
		same, err := client.Standings(r.Ctx, now.Digest, time.Millisecond)
		if err != nil || same.Digest != now.Digest || same.Shards != nil {
			t.Errorf("without a new row, the watermarks are %+v, %v", same, err)
		}
		r.Add(2, 100, 100)
		next, err := client.Standings(r.Ctx, now.Digest, time.Minute)
		if err != nil || next.Digest == now.Digest || next.Shards[2] == now.Shards[2] ||
			next.Shards[3] != now.Shards[3] {
			t.Errorf("with a new row, the watermarks are %+v, %v", next, err)
		}
		_, err = (&feedhttp.Client{URL: server.URL, Feed: "missing"}).Standings(r.Ctx, "", 0)
		r.WantCode(err, rowfeed.UnknownFeed)
	})
}

// TestSourceWithoutWatermarksIsRead (M24): a source lists its shards, but has no watermarks. A consumer reads all of
// them.
func TestSourceWithoutWatermarksIsRead(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(-5, 1, 4)
		stop := r.Run(r.Consumer(plain{r.Feed}, r.RF))
		r.AwaitApplied("the shard is consumed", "-5: 1 2 3 4")
		r.Add(77, 11, 11)
		r.Add(-5, 5, 5)
		r.AwaitApplied("new rows are consumed", "-5: 1 2 3 4 5", "77: 11")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.Add(78, 12, 12)
		r.Once(r.Consumer(plain{r.Feed}, r.RF))
		r.WantApplied("-5: 1 2 3 4 5", "77: 11", "78: 12")
	})
}

// plain is a Source without optional methods.
type plain struct{ f *rowfeed.Feed }

func (p plain) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	page, err := p.f.Fetch(ctx, req)
	page.Standing = ""
	return page, err
}

func (p plain) Info(ctx context.Context) (*rowfeed.Info, error) { return p.f.Info(ctx) }

// TestNewGenerationRefusesEachShardOfConsumer (M14, M22): a feed gets a new generation, because it is bumped, or
// dropped and added again. The consumer is refused for each shard, and with OnRefused starts each shard again. A feed
// of another mode with the same name refuses the cursors, too.
func TestNewGenerationRefusesEachShardOfConsumer(t *testing.T) {
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
			t.Errorf("%d shards were refused, want 2", refused.Load())
		}

		// A sequence feed gets the name, and then a ULID feed again.
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
			t.Fatalf("%d rows of the sequence feed took effect, want 5", n)
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

// TestIdleStatementsDoNotGrowWithShards (M24): a consumer of a thousand shards is idle. The number of its statements
// does not depend on the number of shards. It finds a new row among them.
func TestIdleStatementsDoNotGrowWithShards(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		const shards = 1000
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		addToShards(x, -500, shards)
		var asked, polls atomic.Int64
		stamp := r.Dialect.Stamp
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case ev.Kind != testdb.Query && ev.Kind != testdb.Exec:
			case stamp != "" && ev.SQL == stamp:
				polls.Add(1)
			case strings.Contains(ev.SQL, " UNION ALL SELECT h.feed"): // follows the commit stamp, if there is one
				if stamp == "" {
					polls.Add(1)
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
		r.Eventually("all shards are consumed", func() bool {
			return r.Scalar("SELECT count(*) FROM applied") == shards
		})
		r.Eventually("the consumer is idle", func() bool {
			before := asked.Load()
			from := polls.Load()
			r.Eventually("the watcher polls", func() bool { return polls.Load() > from+40 })
			// Forty polls take at least two seconds. Meanwhile the consumer reads its cursors twice, and two shards.
			// On a slow machine polls take longer, and the consumer reads more.
			return asked.Load()-before < shards/4
		})
		before := asked.Load()
		r.Add(123, 5000, 5000)
		r.Eventually("a row among a thousand shards is consumed", func() bool {
			return r.Scalar("SELECT count(*) FROM applied WHERE id = 5000") == 1
		})
		from := polls.Load()
		r.Eventually("the watcher polls again", func() bool { return polls.Load() > from+40 })
		if n := asked.Load() - before; n > shards/2 {
			t.Errorf("the consumer sent %d statements for a row among %d shards", n, shards)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

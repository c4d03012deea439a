package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardIDsOperated (M22, M72): cursors of shards each of which is a feed by itself are listed,
// paused, set back and sought one by one, or all; what is said of all holds for a shard that comes
// later, too.
func TestShardIDsOperated(t *testing.T) {
	eachKind(t, func(r *taker) {
		all := rowfeed.ConsumerID{Consumer: "test", Feed: "events"}
		must := func(want int64) func(n int64, err error) {
			return func(n int64, err error) {
				r.Helper()
				if n != want || err != nil {
					r.Fatalf("%d shards, want %d; %v", n, want, err)
				}
			}
		}
		r.add(-5, 1, 3)
		r.add(77, 11, 13)
		c := r.consumer(r.feed, r.rf)
		r.once(c)

		// One stands still, the other goes on.
		must(1)(r.rf.Admin().PauseConsumer(r.ctx, eventID(-5)))
		r.add(-5, 4, 4)
		r.add(77, 14, 14)
		err := c.RunOnce(r.ctx)
		r.wantCode(err, rowfeed.ConsumerPaused)
		if !strings.Contains(err.Error(), `shard -5: it is paused`) {
			t.Errorf("which is paused? %v", err)
		}
		r.wantApplied("-5: 1 2 3", "77: 11 12 13 14")
		_, err = r.rf.Admin().PauseConsumer(r.ctx, eventID(4))
		r.wantCode(err, rowfeed.UnknownConsumer)
		if strings.Contains(err.Error(), "shards 0 to") {
			t.Errorf("shards are numbered: %v", err)
		}

		// At work it is noticed; with all a shard that comes is paused, too.
		stop := r.run(c)
		must(1)(r.rf.Admin().ResumeConsumer(r.ctx, eventID(-5)))
		r.awaitApplied("it goes on", "-5: 1 2 3 4", "77: 11 12 13 14")
		must(2)(r.rf.Admin().PauseConsumer(r.ctx, all))
		r.add(3, 21, 22)
		r.add(-5, 5, 5)
		r.eventually("the new shard has a cursor", func() bool { return r.scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard = 3") == 1 })
		r.headOf(-5) // what was written meanwhile has its place
		r.wantCursors("test", "-5/1 "+string(r.headBefore(-5, 1))+" paused", "3/1  paused", "77/1 "+string(r.headOf(77))+" paused")
		must(3)(r.rf.Admin().ResumeConsumer(r.ctx, all))
		r.awaitApplied("all go on", "-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// Set back, one and all.
		must(1)(r.rf.Admin().ResetConsumer(r.ctx, eventID(3)))
		r.awaitApplied("one comes again", "-5: 1 2 3 4 5", "3: 21 21 22 22", "77: 11 12 13 14")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.exec("DELETE FROM applied")
		must(3)(r.rf.Admin().ResetConsumer(r.ctx, all))
		r.once(c)
		r.wantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")

		// Sought: to a position of one, to a time and the head of each.
		r.exec("DELETE FROM applied")
		must(1)(r.rf.Admin().SeekConsumer(r.ctx, eventID(77), r.headBefore(77, 2)))
		r.once(c)
		r.wantApplied("77: 13 14")
		r.exec("DELETE FROM applied")
		must(3)(r.rf.Admin().SeekConsumer(r.ctx, all, rowfeed.At(r.now().Add(-time.Hour))))
		r.once(c)
		r.wantApplied("-5: 1 2 3 4 5", "3: 21 22", "77: 11 12 13 14")
		r.add(3, 23, 23)
		r.headOf(3) // what waits in an outbox is behind the head
		must(3)(r.rf.Admin().SeekConsumer(r.ctx, all, rowfeed.Now))
		r.exec("DELETE FROM applied")
		r.add(3, 24, 24)
		r.once(c)
		r.wantApplied("3: 24")
		_, err = r.rf.Admin().SeekConsumer(r.ctx, eventID(-5), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
		r.wantCode(err, rowfeed.CursorAhead)

		status, err := r.rf.Admin().Consumers(r.ctx, all)
		if err != nil || len(status) != 3 {
			t.Fatal(status, err)
		}
		r.add(3, 25, 25)
		r.eventually("the row's age is told", func() bool {
			if status, err = r.rf.Admin().Consumers(r.ctx, all); err != nil {
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
		must(3)(r.rf.Admin().DropConsumer(r.ctx, all))
		if n := r.scalar("SELECT count(*) FROM rowfeed_consumers"); n != 0 {
			t.Errorf("%d consumers are left", n)
		}
		_, err = r.rf.Admin().PauseConsumer(r.ctx, all)
		r.wantCode(err, rowfeed.UnknownConsumer)
	})
}

// headBefore is the cursor before a shard's last n rows.
func (r *taker) headBefore(shard, n int) rowfeed.Cursor {
	r.Helper()
	page := r.page(r.feed, shard, rowfeed.Beginning, 1000)
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
	eachKind(t, func(r *taker) {
		var mended atomic.Bool
		r.fail = func(e rowfeed.Entry) error {
			if id := idOf(e); id%10 == 2 && !mended.Load() {
				return errOff
			}
			return nil
		}
		r.add(-5, 1, 3)
		r.add(77, 11, 13)
		r.add(3, 21, 23)
		c := r.consumer(r.feed, r.rf)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.wantApplied("-5: 1 3", "3: 21 23", "77: 11 13")
		letters, err := r.rf.Admin().DeadLetters(r.ctx, eventID(77), nil)
		if err != nil || len(letters) != 1 || letters[0].Shard != 77 || string(letters[0].Key) != `{"id":12}` || *letters[0].DataShard != 77 {
			t.Fatalf("%+v, %v", letters, err)
		}
		if n, err := r.rf.Admin().DropDeadLetters(r.ctx, eventID(3), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		mended.Store(true)
		if n, err := r.rf.Admin().RetryDeadLetters(r.ctx, eventID(-5), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.once(c)
		r.wantApplied("-5: 1 2 3", "3: 21 23", "77: 11 13")
		stop := r.run(c)
		if n, err := r.rf.Admin().RetryDeadLetters(r.ctx, eventID(77), nil); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.awaitApplied("the letter is released at work", "-5: 1 2 3", "3: 21 23", "77: 11 12 13")
		r.eventually("no letter is left", func() bool {
			return r.scalar("SELECT count(*) FROM rowfeed_dead_letters") == 0 && r.scalar("SELECT SUM(aside) FROM rowfeed_cursors") == 0
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsOverHTTP (M24): the same from a server: shards that come are found, and nothing is asked
// for shards where there is nothing new.
func TestShardIDsOverHTTP(t *testing.T) {
	eachKind(t, func(r *taker) {
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.rf), nil))
		t.Cleanup(server.Close)
		r.add(-5, 1, 3)
		c := r.consumer(&feedhttp.Client{URL: server.URL, Feed: "events"}, r.rf)
		c.ShardCount, c.Lease = 2, groupTTL
		stop := r.run(c)
		r.awaitApplied("the first shard is read", "-5: 1 2 3")
		for shard := range 4 {
			r.add(shard, 10+shard, 10+shard)
		}
		r.add(-5, 4, 4)
		r.awaitApplied("all shards are read", "-5: 1 2 3 4", "0: 10", "1: 11", "2: 12", "3: 13")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		client := &feedhttp.Client{URL: server.URL, Feed: "events"}
		now, err := client.Standings(r.ctx, "", 0)
		if err != nil || len(now.Shards) != 5 || now.Shards[2] != r.page(client, 2, "", 10).Standing {
			t.Fatalf("%+v, %v", now, err)
		}
		if same, err := client.Standings(r.ctx, now.Digest, time.Millisecond); err != nil || same.Digest != now.Digest || same.Shards != nil {
			t.Errorf("without news: %+v, %v", same, err)
		}
		r.add(2, 100, 100)
		next, err := client.Standings(r.ctx, now.Digest, time.Minute)
		if err != nil || next.Digest == now.Digest || next.Shards[2] == now.Shards[2] || next.Shards[3] != now.Shards[3] {
			t.Errorf("with news: %+v, %v", next, err)
		}
		_, err = (&feedhttp.Client{URL: server.URL, Feed: "missing"}).Standings(r.ctx, "", 0)
		r.wantCode(err, rowfeed.UnknownFeed)
	})
}

// TestShardIDsListed (M24): a source that lists its shards, and says nothing else of them, is read all
// the same.
func TestShardIDsListed(t *testing.T) {
	eachULID(t, func(x *events) {
		r := x.taker(func(shard, first, last int) { x.write(shard, first, last) })
		r.add(-5, 1, 4)
		stop := r.run(r.consumer(plain{r.feed}, r.rf))
		r.awaitApplied("it is read", "-5: 1 2 3 4")
		r.add(77, 11, 11)
		r.add(-5, 5, 5)
		r.awaitApplied("what comes is read", "-5: 1 2 3 4 5", "77: 11")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.add(78, 12, 12)
		r.once(r.consumer(plain{r.feed}, r.rf))
		r.wantApplied("-5: 1 2 3 4 5", "77: 11", "78: 12")
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
	eachKind(t, func(r *taker) {
		r.add(-5, 1, 2)
		r.add(77, 11, 12)
		c := r.member(2)
		r.once(c)
		if _, err := r.feed.Admin().Bump(r.ctx); err != nil {
			t.Fatal(err)
		}
		r.wantCode(r.member(2).RunOnce(r.ctx), rowfeed.GenerationChanged)
		running := make(chan error, 1)
		go func() { running <- r.member(2).Run(r.ctx) }()
		r.wantCode(<-running, rowfeed.GenerationChanged)
		var refused atomic.Int64
		restart := r.member(2)
		restart.OnRefused = func(context.Context, *sql.Tx, error) error { refused.Add(1); return nil }
		r.exec("DELETE FROM applied")
		r.add(3, 21, 21)
		r.once(restart)
		r.wantApplied("-5: 1 2", "3: 21", "77: 11 12")
		if refused.Load() != 2 {
			t.Errorf("%d shards were refused", refused.Load())
		}

		// Parts of one sequence have the name now, and then shards again.
		spec := eventsSpec()
		if r.feed.Mode() == rowfeed.ModeOutbox {
			spec = rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		}
		replace := func(spec rowfeed.FeedSpec) {
			r.Helper()
			if err := r.rf.DropFeed(r.ctx, "events"); err != nil {
				t.Fatal(err)
			}
			r.feed = r.events.env.add(spec)
		}
		replace(rowfeed.FeedSpec{Name: "events", Table: "events", DataShards: 8})
		r.publish(r.feed)
		parts := r.member(2)
		r.wantCode(parts.RunOnce(r.ctx), rowfeed.GenerationChanged)
		r.wantCode(r.member(3).RunOnce(r.ctx), rowfeed.GenerationChanged)
		if _, err := r.rf.Admin().ResetConsumer(r.ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
			t.Fatal(err)
		}
		r.exec("DELETE FROM applied")
		r.once(r.member(3))
		if n := r.scalar("SELECT count(*) FROM applied"); n != 5 {
			t.Fatalf("%d rows of the sequence took effect", n)
		}
		replace(spec)
		r.wantCode(r.member(3).RunOnce(r.ctx), rowfeed.GenerationChanged)
		restart = r.member(3)
		restart.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		r.exec("DELETE FROM applied")
		r.add(3, 22, 22)
		r.once(restart)
		if n := r.scalar("SELECT count(*) FROM applied WHERE id = 22"); n != 1 {
			t.Fatal("the row took no effect")
		}
	})
}

// TestShardIDsIdle (M24): what a consumer without anything to do asks of the database does not depend on
// the number of its shards; one that gets a row is found among them all.
func TestShardIDsIdle(t *testing.T) {
	eachULID(t, func(x *events) {
		const shards = 1000
		r := x.taker(func(shard, first, last int) { x.write(shard, first, last) })
		tx := x.begin(0)
		all := make([]int, shards)
		for i := range all {
			all[i] = i - 500
		}
		u := x.lock(tx, rowfeed.LockRequest{Shards: all})
		for i, shard := range all {
			x.event(tx, i+1, shard, x.at(u, shard, 0), "")
		}
		x.commit(tx)
		var asked, looks atomic.Int64
		stamp := r.dialect.Stamp()
		rf := r.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
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
		f, err := rf.Feed(r.ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		c := r.consumer(f, rf)
		stop := r.run(c)
		r.eventually("all shards are read", func() bool { return r.scalar("SELECT count(*) FROM applied") == shards })
		r.eventually("it has come to rest", func() bool {
			before := asked.Load()
			from := looks.Load()
			r.eventually("it looks", func() bool { return looks.Load() > from+40 })
			// Forty looks are two seconds at least: two of its own cursors, two shards read anyway. More
			// where each takes its time.
			return asked.Load()-before < shards/4
		})
		before := asked.Load()
		r.add(123, 5000, 5000)
		r.eventually("a row among a thousand shards is found", func() bool { return r.scalar("SELECT count(*) FROM applied WHERE id = 5000") == 1 })
		from := looks.Load()
		r.eventually("it looks on", func() bool { return looks.Load() > from+40 })
		if n := asked.Load() - before; n > shards/2 {
			t.Errorf("%d statements for a row among %d shards", n, shards)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// meeting is a source that does something before the first page of a shard that is asked for with
// a cursor in place, and lists few of its shards.
type meeting struct {
	*rowfeed.Feed
	shard int
	made  func() bool
	once  sync.Once
	meet  func()
}

func (m *meeting) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if shard, _ := req.Shards.Numbers(); shard == m.shard && m.made() {
		m.once.Do(m.meet)
	}
	return m.Feed.Fetch(ctx, req)
}

func (m *meeting) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, m.Feed) }

// few is a description as of a feed with more shards than one lists.
func few(ctx context.Context, f *rowfeed.Feed) (*rowfeed.Info, error) {
	info, err := f.Info(ctx)
	if err == nil {
		info.ShardIDs, info.MoreShardIDs = info.ShardIDs[:1], true
	}
	return info, err
}

type fewListed struct{ plain }

func (p fewListed) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, p.f) }

// TestShardIDsStartAtOnce (G1, M24): where a consumer begins is looked up for all shards before any
// has its turn, also for those that a description does not list: what is written before the last one has had it
// comes, what was there does not.
func TestShardIDsStartAtOnce(t *testing.T) {
	eachKind(t, func(r *taker) {
		for shard := 1; shard <= 3; shard++ {
			r.add(shard, shard, shard)
			r.headOf(shard) // what waits in an outbox is behind the head
		}
		next := 10
		for name, start := range map[string]rowfeed.Cursor{"now": rowfeed.Now, "later": rowfeed.At(r.now().Add(time.Hour)), "earlier": rowfeed.At(r.now().Add(-time.Hour))} {
			r.exec("DELETE FROM applied")
			was := next
			source := &meeting{Feed: r.feed, shard: 3, made: func() bool { return r.scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = '"+name+"'") > 0 }}
			source.meet = func() { r.add(3, next, next); r.headOf(3); next++ }
			c := r.consumer(source, r.rf)
			c.Name, c.Start = name, start
			r.once(c)
			if next != was+1 {
				t.Fatalf("%s: the shard was asked for %d times", name, next-was)
			}
			want := []string{fmt.Sprint("3: ", was)}
			if name == "earlier" {
				want = r.all(next)
			}
			if got := r.applied(); !slices.Equal(got, want) {
				t.Errorf("%s: applied %q, want %q", name, got, want)
			}
		}
		c := r.consumer(fewListed{plain{r.feed}}, r.rf)
		c.Start = rowfeed.Now
		r.wantCode(c.RunOnce(r.ctx), rowfeed.Refused)
		if n := r.scalar("SELECT count(*) FROM rowfeed_consumers WHERE consumer = 'test'"); n != 0 {
			t.Error("a consumer that is refused has begun")
		}
	})
}

// all are the rows of the test above, up to a number.
func (r *taker) all(next int) []string {
	third := "3: 3"
	for id := 10; id < next; id++ {
		third += fmt.Sprint(" ", id)
	}
	return []string{"1: 1", "2: 2", third}
}

// TestHeldShardStart (M59): a consumer that begins at a time begins while somebody has one of its
// shards: in that one, too, of which it misses nothing when it is free.
func TestHeldShardStart(t *testing.T) {
	eachHeld(t, func(x *events, hold func() func()) {
		letGo := hold()
		x.appended(3, 0, time.Time{})
		r := x.taker(nil)
		f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_shards") && strings.HasSuffix(ev.SQL, "NOWAIT") && x.scalar("SELECT count(*) FROM rowfeed_cursors") == 0 {
				t.Error("it would move records to learn where to begin")
			}
			return nil
		}}, nil)
		source := &meeting{Feed: f, shard: 0, made: func() bool { return slices.Equal(r.applied(), []string{"1: 10"}) }}
		source.meet = func() { letGo(); x.publish(x.feed) } // somebody else moves what it is to get
		c := r.consumer(source, x.tappedDB(testdb.Hooks{}, nil))
		c.Start = rowfeed.At(x.now().Add(time.Hour))
		stop := r.run(c)
		x.eventually("it begins while shard 0 is held", func() bool { return x.scalar("SELECT count(*) FROM rowfeed_cursors") == 2 })
		x.appended(4, 0, time.Time{})
		x.appended(10, 1, time.Time{})
		r.awaitApplied("the other shard, and then the one that was held", "0: 3 4", "1: 10")
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// TestUnplaceableStart (M59): nor does a record that cannot be placed keep it from the other shards.
func TestUnplaceableStart(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere what a column takes its index takes, too
	each(t, func(env *env) {
		env.exec("CREATE TABLE events (id text PRIMARY KEY, data text)", "CREATE TABLE applied (id text)")
		x := &events{env, env.add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		x.exec("INSERT INTO rowfeed_outbox_events (shard, id) SELECT 0, string_agg(md5(i::text), '') FROM generate_series(1, 200) i",
			"INSERT INTO events VALUES ('a', 'd')", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 'a')")
		c := &rowfeed.Consumer{Name: "test", Source: x.feed, DB: x.rf, Start: rowfeed.At(x.now().Add(time.Hour)), Retry: rowfeed.Retry{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
			Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
				id, _ := entries[0].Key.Get("id")
				_, err := tx.ExecContext(ctx, "INSERT INTO applied VALUES ($1)", id)
				return err
			}}
		applied := func() bool { return x.scalar("SELECT count(*) FROM applied WHERE id = 'a'") == 1 }
		if err := c.RunOnce(x.ctx); err != nil || !applied() {
			t.Fatalf("once: the other shard was not consumed, %v", err)
		}
		x.exec("DELETE FROM applied", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 'a')")
		c.Name = "other"
		stop := (&taker{events: x}).run(c)
		x.eventually("the other shard is consumed", applied)
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// TestFillingStart (M62): nor does a shard whose rows of that time are being placed, which begins when they
// are.
func TestFillingStart(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	each(t, func(x *env) {
		x.oldRows(4)
		broken := x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "live_from =") { // before it comes to the first shard
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.ctx, backfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.kvEvents()
		live := func(id, shard int) time.Time {
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, %d, NULL)", id, shard))
			x.publish(y.feed)
			at, err := ulid.ParseStrict(string(y.page(y.feed, shard, rowfeed.Now, 1).Cursor))
			if err != nil {
				x.Fatal(err)
			}
			return ulid.Time(at.Time())
		}
		start := live(10, 3).Add(time.Millisecond)
		x.eventually("it is later", func() bool { return x.now().After(start.Add(time.Millisecond)) })
		live(11, 0)
		// As where all that a shard had was purged: it has no head to tell.
		x.exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('kv', 99, 0, 0, 0, '')", "INSERT INTO kv VALUES (13, 99, NULL)")
		r := y.taker(nil)
		c := r.consumer(y.feed, x.rf)
		c.Start = rowfeed.At(start)
		x.wantCode(c.RunOnce(x.ctx), rowfeed.Filling)
		if n := x.scalar("SELECT count(*) FROM rowfeed_cursors"); n != 3 {
			t.Fatalf("it has begun in %d shards", n)
		}
		// Below a time to come is what is published until it is looked up.
		early := r.consumer(y.feed, x.rf)
		early.Name, early.Start = "early", rowfeed.At(x.now().Add(time.Hour))
		x.wantCode(early.RunOnce(x.ctx), rowfeed.Filling)
		if n := x.scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = 'early'"); n != 0 {
			t.Fatalf("at a time to come it has begun in %d shards", n)
		}
		live(12, 3)
		x.wantCode(c.RunOnce(x.ctx), rowfeed.Filling)
		r.wantApplied("3: 12")
		y.backfilled(4)
		r.once(c)
		r.wantApplied("0: 11", "3: 12", "99: 13")
		r.once(early)
		live(14, 99)
		r.once(early)
		r.wantApplied("0: 11", "3: 12", "99: 13 14")
	})
}

package shardids

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
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
	suite.EachKind(t, func(r *suite.Taker) {
		for shard := 1; shard <= 3; shard++ {
			r.Add(shard, shard, shard)
			headOf(r, shard) // what waits in an outbox is behind the head
		}
		next := 10
		for name, start := range map[string]rowfeed.Cursor{"now": rowfeed.Now, "later": rowfeed.At(r.Now().Add(time.Hour)), "earlier": rowfeed.At(r.Now().Add(-time.Hour))} {
			r.Exec("DELETE FROM applied")
			was := next
			source := &meeting{Feed: r.Feed, shard: 3, made: func() bool { return r.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = '"+name+"'") > 0 }}
			source.meet = func() { r.Add(3, next, next); headOf(r, 3); next++ }
			c := r.Consumer(source, r.RF)
			c.Name, c.Options.Start = name, start
			r.Once(c)
			if next != was+1 {
				t.Fatalf("%s: the shard was asked for %d times", name, next-was)
			}
			want := []string{fmt.Sprint("3: ", was)}
			if name == "earlier" {
				want = all(r, next)
			}
			if got := r.Applied(); !slices.Equal(got, want) {
				t.Errorf("%s: applied %q, want %q", name, got, want)
			}
		}
		c := r.Consumer(fewListed{plain{r.Feed}}, r.RF)
		c.Options.Start = rowfeed.Now
		r.WantCode(c.RunOnce(r.Ctx), rowfeed.Refused)
		if n := r.Scalar("SELECT count(*) FROM rowfeed_consumers WHERE consumer = 'test'"); n != 0 {
			t.Error("a consumer that is refused has begun")
		}
	})
}

// all are the rows of the test above, up to a number.
func all(r *suite.Taker, next int) []string {
	third := "3: 3"
	for id := 10; id < next; id++ {
		third += fmt.Sprint(" ", id)
	}
	return []string{"1: 1", "2: 2", third}
}

// TestHeldShardStart (M59): a consumer that begins at a time begins while somebody has one of its
// shards: in that one, too, of which it misses nothing when it is free.
func TestHeldShardStart(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		letGo := hold()
		x.Appended(3, 0, time.Time{})
		r := x.Taker(nil)
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_shards") && strings.HasSuffix(ev.SQL, "NOWAIT") && x.Scalar("SELECT count(*) FROM rowfeed_cursors") == 0 {
				t.Error("it would move records to learn where to begin")
			}
			return nil
		}}, nil)
		source := &meeting{Feed: f, shard: 0, made: func() bool { return slices.Equal(r.Applied(), []string{"1: 10"}) }}
		source.meet = func() { letGo(); x.Publish(x.Feed) } // somebody else moves what it is to get
		c := r.Consumer(source, x.TappedDB(testdb.Hooks{}, nil))
		c.Options.Start = rowfeed.At(x.Now().Add(time.Hour))
		stop := r.Run(c)
		x.Eventually("it begins while shard 0 is held", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_cursors") == 2 })
		x.Appended(4, 0, time.Time{})
		x.Appended(10, 1, time.Time{})
		r.AwaitApplied("the other shard, and then the one that was held", "0: 3 4", "1: 10")
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// TestUnplaceableStart (M59): nor does a record that cannot be placed keep it from the other shards.
func TestUnplaceableStart(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere what a column takes its index takes, too
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id text PRIMARY KEY, data text)", "CREATE TABLE applied (id text)")
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) SELECT 0, string_agg(md5(i::text), '') FROM generate_series(1, 200) i",
			"INSERT INTO events VALUES ('a', 'd')", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 'a')")
		c := &rowfeed.Consumer{Name: "test", Source: x.Feed, DB: x.RF,
			Options: rowfeed.ConsumerOptions{
				Start: rowfeed.At(x.Now().Add(time.Hour)),
				Retry: rowfeed.Retry{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
			},
			Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
				id, _ := entries[0].Key.Get("id")
				_, err := tx.ExecContext(ctx, "INSERT INTO applied VALUES ($1)", id)
				return err
			}}
		applied := func() bool { return x.Scalar("SELECT count(*) FROM applied WHERE id = 'a'") == 1 }
		if err := c.RunOnce(x.Ctx); err != nil || !applied() {
			t.Fatalf("once: the other shard was not consumed, %v", err)
		}
		x.Exec("DELETE FROM applied", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 'a')")
		c.Name = "other"
		stop := (&suite.Taker{Events: x}).Run(c)
		x.Eventually("the other shard is consumed", applied)
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// TestFillingStart (M62): nor does a shard whose rows of that time are being placed, which begins when they
// are.
func TestFillingStart(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(4)
		broken := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "live_from =") { // before it comes to the first shard
				return testdb.ErrInjected
			}
			return nil
		}}, nil)
		if _, err := broken.AddFeed(x.Ctx, suite.BackfillSpec(), nil); !errors.Is(err, testdb.ErrInjected) {
			x.Fatal(err)
		}
		y := x.KVEvents()
		live := func(id, shard int) time.Time {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, %d, NULL)", id, shard))
			x.Publish(y.Feed)
			at, err := ulid.ParseStrict(string(y.Page(y.Feed, shard, rowfeed.Now, 1).Cursor))
			if err != nil {
				x.Fatal(err)
			}
			return ulid.Time(at.Time())
		}
		start := live(10, 3).Add(time.Millisecond)
		x.Eventually("it is later", func() bool { return x.Now().After(start.Add(time.Millisecond)) })
		live(11, 0)
		// As where all that a shard had was purged: it has no head to tell.
		x.Exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES ('kv', 99, 0, 0, 0, '')", "INSERT INTO kv VALUES (13, 99, NULL)")
		r := y.Taker(nil)
		c := r.Consumer(y.Feed, x.RF)
		c.Options.Start = rowfeed.At(start)
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.Filling)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_cursors"); n != 3 {
			t.Fatalf("it has begun in %d shards", n)
		}
		// Below a time to come is what is published until it is looked up.
		early := r.Consumer(y.Feed, x.RF)
		early.Name, early.Options.Start = "early", rowfeed.At(x.Now().Add(time.Hour))
		x.WantCode(early.RunOnce(x.Ctx), rowfeed.Filling)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = 'early'"); n != 0 {
			t.Fatalf("at a time to come it has begun in %d shards", n)
		}
		live(12, 3)
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.Filling)
		r.WantApplied("3: 12")
		y.Backfilled(4)
		r.Once(c)
		r.WantApplied("0: 11", "3: 12", "99: 13")
		r.Once(early)
		live(14, 99)
		r.Once(early)
		r.WantApplied("0: 11", "3: 12", "99: 13 14")
	})
}

package ulidconsumer

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

// interruptedSource is a source that calls do before the first page of a shard that is read when ready reports true.
// Its Info lists one shard, and says that there are more.
type interruptedSource struct {
	*rowfeed.Feed
	shard int
	ready func() bool
	once  sync.Once
	do    func()
}

func (s *interruptedSource) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if shard, _ := req.Shards.Numbers(); shard == s.shard && s.ready() {
		s.once.Do(s.do)
	}
	return s.Feed.Fetch(ctx, req)
}

func (s *interruptedSource) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, s.Feed) }

// few returns the Info of a feed as if it had more shards than an Info lists.
func few(ctx context.Context, f *rowfeed.Feed) (*rowfeed.Info, error) {
	info, err := f.Info(ctx)
	if err == nil {
		info.ShardIDs, info.MoreShardIDs = info.ShardIDs[:1], true
	}
	return info, err
}

// fewListed is a Source without watermarks whose Info does not list all shards.
type fewListed struct{ plain }

func (p fewListed) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, p.f) }

// TestStartsOfAllShardsAreReadBeforeFirstEntry (G1, M24): a consumer reads where all shards begin before it consumes
// the first one, also of shards that Info does not list. It gets a row that is committed after that, and not the
// earlier ones. A source that cannot list all its shards is refused.
func TestStartsOfAllShardsAreReadBeforeFirstEntry(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		for shard := 1; shard <= 3; shard++ {
			r.Add(shard, shard, shard)
			headOf(r, shard) // moves the records of an outbox, which would be after the head
		}
		next := 10
		for name, start := range map[string]rowfeed.Cursor{
			"now": rowfeed.Now, "later": rowfeed.At(r.Now().Add(time.Hour)),
			"earlier": rowfeed.At(r.Now().Add(-time.Hour)),
		} {
			r.Exec("DELETE FROM applied")
			was := next
			source := &interruptedSource{Feed: r.Feed, shard: 3}
			source.ready = func() bool {
				return r.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = '"+name+"'") > 0
			}
			source.do = func() { r.Add(3, next, next); headOf(r, 3); next++ }
			c := r.Consumer(source, r.RF)
			c.Name, c.Options.Start = name, start
			r.Once(c)
			if next != was+1 {
				t.Fatalf("%s: %d rows were written before the first page, want 1", name, next-was)
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
			t.Error("a consumer that was refused is stored")
		}
	})
}

// all returns the rows of TestStartsOfAllShardsAreReadBeforeFirstEntry below next.
func all(r *suite.Taker, next int) []string {
	third := "3: 3"
	for id := 10; id < next; id++ {
		third += fmt.Sprint(" ", id)
	}
	return []string{"1: 1", "2: 2", third}
}

// TestLockedShardDoesNotPreventStart (M59): a consumer starts at a time while another transaction has locked a shard.
// It has a cursor of that shard, too, and misses no row of it.
func TestLockedShardDoesNotPreventStart(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		release := hold()
		x.Appended(3, 0, time.Time{})
		r := x.Taker(nil)
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_shards") && strings.HasSuffix(ev.SQL, "NOWAIT") &&
				x.Scalar("SELECT count(*) FROM rowfeed_cursors") == 0 {
				t.Error("the consumer moves records before it has cursors")
			}
			return nil
		}}, nil)
		source := &interruptedSource{Feed: f, shard: 0}
		source.ready = func() bool { return slices.Equal(r.Applied(), []string{"1: 10"}) }
		source.do = func() { release(); x.Publish(x.Feed) } // another process moves the records
		c := r.Consumer(source, x.TappedDB(testdb.Hooks{}, nil))
		c.Options.Start = rowfeed.At(x.Now().Add(time.Hour))
		stop := r.Run(c)
		x.Eventually("the consumer has cursors while shard 0 is locked", func() bool {
			return x.Scalar("SELECT count(*) FROM rowfeed_cursors") == 2
		})
		x.Appended(4, 0, time.Time{})
		x.Appended(10, 1, time.Time{})
		r.AwaitApplied("both shards are consumed", "0: 3 4", "1: 10")
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
}

// TestUnplaceableRecordDoesNotPreventStart (M59): a shard has a record whose key is too long for an index. A consumer
// starts, and consumes the other shards.
func TestUnplaceableRecordDoesNotPreventStart(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // on others, an index accepts all values of its column
	suite.Each(t, func(env *suite.Env) {
		env.Exec(env.Statements("ulidconsumer.text_keys")...)
		spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		x := &suite.Events{Env: env, Feed: env.Add(spec)}
		x.Exec(x.Text("ulidconsumer.unplaceable_record"),
			"INSERT INTO events VALUES ('a', 'd')", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 'a')")
		c := &rowfeed.Consumer{
			Name: "test", Source: x.Feed, DB: x.RF,
			Options: rowfeed.ConsumerOptions{
				Start: rowfeed.At(x.Now().Add(time.Hour)),
				Retry: rowfeed.Retry{Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond},
			},
			Handle: func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
				id, _ := entries[0].Key.Get("id")
				_, err := tx.ExecContext(ctx, "INSERT INTO applied VALUES ("+x.Dialect.Placeholder(1)+")", id)
				return err
			},
		}
		applied := func() bool { return x.Scalar("SELECT count(*) FROM applied WHERE id = 'a'") == 1 }
		if err := c.RunOnce(x.Ctx); err != nil || !applied() {
			t.Fatalf("RunOnce did not consume the other shard: %v", err)
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

// TestBackfillDoesNotPreventStart (M62): a consumer starts at a time while older rows are back-filled. It consumes
// shards whose start is known, and the others after the back-fill.
func TestBackfillDoesNotPreventStart(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the test is about no database
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(4)
		broken := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "live_from =") { // before the first shard is filled
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
		x.Eventually("the clock advances", func() bool { return x.Now().After(start.Add(time.Millisecond)) })
		live(11, 0)
		// Shard 99 has no head, as if all its entries were purged.
		x.Exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) "+
			"VALUES ('kv', 99, 0, 0, 0, '')", "INSERT INTO kv VALUES (13, 99, NULL)")
		r := y.Taker(nil)
		c := r.Consumer(y.Feed, x.RF)
		c.Options.Start = rowfeed.At(start)
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.Filling)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_cursors"); n != 3 {
			t.Fatalf("the consumer has cursors of %d shards, want 3", n)
		}
		// Entries that are published before a consumer looks up a time in the future are before its start.
		early := r.Consumer(y.Feed, x.RF)
		early.Name, early.Options.Start = "early", rowfeed.At(x.Now().Add(time.Hour))
		x.WantCode(early.RunOnce(x.Ctx), rowfeed.Filling)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = 'early'"); n != 0 {
			t.Fatalf("a consumer that starts in the future has cursors of %d shards, want none", n)
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

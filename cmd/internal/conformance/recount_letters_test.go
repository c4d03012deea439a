package conformance

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestRecountDeadLetters (H25): a key that is aside stays aside whatever shard has
// it next: later versions join it there, and its release comes from there.
func TestRecountDeadLetters(t *testing.T) {
	each(t, func(x *env) {
		const dataShards = 12
		f, r := x.addShards(dataShards), x.receiver()
		ids := append(idsOf(1, 2, dataShards, 0, 3), append(idsOf(1, 2, dataShards, 4, 6), idsOf(1, 3, dataShards, 8, 12)...)...)
		x.insertIDs(ids...)
		x.publish(f)
		consumer := func(count int) *rowfeed.Consumer {
			c := r.shardsOf(f, x.rf, count)
			c.OnFailure = rowfeed.SetAside
			return c
		}
		r.fail = failsOn(ids...)
		r.once(consumer(1))
		r.wantHomes(dataShards, 1, ids...)
		r.fail = nil
		x.exec(fmt.Sprintf("UPDATE rowfeed_dead_letters SET data_shard = NULL WHERE key_json = '{\"id\":%d}'", ids[6])) // as tables of version 4 had it
		for i, count := range []int{4, 3, 12, 1, 5} {
			r.takeHanded()
			x.exec(fmt.Sprintf("UPDATE kv SET v = %d", i+1))
			x.publish(f)
			r.once(consumer(count))
			if got := r.takeHanded(); len(got) != 0 {
				x.Errorf("of %d shards: keys that are aside were handed over: %q", count, got)
			}
			r.wantHomes(dataShards, count, ids...)
			// A newly made letter is with its shard as well; one is released there.
			all, err := x.rf.Admin().DeadLetters(x.ctx, testConsumer, json.RawMessage(fmt.Sprintf(`{"id":%d}`, ids[0])))
			if err != nil || len(all) != 1 || all[0].Collapsed == 0 {
				x.Fatalf("of %d shards: the letter of %d: %+v %v", count, ids[0], all, err)
			}
			r.retry(string(all[0].Key))
			if err := consumer(count).RunOnce(x.bounded()); err != nil {
				x.Fatal(err)
			}
			if got, want := r.takeHanded(), []string{fmt.Sprintf("%s upsert %d", all[0].Position, ids[0])}; !slices.Equal(got, want) {
				x.Errorf("of %d shards: released %q, want %q", count, got, want)
			}
			r.wantHomes(dataShards, count, ids[1:]...)
			r.fail = failsOn(ids[0])
			x.exec(fmt.Sprintf("UPDATE kv SET v = -1 WHERE id = %d", ids[0]))
			x.publish(f)
			r.once(consumer(count))
			r.fail = nil
			r.wantHomes(dataShards, count, ids...)
		}
		if n, err := x.rf.Admin().DropDeadLetters(x.ctx, shardID(0), nil); err != nil || n == 0 || n == int64(len(ids)) {
			x.Errorf("those of shard 0: %d dropped, %v", n, err)
		}
		if n, err := x.rf.Admin().DropDeadLetters(x.ctx, testConsumer, nil); err != nil || n == 0 {
			x.Errorf("the others: %d dropped, %v", n, err)
		}
		r.wantHomes(dataShards, 5)
	})
}

// TestDeadLettersOfAnotherDivision (H24, H25): the feed has another number of
// data shards, and so another generation. Every shard begins again, with the dead letters
// of the keys that it has now: a key that comes joins its letter, and of one that does not
// come the release says that it is gone.
func TestDeadLettersOfAnotherDivision(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(4), x.receiver()
		x.insertKV(1, 21)
		x.publish(f)
		var bad []int64
		for id := int64(1); id <= 20; id += 2 {
			bad = append(bad, id)
		}
		refused := 0
		consumer := func() *rowfeed.Consumer {
			c := r.shardsOf(f, x.rf, 4)
			c.OnFailure = rowfeed.SetAside
			c.OnRefused = func(context.Context, *sql.Tx, error) error { refused++; return nil }
			return c
		}
		r.fail = failsOn(bad...)
		r.once(consumer())
		r.wantHomes(4, 4, bad...)
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.exec("DELETE FROM kv WHERE id = 5 OR id = 6")
		f = x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.publish(f)
		r.fail = nil
		r.takeHanded()
		r.once(consumer())
		if refused != 1 {
			x.Errorf("OnRefused was called %d times", refused)
		}
		for _, l := range r.takeHanded() {
			if id := l[strings.LastIndex(l, " ")+1:]; strings.Contains("13579", id[len(id)-1:]) {
				x.Errorf("%q was handed over, whose key is aside", l)
			}
		}
		r.wantHomes(64, 4, bad...)
		x.exec("DELETE FROM applied")
		r.retry("")
		r.once(consumer())
		r.wantHomes(64, 4)
		for _, l := range r.applied() {
			if want := map[bool]string{true: "delete 5", false: "upsert"}[strings.HasSuffix(l, " 5")]; !strings.Contains(l, want) {
				x.Errorf("released %q", l)
			}
		}
		if n := len(r.applied()); n != len(bad) {
			x.Errorf("%d keys were released, of %d", n, len(bad))
		}
	})
}

// TestConsumerOfAReshardedFeed (H24, H25): a feed is divided anew while a consumer
// of four shards reads it. All of them begin again, once, with the dead letters of their
// keys; nothing is lost and no key that is aside is handed over; more shards are possible.
func TestConsumerOfAReshardedFeed(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(4), x.receiver()
		x.insertKV(1, 41)
		x.publish(f)
		r.fail = failsOn(5, 10, 15, 20, 25, 30)
		c := r.shardsOf(f, x.rf, 4)
		c.OnFailure, c.Limit = rowfeed.SetAside, 7
		x.exec("CREATE TABLE refusals (n INTEGER)")
		c.OnRefused = func(ctx context.Context, tx *sql.Tx, _ error) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO refusals VALUES (1)")
			return err
		}
		x.wantCode(r.shardsOf(f, x.rf, 6).RunOnce(x.ctx), rowfeed.InvalidRequest)
		stop := r.run(c)
		x.eventually("the head is reached", func() bool { return len(r.applied()) == 34 && len(r.letters()) == 6 })
		r.wantHomes(4, 4, 5, 10, 15, 20, 25, 30)
		if _, err := f.Admin().Reshard(x.ctx, 32, nil); err != nil {
			x.Fatal(err)
		}
		x.insertKV(41, 43)
		x.publish(f)
		x.eventually("the new pass is through", func() bool {
			return x.scalar(fmt.Sprintf("SELECT count(DISTINCT id) FROM applied WHERE generation = %d", f.Generation())) == 36
		})
		x.eventually("every shard is at the head", func() bool {
			return !slices.ContainsFunc(x.cursors("test"), func(l string) bool { return !strings.Contains(l, ":42") })
		})
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		r.wantHomes(32, 4, 5, 10, 15, 20, 25, 30)
		if n := x.scalar("SELECT count(*) FROM applied"); n != 34+36 {
			x.Errorf("%d effects, want each key's once in each generation", n)
		}
		if n := x.scalar("SELECT count(*) FROM refusals"); n != 1 {
			x.Errorf("OnRefused has had an effect %d times", n)
		}
		r.fail = nil
		many := r.shardsOf(f, x.rf, 6)
		r.once(many)
		r.wantHomes(32, 6, 5, 10, 15, 20, 25, 30)
		if n := x.scalar("SELECT count(*) FROM applied"); n != 34+36 {
			x.Errorf("%d effects behind another change of shards", n)
		}
	})
}

// unreliable is a source that can be away, and be another one when it is back.
type unreliable struct {
	mu    sync.Mutex
	feed  *rowfeed.Feed
	away  bool
	tried int // pages asked for meanwhile
	// again has the parts asked for since: the first time each is told that the source is
	// away, since its cursor may be from before.
	again map[rowfeed.Shards]bool
}

func (u *unreliable) Info(ctx context.Context) (*rowfeed.Info, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.feed.Info(ctx)
}

func (u *unreliable) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if again := u.again[req.Shards]; u.away || u.again != nil && !again {
		if !u.away {
			u.again[req.Shards] = true
		}
		u.tried++
		return rowfeed.Page{}, errors.New("the source is away")
	}
	req.Wait = 0
	return u.feed.Fetch(ctx, req)
}

// TestDividedAnewMeanwhile (H24, H25): the source is away; when it is back the
// feed is another one, with other data shards, and an operator has set the consumer back.
// Nothing was refused, and yet the dead letters are where their keys are now.
func TestDividedAnewMeanwhile(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(4), x.receiver()
		x.insertKV(1, 21)
		x.publish(f)
		r.fail = failsOn(1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		source := &unreliable{feed: f}
		c := r.shardsOf(source, x.rf, 4)
		c.OnFailure = rowfeed.SetAside
		r.once(c)
		r.wantHomes(4, 4, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		source.away, r.fail = true, nil
		stop := r.run(c)
		x.eventually("it is noticed", func() bool { source.mu.Lock(); defer source.mu.Unlock(); return source.tried > 4 })
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		f = x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.publish(f)
		if _, err := x.rf.Admin().ResetConsumer(x.ctx, testConsumer); err != nil {
			x.Fatal(err)
		}
		r.takeHanded()
		source.mu.Lock()
		source.feed, source.away, source.again = f, false, map[rowfeed.Shards]bool{}
		source.mu.Unlock()
		x.eventually("the new pass is through", func() bool {
			return !slices.ContainsFunc(x.cursors("test"), func(l string) bool { return !strings.Contains(l, ":20") })
		})
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		r.wantHomes(64, 4, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		for _, l := range r.takeHanded() {
			if id := l[strings.LastIndex(l, " ")+1:]; strings.Contains("13579", id[len(id)-1:]) {
				x.Errorf("%q was handed over, whose key is aside", l)
			}
		}
	})
}

// TestRecountMarks (M22, H16): one shard has just begun again, and the other one has seen
// everything. The one shard that takes over from both is shown all rows, and also those
// deletes that only the first one could do without.
func TestRecountMarks(t *testing.T) {
	each(t, func(x *env) {
		const dataShards = 8
		f, r := x.addShards(dataShards), x.receiver()
		low, high := idsOf(1, 3, dataShards, 0, 4), idsOf(1, 3, dataShards, 4, 8)
		x.insertIDs(append(low, high...)...)
		x.publish(f)
		r.once(r.shardsOf(f, x.rf, 2))
		x.wantCursors("test", "0/2 6", "1/2 6")
		x.exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", low[0]))
		x.publish(f)
		r.once(r.shardsOf(f, x.rf, 2)) // this delete both have seen
		x.exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d OR id = %d", low[1], high[1]))
		x.publish(f)
		if _, err := x.rf.Admin().ResetConsumer(x.ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		x.exec("DELETE FROM applied")
		r.once(r.shardsOf(f, x.rf, 1))
		var got []string
		for _, l := range r.applied() {
			got = append(got, strings.SplitN(l, " ", 2)[1])
		}
		want := []string{fmt.Sprintf("upsert %d", low[2]), fmt.Sprintf("upsert %d", high[0]), fmt.Sprintf("upsert %d", high[2]),
			fmt.Sprintf("delete %d", low[1]), fmt.Sprintf("delete %d", high[1])}
		if !sameLines(got, want) {
			x.Errorf("came again: %q, want %q", got, want)
		}
		x.wantCursors("test", "0/1 9")
	})
}

// TestShardCountRefused (M22): more shards than data shards, what is about a whole feed, and
// changes of the number by those who are at work.
func TestShardCountRefused(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		f, r := x.addShards(4), x.receiver()
		err := r.shardsOf(f, x.rf, 5).RunOnce(x.ctx)
		x.wantCode(err, rowfeed.InvalidRequest)
		if !strings.Contains(err.Error(), "rowfeed feed upgrade kv --data-shards") || !strings.Contains(err.Error(), "5 shards are more") {
			x.Errorf("no next step: %v", err)
		}
		if got := x.cursors("test"); len(got) != 0 {
			x.Errorf("a refusal has made cursors: %q", got)
		}
		whole := r.shardsOf(f, x.rf, 2)
		whole.OnComplete = func(context.Context, *sql.Tx) error { return nil }
		x.wantCode(whole.RunOnce(x.ctx), rowfeed.InvalidRequest)

		// A consumer that was dropped makes its cursors anew, all of them and of its number.
		c := r.shardsOf(f, x.rf, 3)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(x.ctx)
		defer cancel()
		go func() { ended <- c.Run(ctx) }()
		three := []string{"0/3 2", "1/3 2", "2/3 2"}
		x.insertKV(1, 3)
		x.publish(f)
		x.eventually("the head is reached", func() bool { return slices.Equal(x.cursors("test"), three) })
		if _, err := x.rf.Admin().DropConsumer(x.ctx, testConsumer); err != nil {
			x.Fatal(err)
		}
		x.eventually("the consumer begins anew", func() bool { return len(r.applied()) == 4 && slices.Equal(x.cursors("test"), three) })
		// One that stands still, with nothing to read, notices another number too.
		r.once(r.shardsOf(f, x.rf, 2))
		err = <-ended
		x.wantCode(err, rowfeed.Conflict)
		if !strings.Contains(err.Error(), "give all instances the same number of shards") {
			x.Errorf("no next step: %v", err)
		}
		x.wantCursors("test", "0/2 2", "1/2 2")

		// A start that is a time, or now, and shards that have never started.
		x.exec("DELETE FROM rowfeed_cursors WHERE shard = 1")
		late := r.shardsOf(f, x.rf, 4)
		late.Start = rowfeed.At(time.Now().Add(-time.Hour))
		x.exec("DELETE FROM applied")
		r.once(late)
		x.wantCursors("test", "0/4 2", "1/4 2", "2/4 2", "3/4 2")
		want := len(slices.DeleteFunc([]int64{1, 2}, func(id int64) bool { return shardOfID(id, 4) < 2 }))
		if got := len(r.applied()); got != want {
			x.Errorf("the shards that had never started have handled %d entries, want %d", got, want)
		}
	})
}

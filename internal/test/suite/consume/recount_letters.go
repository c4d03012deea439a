package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestLettersFollowTheirKeys (H25): a key that is set aside stays aside in whichever shard it is after a change of the
// shard count. Later versions join the letter there, and its release comes from there.
func TestLettersFollowTheirKeys(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 12
		f, r := x.AddShards(dataShards), x.Receiver()
		ids := slices.Concat(suite.IDsOf(1, 2, dataShards, 0, 3), suite.IDsOf(1, 2, dataShards, 4, 6),
			suite.IDsOf(1, 3, dataShards, 8, 12))
		x.InsertIDs(ids...)
		x.Publish(f)
		consumer := func(count int) *rowfeed.Consumer {
			c := r.ShardsOf(f, x.RF, count)
			c.OnFailure = rowfeed.SetAside
			return c
		}
		r.Fail = failsOn(ids...)
		r.Once(consumer(1))
		wantLettersWithTheirKeys(r, dataShards, 1, ids...)
		r.Fail = nil
		// Letters of version 4 have no data shard.
		x.Exec(fmt.Sprintf("UPDATE rowfeed_dead_letters SET data_shard = NULL WHERE key_json = '{\"id\":%d}'", ids[6]))
		for i, count := range []int{4, 3, 12, 1, 5} {
			takeHanded(r)
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d", i+1))
			x.Publish(f)
			r.Once(consumer(count))
			if got := takeHanded(r); len(got) != 0 {
				x.Errorf("of %d shards: keys that are aside were handed over: %q", count, got)
			}
			wantLettersWithTheirKeys(r, dataShards, count, ids...)
			// A new letter is in the shard of its key, too, and is released there.
			page, err := x.RF.Admin().DeadLetters(x.Ctx,
				suite.Letters(suite.TestConsumer, fmt.Sprintf(`{"id":%d}`, ids[0])))
			all := page.Letters
			if err != nil || len(all) != 1 || all[0].Collapsed == 0 {
				x.Fatalf("of %d shards: the letter of %d: %+v %v", count, ids[0], all, err)
			}
			retry(r, string(all[0].Key))
			if err := consumer(count).RunOnce(x.Bounded()); err != nil {
				x.Fatal(err)
			}
			want := []string{fmt.Sprintf("%s upsert %d", all[0].Position, ids[0])}
			if got := takeHanded(r); !slices.Equal(got, want) {
				x.Errorf("of %d shards: released %q, want %q", count, got, want)
			}
			wantLettersWithTheirKeys(r, dataShards, count, ids[1:]...)
			r.Fail = failsOn(ids[0])
			x.Exec(fmt.Sprintf("UPDATE kv SET v = -1 WHERE id = %d", ids[0]))
			x.Publish(f)
			r.Once(consumer(count))
			r.Fail = nil
			wantLettersWithTheirKeys(r, dataShards, count, ids...)
		}
		if n, err := x.RF.Admin().DropDeadLetters(x.Ctx, suite.Letters(shardID(0), ""), nil); err != nil || n == 0 ||
			n == int64(len(ids)) {
			x.Errorf("those of shard 0: %d dropped, %v", n, err)
		}
		if n, err := x.RF.Admin().DropDeadLetters(x.Ctx,
			suite.Letters(suite.TestConsumer, ""), nil); err != nil || n == 0 {
			x.Errorf("the others: %d dropped, %v", n, err)
		}
		wantLettersWithTheirKeys(r, dataShards, 5)
	})
}

// TestRestartAfterReshardKeepsDeadLetters (H24, H25): the feed was dropped and added with another number of data
// shards, and so has another generation. Every shard restarts with the dead letters of the keys that it has now. A key
// that comes joins its letter; the release of a key that does not come tells that the key is gone.
func TestRestartAfterReshardKeepsDeadLetters(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(4), x.Receiver()
		x.InsertKV(1, 21)
		x.Publish(f)
		var bad []int64
		for id := int64(1); id <= 20; id += 2 {
			bad = append(bad, id)
		}
		refused := 0
		consumer := func() *rowfeed.Consumer {
			c := r.ShardsOf(f, x.RF, 4)
			c.OnFailure = rowfeed.SetAside
			c.Options.OnRefused = func(context.Context, *sql.Tx, error) error { refused++; return nil }
			return c
		}
		r.Fail = failsOn(bad...)
		r.Once(consumer())
		wantLettersWithTheirKeys(r, 4, 4, bad...)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv WHERE id = 5 OR id = 6")
		f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.Publish(f)
		r.Fail = nil
		takeHanded(r)
		r.Once(consumer())
		if refused != 1 {
			x.Errorf("OnRefused was called %d times", refused)
		}
		for _, l := range takeHanded(r) {
			if id := l[strings.LastIndex(l, " ")+1:]; strings.Contains("13579", id[len(id)-1:]) {
				x.Errorf("%q was handed over, whose key is aside", l)
			}
		}
		wantLettersWithTheirKeys(r, 64, 4, bad...)
		x.Exec("DELETE FROM applied")
		retry(r, "")
		r.Once(consumer())
		wantLettersWithTheirKeys(r, 64, 4)
		for _, l := range r.Applied() {
			want := map[bool]string{true: "delete 5", false: "upsert"}[strings.HasSuffix(l, " 5")]
			if !strings.Contains(l, want) {
				x.Errorf("released %q", l)
			}
		}
		if n := len(r.Applied()); n != len(bad) {
			x.Errorf("%d keys were released, of %d", n, len(bad))
		}
	})
}

// TestShardsGoOnWhileDataShardsChange (H24, H25): a feed gets another number of data shards while a consumer of four
// shards reads it. All shards go on from their lowest cursor, with the dead letters of their keys. Nothing is lost, no
// key that is set aside is handed over, and more shards are possible.
func TestShardsGoOnWhileDataShardsChange(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(4), x.Receiver()
		x.InsertKV(1, 41)
		x.Publish(f)
		aside := []int64{5, 10, 15, 20, 25, 30}
		r.Fail = failsOn(aside...)
		c := r.ShardsOf(f, x.RF, 4)
		c.OnFailure, c.Options.Limit = rowfeed.SetAside, 7
		c.Options.OnRefused = func(_ context.Context, _ *sql.Tx, err error) error {
			x.Errorf("the consumer begins again: %v", err)
			return nil
		}
		x.WantCode(r.ShardsOf(f, x.RF, 6).RunOnce(x.Ctx), rowfeed.InvalidRequest)
		stop := run(r, c)
		x.Eventually("the head is reached", func() bool { return len(r.Applied()) == 34 && len(letters(r)) == 6 })
		wantLettersWithTheirKeys(r, 4, 4, aside...)
		takeHanded(r)
		if _, err := f.Admin().Reshard(x.Ctx, 32, nil); err != nil {
			x.Fatal(err)
		}
		x.InsertKV(41, 43)
		x.Publish(f)
		x.Eventually("every shard is at the head", func() bool {
			return !slices.ContainsFunc(x.Cursors("test"), func(l string) bool { return !strings.Contains(l, " 42") })
		})
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		wantLettersWithTheirKeys(r, 32, 4, aside...)
		for _, l := range takeHanded(r) {
			if id, _ := strconv.ParseInt(l[strings.LastIndex(l, " ")+1:], 10, 64); slices.Contains(aside, id) {
				x.Errorf("%q was handed over, whose key is aside", l)
			}
		}
		if n := x.Scalar("SELECT count(DISTINCT id) FROM applied"); n != 36 {
			x.Errorf("%d keys were applied, of 36", n)
		}
		r.Fail = nil
		applied := x.Scalar("SELECT count(*) FROM applied")
		r.Once(r.ShardsOf(f, x.RF, 6))
		wantLettersWithTheirKeys(r, 32, 6, aside...)
		if n := x.Scalar("SELECT count(*) FROM applied"); n != applied {
			x.Errorf("%d effects behind another change of shards, want %d", n, applied)
		}
	})
}

// unreliable is a source that can be unavailable, and can be replaced meanwhile.
type unreliable struct {
	mu    sync.Mutex
	feed  *rowfeed.Feed
	away  bool
	tried int // pages requested while it is unavailable
	// again has the parts that were requested since. The first request of each part is still refused as unavailable,
	// because its cursor may be an old one.
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

// TestDeadLettersFollowReshardOfUnavailableSource (H24, H25): the source is unavailable. When it is back, the feed has
// other data shards, and an operator has reset the consumer. No cursor is refused, and yet the dead letters are in the
// shards that have their keys.
func TestDeadLettersFollowReshardOfUnavailableSource(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(4), x.Receiver()
		x.InsertKV(1, 21)
		x.Publish(f)
		r.Fail = failsOn(1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		source := &unreliable{feed: f}
		c := r.ShardsOf(source, x.RF, 4)
		c.OnFailure = rowfeed.SetAside
		r.Once(c)
		wantLettersWithTheirKeys(r, 4, 4, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		source.away, r.Fail = true, nil
		stop := run(r, c)
		x.Eventually("the consumer notices", func() bool {
			source.mu.Lock()
			defer source.mu.Unlock()
			return source.tried > 4
		})
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 64})
		x.Publish(f)
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		takeHanded(r)
		source.mu.Lock()
		source.feed, source.away, source.again = f, false, map[rowfeed.Shards]bool{}
		source.mu.Unlock()
		x.Eventually("the new pass is through", func() bool {
			return !slices.ContainsFunc(x.Cursors("test"), func(l string) bool { return !strings.Contains(l, ":20") })
		})
		if err := stop(); err != nil {
			x.Fatal(err)
		}
		wantLettersWithTheirKeys(r, 64, 4, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
		for _, l := range takeHanded(r) {
			if id := l[strings.LastIndex(l, " ")+1:]; strings.Contains("13579", id[len(id)-1:]) {
				x.Errorf("%q was handed over, whose key is aside", l)
			}
		}
	})
}

// TestMergingShardsKeepsDeletesThatEitherNeeds (M22, H16): one shard has just restarted, the other one has reached the
// head. The single shard that takes over from both gets all rows, and also the deletes that only the first one does not
// need.
func TestMergingShardsKeepsDeletesThatEitherNeeds(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 8
		f, r := x.AddShards(dataShards), x.Receiver()
		low, high := suite.IDsOf(1, 3, dataShards, 0, 4), suite.IDsOf(1, 3, dataShards, 4, 8)
		x.InsertIDs(append(low, high...)...)
		x.Publish(f)
		r.Once(r.ShardsOf(f, x.RF, 2))
		x.WantCursors("test", "0/2 6", "1/2 6")
		x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", low[0]))
		x.Publish(f)
		r.Once(r.ShardsOf(f, x.RF, 2)) // both shards have handled this delete
		x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d OR id = %d", low[1], high[1]))
		x.Publish(f)
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM applied")
		r.Once(r.ShardsOf(f, x.RF, 1))
		var got []string
		for _, l := range r.Applied() {
			got = append(got, strings.SplitN(l, " ", 2)[1])
		}
		want := []string{
			fmt.Sprintf("upsert %d", low[2]),
			fmt.Sprintf("upsert %d", high[0]),
			fmt.Sprintf("upsert %d", high[2]),
			fmt.Sprintf("delete %d", low[1]),
			fmt.Sprintf("delete %d", high[1]),
		}
		if !sameLines(got, want) {
			x.Errorf("came again: %q, want %q", got, want)
		}
		x.WantCursors("test", "0/1 9")
	})
}

// TestImpossibleShardCountIsRefused (M22): more shards than data shards, settings that concern a whole feed, and
// changes of the count by a running instance are refused.
func TestImpossibleShardCountIsRefused(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(4), x.Receiver()
		err := r.ShardsOf(f, x.RF, 5).RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.InvalidRequest)
		if !strings.Contains(err.Error(), "rowfeed feed upgrade kv --data-shards") ||
			!strings.Contains(err.Error(), "5 shards are more") {
			x.Errorf("no next step: %v", err)
		}
		if got := x.Cursors("test"); len(got) != 0 {
			x.Errorf("a refusal has made cursors: %q", got)
		}
		whole := r.ShardsOf(f, x.RF, 2)
		whole.Options.OnComplete = func(context.Context, *sql.Tx) error { return nil }
		x.WantCode(whole.RunOnce(x.Ctx), rowfeed.InvalidRequest)

		// A dropped consumer creates all its cursors again.
		c := r.ShardsOf(f, x.RF, 3)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		go func() { ended <- c.Run(ctx) }()
		three := []string{"0/3 2", "1/3 2", "2/3 2"}
		x.InsertKV(1, 3)
		x.Publish(f)
		x.Eventually("the head is reached", func() bool { return slices.Equal(x.Cursors("test"), three) })
		if _, err := x.RF.Admin().DropConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		x.Eventually("the consumer restarts", func() bool {
			return len(r.Applied()) == 4 && slices.Equal(x.Cursors("test"), three)
		})
		// An idle instance notices another count, too.
		r.Once(r.ShardsOf(f, x.RF, 2))
		err = <-ended
		x.WantCode(err, rowfeed.Conflict)
		if !strings.Contains(err.Error(), "give all instances the same number of shards") {
			x.Errorf("no next step: %v", err)
		}
		x.WantCursors("test", "0/2 2", "1/2 2")

		// A start at a time, or now, and shards that have never started.
		x.Exec("DELETE FROM rowfeed_cursors WHERE shard = 1")
		late := r.ShardsOf(f, x.RF, 4)
		late.Options.Start = rowfeed.At(time.Now().Add(-time.Hour))
		x.Exec("DELETE FROM applied")
		r.Once(late)
		x.WantCursors("test", "0/4 2", "1/4 2", "2/4 2", "3/4 2")
		want := len(slices.DeleteFunc([]int64{1, 2}, func(id int64) bool { return suite.ShardOfID(id, 4) < 2 }))
		if got := len(r.Applied()); got != want {
			x.Errorf("the shards that had never started have handled %d entries, want %d", got, want)
		}
	})
}

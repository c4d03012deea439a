package consume

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("recount", func() {
		if err := suite.Crashing(func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err != nil {
				return err
			}
			c := (&suite.Receiver{}).ShardsOf(f, rf, 3)
			c.Options.Limit = 2
			return c.RunOnce(ctx)
		}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// wantLettersWithTheirKeys asserts that every dead letter is in the shard that has its key, and that the cursors count
// the letters.
func wantLettersWithTheirKeys(r *suite.Receiver, dataShards, count int, ids ...int64) {
	r.Helper()
	page, err := r.RF.Admin().DeadLetters(r.Ctx, suite.Letters(suite.TestConsumer, ""))
	all := page.Letters
	if err != nil {
		r.Fatal(err)
	}
	parts, counts := partsOf(dataShards, count), map[int]int64{}
	var found []int64
	for _, l := range all {
		id, err := strconv.ParseInt(strings.Trim(string(l.Key), `{}"id:`), 10, 64)
		if err != nil {
			r.Fatal(err)
		}
		found = append(found, id)
		counts[l.Shard]++
		if want := parts[suite.ShardOfID(id, dataShards)]; l.Shard != want {
			r.Errorf("the dead letter of %d is with shard %d of %d, want %d", id, l.Shard, count, want)
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(ids)); !slices.Equal(found, want) {
		r.Errorf("dead letters of %v, want %v", found, want)
	}
	cursors, err := r.RF.Admin().Consumers(r.Ctx, suite.TestConsumer)
	if err != nil || len(cursors) != count {
		r.Fatalf("%d cursors, want %d (%v)", len(cursors), count, err)
	}
	for _, c := range cursors {
		if c.DeadLetters != counts[c.Shard] {
			r.Errorf("the cursor of shard %d counts %d dead letters, there are %d", c.Shard, c.DeadLetters,
				counts[c.Shard])
		}
	}
}

// TestShardCountChangeKilledAtEveryStatement (M22, H2): an instance that changes the shard count is killed before each
// of its statements in turn. The next instance finds the cursors and dead letters of one count, and applies the rest,
// nothing twice.
func TestShardCountChangeKilledAtEveryStatement(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 12
		f, r := x.AddShards(dataShards), x.Receiver()
		x.InsertKV(1, 13)
		x.Publish(f)
		last, partly := 12, map[int]bool{}
		n, step := x.Kills()
		for ; ; n += step {
			x.Exec("DELETE FROM applied", "DELETE FROM rowfeed_cursors", "DELETE FROM rowfeed_dead_letters")
			r.Fail = failsOn(3, 7, 11)
			former := r.ShardsOf(f, x.RF, 4)
			former.OnFailure = rowfeed.SetAside
			r.Once(former)
			r.Fail = nil
			x.InsertKV(last+1, last+5)
			last += 4
			x.Publish(f)
			before := x.Killed("recount", n)
			_, count := x.Positions("test")
			partly[count] = true
			if count != 4 && count != 3 {
				x.Fatalf("killed before %s: %d shards", before, count)
			}
			wantLettersWithTheirKeys(r, dataShards, count, 3, 7, 11)
			r.Once(r.ShardsOf(f, x.RF, 3))
			wantLettersWithTheirKeys(r, dataShards, 3, 3, 7, 11)
			if got, keys := len(r.Applied()), x.Scalar("SELECT count(DISTINCT id) FROM applied"); got != last-3 ||
				keys != int64(last-3) {
				x.Fatalf("killed before %s: %d effects of %d keys, want %d", before, got, keys, last-3)
			}
			if before == "" {
				break
			}
		}
		if !partly[4] || !partly[3] {
			x.Error("no kill fell before the change, or none behind it")
		}
	})
}

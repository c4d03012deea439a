package conformance

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("recount", func() {
		if err := crashing(func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err != nil {
				return err
			}
			c := (&receiver{}).shardsOf(f, rf, 3)
			c.Limit = 2
			return c.RunOnce(ctx)
		}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// wantHomes asserts that every dead letter is with the shard that has its key, and that
// the cursors count them.
func (r *receiver) wantHomes(dataShards, count int, ids ...int64) {
	r.Helper()
	all, err := r.rf.Admin().DeadLetters(r.ctx, testConsumer, nil)
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
		if want := parts[shardOfID(id, dataShards)]; l.Shard != want {
			r.Errorf("the dead letter of %d is with shard %d of %d, want %d", id, l.Shard, count, want)
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(ids)); !slices.Equal(found, want) {
		r.Errorf("dead letters of %v, want %v", found, want)
	}
	cursors, err := r.rf.Admin().Consumers(r.ctx, testConsumer)
	if err != nil || len(cursors) != count {
		r.Fatalf("%d cursors, want %d (%v)", len(cursors), count, err)
	}
	for _, c := range cursors {
		if c.DeadLetters != counts[c.Shard] {
			r.Errorf("the cursor of shard %d counts %d dead letters, there are %d", c.Shard, c.DeadLetters, counts[c.Shard])
		}
	}
}

// TestRecountKilledAtEveryStatement (M22, H2): an instance that changes the number of
// shards is killed before each of its statements in turn. Whoever starts next finds the
// cursors and dead letters of one number or the other, and applies the rest, nothing twice.
func TestRecountKilledAtEveryStatement(t *testing.T) {
	each(t, func(x *env) {
		const dataShards = 12
		f, r := x.addShards(dataShards), x.receiver()
		x.insertKV(1, 13)
		x.publish(f)
		last, partly := 12, map[int]bool{}
		n, step := x.kills()
		for ; ; n += step {
			x.exec("DELETE FROM applied", "DELETE FROM rowfeed_cursors", "DELETE FROM rowfeed_dead_letters")
			r.fail = failsOn(3, 7, 11)
			former := r.shardsOf(f, x.rf, 4)
			former.OnFailure = rowfeed.SetAside
			r.once(former)
			r.fail = nil
			x.insertKV(last+1, last+5)
			last += 4
			x.publish(f)
			before := x.killed("recount", n)
			_, count := x.positions("test")
			partly[count] = true
			if count != 4 && count != 3 {
				x.Fatalf("killed before %s: %d shards", before, count)
			}
			r.wantHomes(dataShards, count, 3, 7, 11)
			r.once(r.shardsOf(f, x.rf, 3))
			r.wantHomes(dataShards, 3, 3, 7, 11)
			if got, keys := len(r.applied()), x.scalar("SELECT count(DISTINCT id) FROM applied"); got != last-3 || keys != int64(last-3) {
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

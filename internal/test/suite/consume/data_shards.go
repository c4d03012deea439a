package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestConsumersContinueAfterReshard (M18, M22, H24, H25): a consumer of the whole feed and one of four parts go on when
// the feed gets another number of data shards. Nothing is asked of an operator. The whole consumer gets only what is
// new, and so does the one of parts from 1 to 1024 data shards. After another change it begins at its lowest cursor,
// with the dead letters of the keys that each part has now, and misses nothing.
func TestConsumersContinueAfterReshard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(100)
		x.Publish(f)
		handed := map[string]int{}
		consumer := func(name string, count int, fail int64) *rowfeed.Consumer {
			c := r.ShardsOf(f, x.RF, count)
			c.Name, c.OnFailure = name, rowfeed.SetAside
			c.Options.OnRefused = func(_ context.Context, _ *sql.Tx, err error) error {
				x.Errorf("%s starts again: %v", name, err)
				return nil
			}
			c.Handle = func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					if id, _ := e.Key.Get("id"); id == fail {
						return errors.New("not this one")
					}
				}
				handed[name] += len(entries)
				return nil
			}
			return c
		}
		once := func(c *rowfeed.Consumer) int {
			x.Helper()
			handed[c.Name] = 0
			if err := c.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
			return handed[c.Name]
		}
		once(consumer("whole", 1, 0))
		if n := once(consumer("test", 4, 7)); n != 99 {
			x.Errorf("the parts have %d entries", n)
		}
		for step, shards := range []int{1024, 6, 64, 1} {
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id > 80", step+1))
			x.Publish(f)
			x.Reshard(f, shards)
			if n := once(consumer("whole", 1, 0)); n != 20 {
				x.Errorf("to %d data shards: the consumer of the whole feed gets %d entries of 20", shards, n)
			}
			n := once(consumer("test", 4, 7))
			if n < 20 || n > 40 || shards == 1024 && n != 20 {
				x.Errorf("to %d data shards: the consumer of parts gets %d entries of 20", shards, n)
			}
			wantLettersWithTheirKeys(r, feedtype.MaxParts(shards), 4, 7)
			if n := once(consumer("test", 4, 7)); n != 0 {
				x.Errorf("to %d data shards: %d entries without a change", shards, n)
			}
		}
		err := consumer("test", 1025, 0).RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}

// TestUnreadShardSurvivesOtherDataShards (M18, H24, H25): the feed gets another number of data shards while one shard
// of a consumer is at the beginning, or at a position that an operator has set. Its keys belong to other shards then,
// and these begin low enough to get them. The same holds if the number changes while the consumer runs, before it
// reads that shard.
func TestUnreadShardSurvivesOtherDataShards(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(100)
		x.Publish(f)
		for i, given := range []string{"unread", "set-back", "running"} {
			unread := map[any]bool{}
			entries, _ := x.Part(f, rowfeed.Part(2, 4), "", 100)
			for _, e := range entries {
				id, _ := e.Key.Get("id")
				unread[id] = true
			}
			fails := given != "set-back"
			r.Fail = func(_ context.Context, _ *sql.Tx, e rowfeed.Entry) error {
				if id, _ := e.Key.Get("id"); fails && unread[id] {
					return errors.New("not yet")
				}
				return nil
			}
			source := &dividing{Feed: f}
			c := r.ShardsOf(source, x.RF, 4)
			c.Name = given
			x.Exec("DELETE FROM applied")
			if err := c.RunOnce(x.Ctx); (err != nil) != fails {
				x.Fatal(err)
			}
			if given == "set-back" {
				for shard, to := range []rowfeed.Cursor{"100", "100", "1", "100"} {
					id := rowfeed.ConsumerID{Consumer: given, Feed: "kv", Shard: &shard}
					if _, err := x.RF.Admin().SeekConsumer(x.Ctx, id, to); err != nil {
						x.Fatal(err)
					}
				}
				x.Exec("DELETE FROM applied")
			}
			change := func() { x.Reshard(f, 7+2*i) }
			if fails = false; given == "running" {
				source.before = change
			} else {
				change()
			}
			for range 2 {
				if err := c.RunOnce(x.Ctx); err != nil {
					x.Error(err)
				}
			}
			for id := range unread {
				if id != int64(1) && x.Scalar(fmt.Sprintf("SELECT count(*) FROM applied WHERE id = %d", id)) == 0 {
					x.Errorf("%s: key %d was not delivered", given, id)
				}
			}
		}
	})
}

// dividing is a source that calls before, once, ahead of the first page of a shard that has read nothing.
type dividing struct {
	*rowfeed.Feed
	before func()
}

func (d *dividing) Fetch(ctx context.Context, r rowfeed.Request) (rowfeed.Page, error) {
	if before := d.before; before != nil && r.After.IsBeginning() {
		d.before = nil
		before()
	}
	return d.Feed.Fetch(ctx, r)
}

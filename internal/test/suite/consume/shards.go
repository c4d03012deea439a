package consume

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

func shardID(shard int) rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &shard}
}

// TestShardsMoveIndependently (M22, M72): the two cursors of a consumer of two shards move, pause and are reset
// independently. Events and errors name the shard.
func TestShardsMoveIndependently(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const dataShards = 16
		f, r := x.AddShards(dataShards), x.Receiver()
		var mu sync.Mutex
		handed := map[string]int{} // entries by shard, from events
		counts := &rowfeed.Observer{Consumed: func(e rowfeed.ConsumeEvent) {
			mu.Lock()
			defer mu.Unlock()
			handed[fmt.Sprintf("%d/%d", e.Shard, e.ShardCount)] += e.Entries
		}}
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, &rowfeed.Config{Observer: counts})
		if err != nil {
			x.Fatal(err)
		}
		c := r.Consumer(f, rf)
		c.ShardCount, c.Options.Limit = 2, 3
		low, high := suite.IDsOf(1, 7, dataShards, 0, 8), suite.IDsOf(1, 5, dataShards, 8, 16)
		x.InsertIDs(append(low, high...)...)
		x.Publish(f)
		r.Once(c)
		x.WantCursors("test", "0/2 12", "1/2 12")
		if len(r.Applied()) != 12 || handed["0/2"] != 7 || handed["1/2"] != 5 || len(handed) != 2 {
			x.Fatalf("%d applied; told of %v", len(r.Applied()), handed)
		}

		// One shard is paused, the other continues.
		if n, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(0)); n != 1 || err != nil {
			x.Fatal(n, err)
		}
		more := []int64{suite.IDsOf(1000, 1, dataShards, 0, 8)[0], suite.IDsOf(1000, 1, dataShards, 8, 16)[0]}
		x.InsertIDs(more...)
		x.Publish(f)
		err = c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.ConsumerPaused)
		if !strings.Contains(err.Error(), `consumer "test" of feed "kv", shard 0 of 2: it is paused`) {
			x.Errorf("which shard is paused? %v", err)
		}
		x.WantCursors("test", "0/2 12 paused", "1/2 14")
		stop := run(r, c)
		if _, err := x.RF.Admin().ResumeConsumer(x.Ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		x.Eventually("the resumed shard continues", func() bool { return len(r.Applied()) == 14 })
		if err := stop(); err != nil {
			x.Fatal(err)
		}

		// One shard is reset, and gets its own entries again.
		takeHanded(r)
		for back, want := range map[rowfeed.Cursor][]int64{"": append(slices.Clone(high), more[1]), "12": {more[1]}} {
			if n, err := x.RF.Admin().SeekConsumer(x.Ctx, shardID(1), back); n != 1 || err != nil {
				x.Fatal(n, err)
			}
			r.Once(c)
			if got := takeHanded(r); len(got) != len(want) {
				x.Errorf("set back to %q: %q, want the keys %v", back, got, want)
			}
		}
		_, err = x.RF.Admin().ResetConsumer(x.Ctx, shardID(2))
		x.WantCode(err, rowfeed.UnknownConsumer)
		_, err = x.RF.Admin().DropConsumer(x.Ctx, shardID(1))
		x.WantCode(err, rowfeed.InvalidRequest)

		// A failing handler stops the consumer, and the error names the shard.
		bad := suite.IDsOf(2000, 1, dataShards, 8, 16)[0]
		r.Fail = failsOn(bad)
		x.InsertIDs(bad)
		x.Publish(f)
		err = c.RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.HandlerFailed)
		if !strings.Contains(err.Error(), "shard 1 of 2") {
			x.Errorf("which shard has failed? %v", err)
		}
		x.WantCursors("test", "0/2 15", "1/2 14")
	})
}

// logbook is a handler that records its entries in the consumer's transaction, and checks that the positions of a
// shard grow.
type logbook struct {
	*suite.Env
	name string
}

const createLogbook = "CREATE TABLE logbook (consumer VARCHAR(20), position BIGINT, shard BIGINT, id BIGINT, v BIGINT)"

func (l logbook) handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	for _, e := range entries {
		id, _ := e.Key.Get("id")
		v, _ := e.Row.Get("v")
		var last int64
		if err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT COALESCE(MAX(position), 0) "+
			"FROM logbook WHERE consumer = '%s' AND shard = %d", l.name, e.Shard)).Scan(&last); err != nil {
			return err
		}
		if suite.PositionOf(e) <= last {
			return fmt.Errorf("position %s of data shard %d comes behind %d", e.Position, e.Shard, last)
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO logbook VALUES ('%s', %s, %d, %v, %v)",
			l.name, e.Position, e.Shard, id, v))
		if err != nil {
			return err
		}
	}
	return nil
}

// TestConsumersOfDifferentShardCountsGetAllEntries (M24, M25, M26): a consumer of 4 shards and one of 32 read a feed at
// the same time while it is written. Each gets every entry once, in order within each shard.
func TestConsumersOfDifferentShardCountsGetAllEntries(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), &suite.Receiver{Env: x}
		x.Exec(createLogbook)
		counts := map[string]int{"four": 4, "many": 32}
		for name, count := range counts {
			c := r.Consumer(f, x.RF)
			c.Name, c.ShardCount, c.Options.Limit, c.Handle = name, count, 20, logbook{x, name}.handle
			run(r, c)
		}
		for round := range 4 {
			x.InsertKV(100*round+1, 100*round+51)
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id %% 10 = %d", round+2, round))
			x.Publish(f)
		}
		head := x.Scalar("SELECT MAX(feed_sync_id) FROM rowfeed_positions_kv")
		for name, count := range counts {
			x.Eventually(name+" is at the head", func() bool {
				reached := x.Scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_cursors "+
					"WHERE consumer = '%s' AND shard_count = %d AND value LIKE '%d.%%'", name, count, head))
				return reached == int64(count)
			})
			if n := x.Scalar("SELECT count(*) FROM (SELECT position FROM logbook WHERE consumer = '" + name +
				"' GROUP BY position HAVING count(*) > 1) twice"); n != 0 {
				x.Errorf("%s: %d positions came more than once", name, n)
			}
			if n := x.Scalar("SELECT count(*) FROM kv JOIN rowfeed_positions_kv p ON p.id = kv.id " +
				"LEFT JOIN logbook l ON l.consumer = '" + name + "' AND l.position = p.feed_sync_id " +
				"AND l.id = kv.id AND l.v = kv.v AND l.shard = p.shard WHERE l.id IS NULL"); n != 0 {
				x.Errorf("%s: of %d keys the last version has not come", name, n)
			}
		}
	})
}

// TestAdoptedCursorGetsShards (M23): a consumer that was adopted from a table of cursors without shards continues with
// four shards. All of them begin behind the adopted position.
func TestAdoptedCursorGetsShards(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, feed_sync_id BIGINT NULL)",
			"CREATE TABLE cursors (name VARCHAR(100) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)",
			"INSERT INTO cursors VALUES ('test', 12)")
		for id := 1; id <= 20; id++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0, %d)", id, id))
		}
		f := x.Add(
			rowfeed.FeedSpec{
				Name:         "kv",
				Table:        "kv",
				Capture:      feedtype.CaptureColumn,
				Adopt:        true,
				AdoptCursors: "cursors",
				DataShards:   16,
			},
		)
		at := "12"
		if g := f.Generation(); g != 1 {
			at = fmt.Sprintf("%d:12", g)
		}
		x.WantCursors("test", "0/1 "+at)
		r := x.Receiver()
		c := r.Consumer(f, x.RF)
		c.ShardCount = 4
		r.Once(c)
		wantApplied(r, suite.Upserts(13, 20)...)
		at = strings.TrimSuffix(at, "12") + "20"
		x.WantCursors("test", "0/4 "+at+"_0-4-16", "1/4 "+at+"_4-8-16", "2/4 "+at+"_8-12-16", "3/4 "+at+"_12-16-16")
	})
}

package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRepairReturnsKeysToTheirShards (M19): check finds keys that another program has put into a wrong data shard or
// bucket, in rows, deletes and hidden keys. Repair returns them and publishes them again, so that the readers of their
// parts get each of them, wherever their cursors are. A hidden key stays hidden.
func TestRepairReturnsKeysToTheirShards(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.InsertKV(0, 1200) // more keys than one batch of the check
		x.Publish(f)
		x.Exec("DELETE FROM kv WHERE id = 3", "DELETE FROM kv WHERE id = 1103")
		err := f.InOwnTx(x.Ctx,
			func(tx rowfeed.Tx) error { return f.Unpublish(x.Ctx, tx, rowfeed.Key{5}, rowfeed.Key{1105}) })
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		x.WantSound(f)
		if n, err := f.Admin().Repair(x.Ctx); n != 0 || err != nil {
			x.Errorf("repaired %d keys of a feed in order: %v", n, err)
		}
		var cursors [8]rowfeed.Cursor
		for shard := range cursors {
			_, cursors[shard] = x.Part(f, rowfeed.One(shard), "", 1000)
		}
		const others = ", bucket = (bucket + 1) % 8"
		for _, round := range []struct {
			own, rest string // conditions for keys with rows, and for keys that only the table of positions has
			buckets   string // the condition for keys in a wrong bucket only
			want      map[string]string
			more      int
		}{
			{"id IN (1, 1150)", "id IN (3, 5)", "id = 9", map[string]string{
				`{"id":1}`: suite.KV(1, "k1", 1), `{"id":1150}`: suite.KV(1150, "k1150", 1),
				`{"id":3}`: suite.Gone(3), `{"id":5}`: suite.Gone(5), `{"id":9}`: suite.KV(9, "k9", 1),
			}, 0},
			{"id >= 960 AND id < 1100", "id IN (1103, 1105)", "1 = 0", map[string]string{
				`{"id":960}`: suite.KV(960, "k960", 1), `{"id":1099}`: suite.KV(1099, "k1099", 1),
				`{"id":1103}`: suite.Gone(1103), `{"id":1105}`: suite.Gone(1105),
			}, 138},
		} {
			places, bucket := x.Placed(), ""
			if places != "kv" {
				bucket = others
			} else {
				round.buckets = "1 = 0"
				delete(round.want, `{"id":9}`)
			}
			x.DB.Exec(x.T, "UPDATE "+places+" SET shard = (shard + 3) % 8"+bucket+" WHERE "+round.own)
			x.DB.Exec(x.T, "UPDATE rowfeed_positions_kv SET shard = (shard + 3) % 8"+others+" WHERE "+round.rest)
			x.DB.Exec(x.T, "UPDATE rowfeed_positions_kv SET shard = shard"+others+" WHERE "+round.buckets)
			found := x.WrongShards(f)
			for key := range round.want {
				if round.more == 0 && !slices.Contains(found, key) {
					x.Errorf("check does not find %s", key)
				}
			}
			if want := min(len(round.want)+round.more, 100); len(found) != want {
				x.Errorf("check finds %d keys, want %d: %v", len(found), want, found)
			}
			if n, err := f.Admin().Repair(x.Ctx); n != int64(len(round.want)+round.more) || err != nil {
				x.Errorf("repaired %d keys, want %d: %v", n, len(round.want)+round.more, err)
			}
			x.Publish(f)
			got := map[string]string{}
			for shard := range cursors {
				var entries []rowfeed.Entry
				entries, cursors[shard] = x.Part(f, rowfeed.One(shard), cursors[shard], 1000)
				for _, e := range entries {
					got[string(e.Key.AppendJSON(nil))] = suite.Line(e)
					if e.Shard != shard || feedtype.ShardOf(e.Key, 8) != shard {
						x.Errorf("the reader of shard %d has %s", shard, placed(e))
					}
				}
			}
			for key, want := range round.want {
				if got[key] != want {
					x.Errorf("of %s the reader of its part is told %q, want %q", key, got[key], want)
				}
			}
			if len(got) != len(round.want)+round.more {
				x.Errorf("readers are told of %d keys, want %d", len(got), len(round.want)+round.more)
			}
			x.WantSound(f)
			wantParts(x, f, 8)
		}
		x.Exec("UPDATE kv SET v = 9 WHERE id IN (5, 1105)")
		x.Publish(f)
		for shard := range cursors {
			if entries, _ := x.Part(f, rowfeed.One(shard), cursors[shard], 1000); len(entries) > 0 {
				x.Errorf("hidden keys are shown again: %s", placed(entries[0]))
			}
		}
	})
}

// TestCheckIgnoresFeedBeingResharded (M19): check leaves a feed alone that is resharded while its keys are checked, or
// before they get their shards: by the former shard count all of them would be wrong. A feed of one data shard is not
// checked.
func TestCheckIgnoresFeedBeingResharded(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const walk = "SELECT t.feed_sync_id, t.shard"
		walks := 0
		plain := tappedAs(x, x.Add, func(ev testdb.TapEvent) {
			if strings.HasPrefix(ev.SQL, walk) {
				walks++
			}
		})
		if _, err := plain.Admin().Check(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if n, err := plain.Admin().Repair(x.Ctx); n != 0 || err != nil || walks != 0 {
			x.Errorf("of one data shard %d keys were repaired, %d times they were looked at: %v", n, walks, err)
		}

		f := plain
		for _, held := range []struct {
			when  string
			match func(seen bool, ev testdb.TapEvent) bool
		}{
			{"before its keys are read", func(_ bool, ev testdb.TapEvent) bool {
				return strings.HasPrefix(ev.SQL, walk)
			}},
			{"when its keys have been read", func(seen bool, ev testdb.TapEvent) bool {
				return seen && strings.Contains(ev.SQL, "data_shards = ")
			}},
			{"before keys get their shards", func(seen bool, ev testdb.TapEvent) bool {
				return seen && ev.Kind == testdb.Begin
			}},
		} {
			for _, repair := range []bool{true, false} {
				if !repair && strings.HasPrefix(held.when, "before keys get") {
					continue
				}
				x.Reshard(f, 8)
				if repair {
					x.DB.Exec(x.T, "UPDATE rowfeed_positions_kv SET shard = (shard + 3) % 8 WHERE id IN (1, 7)")
				}
				seen := false
				hold := testdb.Hold(func(ev testdb.TapEvent) bool {
					match := held.match(seen, ev)
					seen = seen || strings.HasPrefix(ev.SQL, walk)
					return match
				})
				other := x.Tapped(testdb.Hooks{Before: hold.Before}, nil)
				ended := make(chan error, 1)
				go func() {
					var err error
					var findings []admin.Finding
					var n int64
					if repair {
						n, err = other.Admin().Repair(x.Ctx)
					} else {
						findings, err = other.Admin().Check(x.Ctx)
					}
					if err == nil && (n > 0 || len(findings) > 0) {
						err = fmt.Errorf("%d keys were repaired, %v was found", n, findings)
					}
					ended <- err
				}()
				select {
				case <-hold.Reached:
				case err := <-ended:
					x.Fatalf("%s: it ended before: %v", held.when, err)
				}
				x.Reshard(f, 3)
				hold.Release()
				if err := <-ended; err != nil {
					x.Errorf("resharded %s: %v", held.when, err)
				}
				if x.Unpublished() != 0 {
					x.Errorf("resharded %s: changes were recorded", held.when)
				}
				wantParts(x, f, 3)
				x.WantSound(f)
			}
		}
	})
}

// tappedAs returns the feed kv with ten keys, on a pool whose statements seen gets.
func tappedAs(x *suite.Env, add func(rowfeed.FeedSpec) *rowfeed.Feed, seen func(testdb.TapEvent)) *rowfeed.Feed {
	x.Helper()
	x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
	f := add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	x.InsertKV(0, 10)
	x.Publish(f)
	return x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		seen(ev)
		return nil
	}}, nil)
}

// TestUnfinishedFeedTellsReadersOfParts: a feed whose creation has not finished tells readers of parts so, and which
// command completes it. So does a feed that adopts a table.
func TestUnfinishedFeedTellsReadersOfParts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Shards = 8
		f := x.AddKV()
		x.InsertKV(0, 10)
		x.Publish(f)
		for _, c := range []struct{ state, want, not string }{
			{"creating", "it is being created", "feed upgrade"},
			{"sharding", "feed upgrade kv --data-shards 8", "feed add"},
		} {
			x.Exec("UPDATE rowfeed_feeds SET state = '" + c.state + "', fill_after = NULL")
			_, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(2)}) // the shard of an earlier feed
			if err == nil {
				_, err = x.Tapped(testdb.Hooks{}, nil).Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(2)})
			}
			x.WantCode(err, rowfeed.Sharding)
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, c.not) ||
				c.state == "creating" && !strings.Contains(text, "feed add kv") {
				x.Errorf("%s: %s", c.state, text)
			}
		}
	})
}

// TestOneDataShardIgnoresShardColumn (M18): a feed with one data shard has all its keys in shard 0, even if an adopted
// table has a column "shard" with other values.
func TestOneDataShardIgnoresShardColumn(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT, " +
			"feed_sync_id BIGINT NULL, shard INT NOT NULL DEFAULT 7)")
		x.DB.Exec(x.T, "INSERT INTO kv (id, k, v, feed_sync_id) VALUES (1, 'a', 1, 5), (2, 'b', 2, 6)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true})
		x.Publish(f)
		for _, shards := range []rowfeed.Shards{{}, rowfeed.One(0)} {
			entries, _ := x.Part(f, shards, "", 10)
			if len(entries) != 2 || entries[0].Shard != 0 || entries[1].Shard != 0 {
				x.Errorf("%s: %v", shards, entries)
			}
		}
	})
}

// TestKeyColumnsMayHaveAnyName: the columns of a key may have any names, even those that publishers use for row
// numbers.
func TestKeyColumnsMayHaveAnyName(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		for _, shards := range []int{1, 7} {
			table := fmt.Sprintf("odd%d", shards)
			x.Exec("CREATE TABLE " + table + " (n BIGINT NOT NULL, place BIGINT NOT NULL, seq BIGINT NOT NULL, " +
				"k1 BIGINT NOT NULL, k0 BIGINT NOT NULL, v BIGINT, PRIMARY KEY (n, place, seq, k1, k0))")
			f := x.Add(rowfeed.FeedSpec{Name: table, Table: table, DataShards: shards})
			x.Exec("INSERT INTO " + table + " VALUES (3, 1, 9, 4, 5, 0), (1, 2, 8, 5, 4, 0)")
			_, cursor := x.Drain(f, "")
			x.Exec("UPDATE "+table+" SET v = 1 WHERE n = 3", "DELETE FROM "+table+" WHERE n = 1")
			x.WantDrain(f, cursor, `upsert {"n":3,"place":1,"seq":9,"k1":4,"k0":5,"v":1}`,
				`delete {"n":1,"place":2,"seq":8,"k1":5,"k0":4}`)
			x.WantSound(f)
			x.Reshard(f, 4)
			wantParts(x, f, 4)
		}
	})
}

// TestReshardWaitsWhileLockedRowsDecrease (M18): an upgrade waits for locked rows as long as their number decreases. A
// transaction must be able to unlock one of its rows for that.
func TestReshardWaitsWhileLockedRowsDecrease(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...)
	suite.EachColumn(t, func(x *suite.Env) {
		const rows = 70 // more rows than the upgrade retries
		f := x.AddKV()
		x.Fill(rows)
		x.Publish(f)
		stuck := x.Begin(0)
		for id := 1; id <= rows; id++ {
			x.In(stuck, fmt.Sprintf("SAVEPOINT s%d", id))
			x.In(stuck, fmt.Sprintf("UPDATE kv SET v = v + 1 WHERE id = %d", id))
		}
		left, walking := rows, false
		upgrade := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			walking = walking || strings.Contains(ev.SQL, "SKIP LOCKED")
			if walking && left > 0 && ev.Kind == testdb.Begin {
				if _, err := stuck.ExecContext(x.Ctx, fmt.Sprintf("ROLLBACK TO SAVEPOINT s%d", left)); err != nil {
					return err
				}
				left--
			}
			return nil
		}}, nil)
		x.Reshard(upgrade, 4000) // so that every row changes its shard
		if left > 0 {
			x.Errorf("%d rows were held to the end", left)
		}
	})
}

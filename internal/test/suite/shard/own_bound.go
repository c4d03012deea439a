package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestNumberOfOwnDataShardsCanBeChanged (M18): the number of data shards of a feed whose table holds them can be
// changed. A number that leaves out rows, or deletes that are kept, is refused by name. A row that had no data shard is
// published again as soon as it has one, so that no reader of its part misses it. Nothing is written into the table.
func TestNumberOfOwnDataShardsCanBeChanged(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3), (2, 'b', 511), (3, 'c', 100)")
		if !hasOwnShards(x) {
			return
		}
		f := x.Add(ownShards)
		x.Drain(f, "")
		one := func(after rowfeed.Cursor, shards rowfeed.Shards) (rowfeed.Page, error) {
			return f.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: shards})
		}
		page, err := one("", rowfeed.One(3))
		if err != nil {
			x.Fatal(err)
		}
		several, err := one("", rowfeed.Part(0, 3)) // data shards 0 to 169
		if err != nil {
			x.Fatal(err)
		}
		_, err = f.Admin().Reshard(x.Ctx, 511, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "511") {
			x.Error(err)
		}
		x.Exec("INSERT INTO kv (id, v, shard) VALUES (4, 'd', 600)")
		_, head := x.Drain(f, "")
		x.Reshard(f, 1024)
		x.Publish(f)
		if got := linesOf(x, f, rowfeed.One(600), head); !slices.Equal(got, []string{rowOf(4, "d", 600)}) {
			x.Errorf("shard 600: %v", got)
		}
		if got := linesOf(x, f, rowfeed.One(511), ""); !slices.Equal(got, []string{rowOf(2, "b", 511)}) {
			x.Errorf("shard 511: %v", got)
		}
		// Data shard 3 has the same rows as before, and part 3 of 512 has other ones.
		if page, err := one(page.Cursor, rowfeed.One(3)); err != nil || len(page.Entries) > 0 {
			x.Errorf("shard 3: %v, %v", page.Entries, err)
		}
		_, err = one(page.Cursor, rowfeed.Part(3, 512))
		x.WantCode(err, rowfeed.OtherPart)
		// If a reader of several data shards went on at once, the lowest cursor could be above what others have read.
		_, err = one(several.Cursor, rowfeed.Part(0, 7))
		x.WantCode(err, rowfeed.OtherPart)
		if got := linesOf(x, f, rowfeed.Part(1, 2), ""); !slices.Equal(got, []string{rowOf(4, "d", 600)}) {
			x.Errorf("part 1 of 2: %v", got)
		}
		x.WantSound(f)
		x.Exec("DELETE FROM kv WHERE id = 4")
		x.Publish(f)
		if _, err = f.Admin().Reshard(x.Ctx, 512, nil); x.Capture != feedtype.CaptureColumn {
			x.WantCode(err, rowfeed.Refused) // readers of shard 600 may still have to read the delete
		} else if err != nil {
			x.Error(err)
		}
		if got := x.List("SELECT shard FROM kv ORDER BY id"); strings.Join(got, " ") != "3 511 100" {
			x.Errorf("the column has %v", got)
		}
	})
}

// TestTeamsShardColumnIsNotWritten (M28): another number of data shards is refused if rowfeed would begin to write a
// column shard that the table has of its own, also if it is 0 in all rows so far. The refusal says how to go on.
func TestTeamsShardColumnIsNotWritten(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL DEFAULT 0,"+
			" feed_sync_id BIGINT NULL)",
			"INSERT INTO kv (id, v, feed_sync_id) VALUES (1, 'a', 7), (2, 'b', NULL)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		f := x.Add(spec)
		x.Publish(f)
		_, err := f.Admin().Reshard(x.Ctx, 8, nil)
		x.WantCode(err, rowfeed.Refused)
		if _, again := f.Admin().PreviewReshard(x.Ctx, 8); fmt.Sprint(again) != fmt.Sprint(err) {
			x.Errorf("%v, and the preview says %v", err, again)
		}
		if !strings.Contains(err.Error(), "`--shard-column shard`") {
			x.Errorf("the refusal does not say how to keep the values: %v", err)
		}
		x.Exec("INSERT INTO kv (id, v, shard) VALUES (3, 'c', 7), (4, 'd', 5)")
		x.Publish(f)
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if !hasOwnShards(x) {
			return
		}
		spec.ShardColumn, spec.DataShards = "shard", 8
		f = x.Add(spec)
		if got := linesOf(x, f, rowfeed.One(7), ""); !slices.Equal(got, []string{rowOf(3, "c", 7)}) {
			x.Errorf("shard 7: %v", got)
		}
		if got := x.List("SELECT shard FROM kv ORDER BY id"); strings.Join(got, " ") != "0 0 7 5" {
			x.Errorf("the column has %v", got)
		}
		x.WantSound(f)
	})
}

// TestKeyInRemovedShardRefusesReshard (M18): a smaller number of data shards is refused also if a key of a data shard
// that it leaves out is published after the table was read. The feed keeps its number, and its parts have the key.
func TestKeyInRemovedShardRefusesReshard(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3)")
		if !hasOwnShards(x) {
			return
		}
		spec := ownShards
		spec.DataShards = 8
		f := x.Add(spec)
		x.Publish(f)
		armed := true
		tapped := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if armed && ev.Kind == testdb.Begin {
				armed = false
				x.Exec("INSERT INTO kv (id, v, shard) VALUES (2, 'b', 6)")
				x.Publish(f)
			}
			return nil
		}}, nil)
		_, err := tapped.Admin().Reshard(x.Ctx, 4, nil)
		if armed {
			x.Fatal("nothing was published meanwhile")
		}
		x.WantCode(err, rowfeed.Refused)
		if f, err = x.RF.Feed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if info := x.Info(f); info.DataShards != 8 || info.State != "active" {
			x.Errorf("%d data shards, %s", info.DataShards, info.State)
		}
		if got := linesOf(x, f, rowfeed.Part(1, 2), ""); !slices.Equal(got, []string{rowOf(2, "b", 6)}) {
			x.Errorf("part 1 of 2: %v", got)
		}
		x.WantSound(f)
	})
}

package shard

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestFeedAddedAgainWithOtherDataShards (M18, M28): an adopted feed that is dropped and added again with another number
// of data shards is resharded: readers of the whole feed continue, and cursors of parts are refused. It does not
// continue if rows can get their first data shard thereby, whose readers have passed them.
func TestFeedAddedAgainWithOtherDataShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), feed_sync_id BIGINT NULL)",
			"CREATE TABLE own (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL,"+
				" feed_sync_id BIGINT NULL)")
		x.DB.Exec(x.T, "INSERT INTO kv VALUES (1, 'a', 7), (2, 'b', NULL)")
		x.DB.Exec(x.T, "INSERT INTO own VALUES (1, 'a', 3, 7)")
		spec := rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Adopt: true}
		f := x.Add(spec)
		_, head := x.Drain(f, "")
		part, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(0, 2)})
		if err != nil {
			x.Fatal(err)
		}
		again := func(dataShards int, continues bool) {
			x.Helper()
			if err := x.RF.DropFeed(x.Ctx, spec.Name); err != nil {
				x.Fatal(err)
			}
			spec.DataShards = dataShards
			f = x.Add(spec)
			if is, err := f.Admin().Adoption(x.Ctx); err != nil || is.Continues != continues {
				x.Errorf("%d data shards: %+v, %v", dataShards, is, err)
			}
		}
		again(7, true)
		x.DB.Exec(x.T, "UPDATE kv SET v = 'A', feed_sync_id = NULL WHERE id = 1")
		x.WantDrain(f, head, `upsert {"id":1,"v":"A"}`)
		_, err = f.Fetch(x.Ctx, rowfeed.Request{After: part.Cursor, Shards: rowfeed.Part(0, 2)})
		x.WantCode(err, rowfeed.OtherPart)
		wantParts(x, f, 7)
		x.WantSound(f)
		again(1, true)

		if !x.Dialect.OwnShards {
			return
		}
		spec.Name, spec.Table, spec.ShardColumn, spec.DataShards = "own", "own", "shard", 8
		f = x.Add(spec)
		again(4, true)
		x.DB.Exec(x.T, "INSERT INTO own VALUES (2, 'b', 6, NULL)")
		x.Publish(f)
		again(8, false)
	})
}

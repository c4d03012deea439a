package shard

import (
	"context"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestMovedRowKeepsItsShard (M18, M28): a key keeps the data shard that it had first, so that no reader misses it.
// Check says which rows hold another one. If rows hold their positions, the row's own column is the shard: the readers
// of the new part get the row, those of the former one keep it, and its delete reaches both.
func TestMovedRowKeepsItsShard(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3), (2, 'b', 4)")
		f := x.Add(ownShards)
		_, head := x.Drain(f, "")
		x.Exec("UPDATE kv SET shard = 7 WHERE id = 1")
		moved := x.WantDrain(f, head, rowOf(1, "a", 7))
		in, out := 3, 7
		if x.Capture == feedtype.CaptureColumn {
			in, out = out, in
		}
		wantShard(x, f, in, head, rowOf(1, "a", 7))
		wantShard(x, f, out, head)
		if x.Capture == feedtype.CaptureColumn {
			x.WantSound(f)
		} else {
			wantFinding(x, f, `{"id":1}`, "holds data shard 7, and the key stays in data shard 3")
			x.Exec("UPDATE kv SET shard = 99999 WHERE id = 1")
			x.Publish(f)
			wantShard(x, f, 3, head, rowOf(1, "a", 99999))
			wantFinding(x, f, `{"id":1}`, "holds none of the data shards 0 to 511, and the key stays in data shard 3")
			if n, err := f.Admin().Repair(x.Ctx); n != 0 || err != nil {
				x.Errorf("repair: %d, %v", n, err)
			}
		}
		x.Exec("DELETE FROM kv WHERE id = 1")
		x.WantDrain(f, moved, suite.Gone(1))
		wantShard(x, f, in, moved, suite.Gone(1))
		if x.Capture == feedtype.CaptureColumn {
			wantShard(x, f, out, moved, suite.Gone(1))
		}
		x.WantSound(f)
	})
}

// TestReinsertedRowIsInItsPart (M18): with capture column a delete belongs to all parts. A row that is inserted
// again before its readers have read the delete is shown to none of them as an entry of that delete, and its own part
// gets it.
func TestReinsertedRowIsInItsPart(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 3), (2, 'b', 4)")
		f := x.Add(ownShards)
		_, head := x.Drain(f, "")
		x.Exec("DELETE FROM kv WHERE id = 1")
		x.Publish(f)
		wantShard(x, f, 5, head, suite.Gone(1))
		x.Exec("INSERT INTO kv (id, v, shard) VALUES (1, 'new', 7)")
		wantShard(x, f, 5, head)
		x.Publish(f)
		wantShard(x, f, 5, head)
		wantShard(x, f, 7, head, rowOf(1, "new", 7))

		// A key that is hidden, and shown again, is in the part that its row holds.
		for _, change := range []struct {
			record func(context.Context, rowfeed.Tx, ...rowfeed.Key) error
			want   string
		}{{f.Unpublish, suite.Gone(1)}, {f.Republish, rowOf(1, "new", 7)}} {
			err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return change.record(x.Ctx, tx, rowfeed.Key{1}) })
			if err != nil {
				x.Fatal(err)
			}
			x.Publish(f)
			wantShard(x, f, 7, head, change.want)
			wantShard(x, f, 3, head)
		}
		x.WantSound(f)
	})
}

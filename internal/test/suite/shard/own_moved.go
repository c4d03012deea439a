package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
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
		if !hasOwnShards(x) {
			return
		}
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
			wantFinding(x, f, `{"id":1}`, "holds data shard 7, but the key stays in data shard 3")
			x.Exec("UPDATE kv SET shard = 99999 WHERE id = 1")
			x.Publish(f)
			wantShard(x, f, 3, head, rowOf(1, "a", 99999))
			wantFinding(x, f, `{"id":1}`, "holds none of the data shards 0 to 511, but the key stays in data shard 3")
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
		if !hasOwnShards(x) {
			return
		}
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

// kept is a row in a target that the readers of several parts share, with its position.
type kept struct {
	position int64
	row      string
}

// sharedTarget follows the rule of docs/SHARDS.md: an entry replaces and deletes only what has a lower position.
type sharedTarget map[string]kept

func (t sharedTarget) apply(x *suite.Env, entries []rowfeed.Entry) {
	x.Helper()
	for _, e := range entries {
		key := string(e.Key.AppendJSON(nil))
		position, err := strconv.ParseInt(e.Position, 10, 64)
		switch had, ok := t[key]; {
		case err != nil:
			x.Fatal(err)
		case ok && had.position > position:
		case e.Op == rowfeed.Delete:
			delete(t, key)
		default:
			t[key] = kept{position, suite.Line(e)}
		}
	}
}

// TestReadersOfAllPartsCanWriteOneTarget (M18, G1): with capture column and own data shards, entries of a key can come
// to the readers of several parts: rows move, and deletes are in all parts. Readers that apply their pages late and in
// any order to one target have the table in the end, if they let no entry replace or delete what has a higher position.
func TestReadersOfAllPartsCanWriteOneTarget(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(100), shard INT NOT NULL)",
			"INSERT INTO kv (id, v, shard) VALUES (1, 'a', 0), (2, 'b', 1)")
		if !hasOwnShards(x) {
			return
		}
		spec := ownShards
		spec.DataShards = 3
		f, target := x.Add(spec), sharedTarget{}
		x.Publish(f)
		var cursors [3]rowfeed.Cursor
		fetch := func(part, limit int) rowfeed.Page {
			x.Helper()
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursors[part], Shards: rowfeed.Part(part, 3),
				Limit: limit})
			if err != nil {
				x.Fatal(err)
			}
			cursors[part] = page.Cursor
			return page
		}
		end := func() {
			x.Helper()
			for part := range cursors {
				for more := true; more; {
					page := fetch(part, 100)
					target.apply(x, page.Entries)
					more = page.More
				}
			}
			want, _ := x.Drain(f, "")
			var got []string
			for _, row := range slices.Collect(maps.Values(target)) {
				got = append(got, row.row)
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				x.Fatalf("the target has\n%q\nand the table\n%q", got, want)
			}
		}
		end()

		// The reader of part 1 has the delete of a row, which the reader of part 0 gets inserted again.
		x.Exec("DELETE FROM kv WHERE id = 1")
		x.Publish(f)
		late := fetch(1, 100)
		x.Exec("INSERT INTO kv (id, v, shard) VALUES (1, 'again', 0)")
		x.Publish(f)
		target.apply(x, fetch(0, 100).Entries)
		target.apply(x, late.Entries)
		if len(late.Entries) != 1 || late.Entries[0].Op != rowfeed.Delete {
			x.Errorf("part 1 has %v", late.Entries)
		}
		end()

		r := rand.New(rand.NewPCG(1, 2))
		var held [3][]rowfeed.Page
		for n := range 150 {
			id, part := r.IntN(4), r.IntN(3)
			switch r.IntN(6) {
			case 0:
				x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
			case 1:
				x.Exec(fmt.Sprintf("UPDATE kv SET v = '%d', shard = %d WHERE id = %d", n, part, id))
			case 2:
				if x.Scalar(fmt.Sprintf("SELECT count(*) FROM kv WHERE id = %d", id)) == 0 {
					x.Exec(fmt.Sprintf("INSERT INTO kv (id, v, shard) VALUES (%d, '%d', %d)", id, n, part))
				}
			case 3, 4:
				x.Publish(f)
				held[part] = append(held[part], fetch(part, 1+r.IntN(3)))
			default:
				if len(held[part]) > 0 {
					target.apply(x, held[part][0].Entries)
					held[part] = held[part][1:]
				}
			}
		}
		x.Publish(f)
		for _, pages := range held {
			for _, page := range pages {
				target.apply(x, page.Entries)
			}
		}
		end()
	})
}

package consume

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// TestShardCountChangeSkipsNoEntry (M22, H2, H24): for every data shard the new cursor is at or below
// the one that it had, and its mark at or below what that has seen; it is no lower than
// the lowest of those that its shard overlaps; whoever had none is at the start.
func TestShardCountChangeSkipsNoEntry(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		dataShards := 1 + r.IntN(64)
		count := 1 + r.IntN(dataShards)
		n := 1 + r.IntN(dataShards)
		states := make([]feedtype.CursorState, count) // the zero state: never started
		var all []oldCursor
		for i := range states {
			if r.IntN(9+1) == 0 {
				continue
			}
			p := feedtype.CursorState{Generation: 1, Position: feedtype.Numbered(1 + r.Int64N(50))}
			if r.IntN(2) == 0 {
				p.Mark = feedtype.Numbered(p.Position.Number() + 1 + r.Int64N(50))
			}
			if r.IntN(5+1) == 0 {
				p = feedtype.CursorState{Start: true}
			}
			states[i] = p
			from, to, err := feedtype.Part(i, count).Range(dataShards)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, oldCursor{from: from, to: to, value: p.Cursor(), paused: i%2 == 0})
		}
		next, err := rebalanced(all, dataShards, n, feedtype.Beginning, nil)
		if err != nil || len(next) != n {
			t.Fatal(len(next), err)
		}
		owner := func(shard, n int) int { // by trying
			for i := range n {
				if from, to, _ := feedtype.Part(i, n).Range(dataShards); from <= shard && shard < to {
					return i
				}
			}
			t.Fatalf("data shard %d is in none of %d parts", shard, n)
			return -1
		}
		type bound struct{ position, seen feedtype.Position }
		least := make([]bound, n)
		for i := range least {
			least[i] = bound{feedtype.LastPosition, feedtype.LastPosition}
		}
		for shard := range dataShards {
			old, i := states[owner(shard, count)], owner(shard, n)
			seen := old.Seen()
			if old.Position.IsZero() { // it has seen nothing
				seen = feedtype.LastPosition
			}
			least[i] = bound{least[i].position.Min(old.Position), least[i].seen.Min(seen)}
			if partOf(shard, n, dataShards) != i {
				t.Fatalf("partOf(%d, %d, %d)", shard, n, dataShards)
			}
		}
		for i, want := range least {
			got, err := next[i].Value.State()
			seen := got.Seen()
			if got.Start {
				seen = feedtype.LastPosition
			}
			if err != nil || got.Position != want.position || seen != want.seen || next[i].Shard != i ||
				next[i].ShardCount != n {
				t.Fatalf("shard %d of %d is at %q, want position %s, seen %s (%v)", i, n, next[i].Value, want.position,
					want.seen, err)
			}
		}
	}
}

// TestLowestIsBelowAllCursors (M22): cursors that are no places yet, marks, and generations.
func TestLowestIsBelowAllCursors(t *testing.T) {
	early, late := feedtype.At(time.Unix(1000, 0)), feedtype.At(time.Unix(2000, 0))
	at := map[feedtype.Cursor]feedtype.CursorState{early: {Generation: 1},
		late: {Generation: 1, Position: feedtype.Numbered(30)}}
	for _, c := range []struct {
		want feedtype.Cursor
		of   []feedtype.Cursor
	}{
		{"500", []feedtype.Cursor{"500", "900"}},
		{"10@900", []feedtype.Cursor{"10@1000", "900"}}, // the second wants deletes above 900
		{"0@500", []feedtype.Cursor{"", "500"}},         // all rows again, and yet the deletes above 500
		{"0@500", []feedtype.Cursor{"0", "700", "500", "900"}},
		{"0@40", []feedtype.Cursor{"", "10@40"}},
		{"", []feedtype.Cursor{"", "0"}},
		{"", []feedtype.Cursor{"", feedtype.Now}},
		{feedtype.Now, []feedtype.Cursor{feedtype.Now, feedtype.Now}},
		{"500", []feedtype.Cursor{feedtype.Now, "500"}}, // everything settled is below now
		{"10@40", []feedtype.Cursor{"10@40", feedtype.Now}},
		{late, []feedtype.Cursor{late, late}},
		{"30", []feedtype.Cursor{late, "500"}},
		{"20", []feedtype.Cursor{late, "20"}},
		{"10@30", []feedtype.Cursor{late, "10@40"}}, // who asks for a time wants its deletes
		{"0@30", []feedtype.Cursor{"", late}},
		{early, []feedtype.Cursor{early, "500"}}, // below every position, with every delete
		{early, []feedtype.Cursor{"", early, "500"}},
		{early, []feedtype.Cursor{early, late}},
		{"500", []feedtype.Cursor{"500", "7:3"}}, // an older generation is refused, as it would be
		{"3:500", []feedtype.Cursor{"7:3", "3:500", "7:1"}},
		{"3:0@500", []feedtype.Cursor{"7:3", "3:500", ""}},
	} {
		for _, of := range [][]feedtype.Cursor{c.of, reversed(c.of)} {
			if got, err := lowest(of, at); got != c.want || err != nil {
				t.Errorf("lowest of %q is %q, want %q (%v)", of, got, c.want, err)
			}
		}
	}
	if _, err := lowest([]feedtype.Cursor{"5", feedtype.At(time.Unix(3000, 0))}, at); err == nil {
		t.Error("a time that nobody has looked for has a place")
	}
	if _, err := lowest([]feedtype.Cursor{"5", "nonsense"}, at); err == nil {
		t.Error("nonsense has a place")
	}
}

func reversed(c []feedtype.Cursor) (r []feedtype.Cursor) {
	for i := range c {
		r = append(r, c[len(c)-1-i])
	}
	return r
}
